"""Plain models of what three rules imagine: a cached map, log blocks, a drive that never
cleans. Requests are tuples (op, first byte, end, process) in the order of issue; the
definitions are those of docs/design/contract.md."""

from collections import Counter, OrderedDict, defaultdict

DISCARDS = ("discard", "write_zeroes")


def cache_misses(requests, reach, size):
    """Misses of a least-recently-used cache of `size` translation pages: of a first round,
    of a second one, and those of the second by process."""
    cache, rounds, blame = OrderedDict(), [], Counter()
    for number in range(2):
        misses = 0
        for _, first, end, process in requests:
            for page in range(first // reach, (end - 1) // reach + 1):
                if page in cache:
                    cache.move_to_end(page)
                    continue
                misses += 1
                blame[process] += number
                cache[page] = True
                if len(cache) > size:
                    cache.popitem(last=False)
        rounds.append(misses)
    return rounds[0], rounds[1], +blame


def units_written(request, unit):
    """Every unit that a write touches."""
    _, first, end, _ = request
    return range(first // unit, -(-end // unit))


def units_discarded(request, unit):
    """The whole units within a discard."""
    _, first, end, _ = request
    return range(-(-first // unit), end // unit)


class LogBlocks:
    """A drive mapped by blocks of `units` units: every log block that was ever filled."""

    def __init__(self, units):
        self.units = units
        self.logs = defaultdict(list)
        self.valid = defaultdict(set)
        self.breaker = {}
        self.when_full = Counter()
        self.blame = Counter()
        self.written = 0

    def in_order(self, log):
        return log == list(range(len(log)))

    def write(self, unit, process):
        block, offset = divmod(unit, self.units)
        logs = self.logs[block]
        if not logs or len(logs[-1]) == self.units:
            logs.append([])
        log = logs[-1]
        ordered = self.in_order(log)
        log.append(offset)
        if ordered:
            # Who breaks the order, or who stops before the block is full.
            self.breaker[block] = process
        self.valid[block].add(offset)
        self.written += 1
        if len(log) == self.units:
            self.merge(self.when_full, block, self.blame)

    def discard(self, unit):
        block, offset = divmod(unit, self.units)
        self.valid[block].discard(offset)

    def merge(self, account, block, blame):
        """Makes a data block of the newest log block."""
        log, valid = self.logs[block][-1], self.valid[block]
        if self.in_order(log):
            rest = valid - set(log)
            account["partial" if rest else "switch"] += 1
        else:
            rest = valid
            account["full"] += 1
        account["copied"] += len(rest)
        if rest:
            blame[self.breaker.get(block, "(other)")] += len(rest)

    def finish(self):
        """Merges what is left; the account of merging at the end alone, and the other."""
        at_end = Counter()
        for block, logs in self.logs.items():
            pending = len(logs[-1]) < self.units
            if pending:
                self.merge(self.when_full, block, self.blame)
            if pending or self.valid[block] or self.in_order(logs[-1]):
                self.merge(at_end, block, Counter())
        return at_end, self.when_full

    def mapped(self):
        return sum(len(valid) for valid in self.valid.values())


class AppendLog:
    """A drive that never cleans: blocks of `units` units, filled one after the other, in
    each segment of `segment` units by itself, or in one (None)."""

    def __init__(self, units, segment):
        self.units = units
        self.segment = segment
        self.blocks = []
        self.open = {}
        self.place = {}

    def write(self, unit):
        self.discard(unit)
        segment = 0 if self.segment is None else unit // self.segment
        at = self.open.get(segment)
        if at is None or len(self.blocks[at]) == self.units:
            at = self.open[segment] = len(self.blocks)
            self.blocks.append([])
        self.blocks[at].append(unit)
        self.place[unit] = (at, len(self.blocks[at]) - 1)

    def discard(self, unit):
        place = self.place.pop(unit, None)
        if place is not None:
            at, slot = place
            self.blocks[at][slot] = None

    def valid(self, block):
        return sum(unit is not None for unit in block)

    def closed(self):
        """Valid units of each closed block that has any."""
        full = [block for block in self.blocks if len(block) == self.units]
        return [valid for valid in map(self.valid, full) if valid]

    def figures(self, unit_bytes):
        held = self.closed()
        by_valid = Counter(held)
        curve, sum_bytes = [], 0
        for valid in sorted(by_valid, reverse=True):
            sum_bytes += by_valid[valid] * self.units * unit_bytes
            curve.append([sum_bytes, valid / self.units])
        return {
            "block_bytes": self.units * unit_bytes,
            "held": len(held),
            "mixed": sum(valid < self.units for valid in held),
            "open": sum(len(block) < self.units for block in self.blocks),
            "curve": curve,
        }

    def density(self):
        held = self.closed()
        return sum(held) / (len(held) * self.units) if held else None

    def captives(self, writer, unit_bytes):
        """Garbage kept from being erased by the valid units of its block, by their writers."""
        blame = Counter()
        for block in self.blocks:
            valid = self.valid(block)
            if len(block) < self.units or not valid:
                continue
            for unit in filter(lambda unit: unit is not None, block):
                blame[writer[unit]] += (self.units - valid) / valid * unit_bytes
        return blame
