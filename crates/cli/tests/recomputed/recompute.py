"""Recomputes the figures of `prism report` from its Parquet files, with DuckDB and plain
models, and compares them with its JSON.

Counts must be equal, ratios to 1e-9. Quantiles of latencies: the JSON has the upper end of
the histogram's bucket that holds the value at rank ceil(q n), at most 1/1000 above it.

Usage: recompute.py REPORT.json TRACE.parquet REQUESTS.parquet PHASE
Prints each difference and, last, how many figures were compared; exits 1 if any differs.
"""

import json
import pathlib
import sys
from collections import Counter

import duckdb

from models import (
    DISCARDS, AppendLog, LogBlocks, cache_misses, units_discarded, units_written,
)

# Segments of a segmented drive (docs/design/contract.md); the report does not repeat it.
SEGMENT = 128 << 20
RATIO = 1e-9
QUANTILE = 1e-3
QUANTILES = ("p50", "p95", "p99", "p999")
# Most offenders listed per kind, and the least share of each.
LISTED, SHARE_MIN = 5, 0.01


class Comparison:
    """Compares figures of a report with recomputed ones."""

    def __init__(self, report):
        self.report = report
        self.compared = 0
        self.different = []

    def at(self, path):
        value = self.report
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value

    def check(self, path, ours):
        self.said(path, self.at(path), ours, same(self.at(path), ours))

    def check_quantile(self, path, ours):
        theirs = self.at(path)
        self.said(path, theirs, ours, ours <= theirs <= ours * (1 + QUANTILE))

    def said(self, path, theirs, ours, agree):
        self.compared += 1
        if not agree:
            self.different.append(f"{path}: the report says {theirs}, recomputed {ours}")

    def check_row(self, prefix, row):
        for name, value in row.items():
            self.check(prefix + name, value)

    def offenders(self, rule, amounts):
        """Compares the processes that break `rule`; one without a name only adds to the sum."""
        total = sum(amounts.values())
        named = [(name, amount) for name, amount in amounts.items() if name and total]
        named = [(name, a) for name, a in named if a > 0 and a / total >= SHARE_MIN]
        named.sort(key=lambda one: (-one[1], one[0]))
        ours = {name: amount for name, amount in named[:LISTED]}
        listed = self.report["rules"][rule]["offenders"]
        theirs = {one["name"]: one for one in listed if one["by"] == "process"}
        path = f"rules.{rule}.offenders"
        self.said(path, sorted(theirs), sorted(ours), sorted(theirs) == sorted(ours))
        for name in sorted(set(theirs) & set(ours)):
            amount, share = theirs[name]["amount"], theirs[name]["share"]
            self.said(f"{path}.{name}.amount", amount, ours[name], same(amount, ours[name]))
            part = ours[name] / total
            self.said(f"{path}.{name}.share", share, part, same(share, part))


def same(theirs, ours):
    """Whole numbers and words equal, others to 1e-9."""
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, float) and ours is not None:
        return abs(theirs - ours) <= RATIO * max(abs(theirs), abs(ours))
    return theirs == ours


class Queries:
    """The SQL files in this folder."""

    def __init__(self, variables):
        self.database = duckdb.connect()
        for name, value in variables.items():
            self.database.execute(f"SET VARIABLE {name} = ?", [value])
        self.database.execute(self.text("tables"))

    def text(self, name):
        return (pathlib.Path(__file__).parent / f"{name}.sql").read_text()

    def rows(self, name):
        found = self.database.execute(self.text(name))
        names = [column[0] for column in found.description]
        return [dict(zip(names, row)) for row in found.fetchall()]

    def requests(self, table):
        return self.database.execute(
            "SELECT op, first_byte, end_byte, coalesce(comm, '') "
            f"FROM {table} WHERE op <> 'flush' AND bytes > 0 ORDER BY place"
        ).fetchall()


def variables(report, trace, replayed, phase):
    device, result, rules = report["device"], report["result"], report["rules"]
    page = device["page_bytes"]
    return {
        "trace": trace,
        "replayed": replayed,
        "phase": phase,
        "page": page,
        "unit": device["mapping_unit_bytes"],
        # Those of the drive at its full size.
        "channels": rules["request_scale"]["figures"]["full_scale_bytes"] // page,
        "reach": rules["locality"]["figures"]["translation_page_reach_bytes"],
        "programmed": result["flash_bytes_programmed"],
    }


def by_queries(compare, queries):
    compare.check_row("", queries.rows("trace")[0])
    compare.check_row("", queries.rows("replay")[0])
    flash_units(compare, queries.rows("units")[0])
    for row in queries.rows("latency"):
        op = row.pop("op")
        for name, value in row.items():
            path = f"result.latency_ns.{op}.{name}"
            quantile = name in QUANTILES
            (compare.check_quantile if quantile else compare.check)(path, value)
    compare.check_row("rules.request_scale.", queries.rows("request_scale")[0])
    figures = "rules.request_scale.figures."
    for row in queries.rows("request_sides"):
        compare.check_row(figures + row.pop("side") + ".", row)
    compare.check_row(figures + "kib_between_barriers.", queries.rows("barriers")[0])
    lifetime = queries.rows("lifetime")[0]
    compare.check_row("rules.uniform_lifetime.figures.", lifetime)
    compare.check("rules.uniform_lifetime.score", 1 - lifetime["gini"])
    compare.check_row("rules.locality.figures.", queries.rows("locality")[0])
    for rule, name in [("request_scale", "scale"), ("uniform_lifetime", "lifetime")]:
        rows = queries.rows(f"{name}_offenders")
        compare.offenders(rule, {row["name"]: row["amount"] for row in rows})


def flash_units(compare, row):
    """The drive begins empty: what it programs for the host are the units that requests put
    into its buffer, less those that wait there at the end. Of these some may be on their way
    to flash: they are counted as programmed and keep their place until they are there. What
    is discarded while it waits is not programmed."""
    flash = compare.at("result.flash")
    buffered = compare.at("result.buffered_bytes") // compare.at("device.mapping_unit_bytes")
    host, put = flash["units"]["host"], row["put"]
    least = put - buffered - row["discarded"]
    compare.said("result.flash.units.host", host, f"{least} to {put}", least <= host <= put)
    covered = row["covered"]
    agree = covered == put + row["replaced"]
    compare.said("units of writes", put + row["replaced"], covered, agree)
    reads = flash["reads"]["host"] + flash["reads"]["rmw"]
    said = row["flash_reads"]
    compare.said("result.flash.reads.host and rmw", reads, said, reads == said)


def locality(compare, requests, reach):
    path = "rules.locality.figures."
    figures = compare.at(path[:-1])
    curve = figures["misses_by_cache_pages"]
    visits, lookups = figures["visits"], figures["lookups"]
    # Every small size, some of the larger ones, the one that misses nothing, and the next.
    sizes = sorted({*range(1, 9), *range(9, len(curve), 7), len(curve) - 1, len(curve)})
    for size in sizes:
        misses = cache_misses(requests, reach, size)[1]
        there = curve[size] if size < len(curve) else 0
        compare.said(f"{path}misses_by_cache_pages.{size}", there, misses, there == misses)
    for number, coverage in enumerate(figures["coverages"]):
        cold, misses, _ = cache_misses(requests, reach, coverage["cache_pages"])
        at = f"{path}coverages.{number}."
        compare.check(at + "cold_misses", cold)
        compare.check(at + "miss_ratio", misses / visits)
        compare.check(at + "miss_ratio_by_lookups", misses / lookups)
    _, misses, blame = cache_misses(requests, reach, figures["cache_pages"])
    compare.check("rules.locality.score", 1 - misses / visits)
    compare.offenders("locality", blame)


def alignment(compare, requests, unit):
    path = "rules.aligned_sequentiality."
    for number, figures in enumerate(compare.at(path + "figures.by_block")):
        model = LogBlocks(figures["block_bytes"] // unit)
        for request in requests:
            if request[0] == "write":
                for one in units_written(request, unit):
                    model.write(one, request[3])
            elif request[0] in DISCARDS:
                for one in units_discarded(request, unit):
                    model.discard(one)
        at = f"{path}figures.by_block.{number}."
        at_end, when_full = model.finish()
        for name, account in [("merged_at_end", at_end), ("merged_when_full", when_full)]:
            for kind in ("switch", "partial", "full"):
                compare.check(f"{at}{name}.{kind}", account[kind])
            compare.check(f"{at}{name}.bytes_copied", account["copied"] * unit)
        mapped, written = model.mapped(), model.written
        compare.check(at + "bytes_written", written * unit)
        compare.check(at + "bytes_mapped", mapped * unit)
        compare.check(at + "unaligned_ratio_by_live", at_end["copied"] / mapped)
        compare.check(at + "unaligned_ratio_by_traffic", when_full["copied"] / written)
    # The score stands for the last size, and so do the offenders.
    compare.check(path + "score", written / (written + when_full["copied"]))
    blame = {process: units * unit for process, units in model.blame.items()}
    compare.offenders("aligned_sequentiality", blame)


def grouping(compare, requests, later, unit):
    path = "rules.grouping_by_death_time."
    block = compare.at(path + "figures.unsegmented.block_bytes") // unit
    logs = {"unsegmented": AppendLog(block, None), "segmented": AppendLog(block, SEGMENT // unit)}
    whole, writer, count = logs["unsegmented"], {}, Counter()
    for request in requests:
        if request[0] == "write":
            for one in units_written(request, unit):
                count["written"] += 1
                count["overwritten"] += one in whole.place
                writer[one] = request[3]
                for log in logs.values():
                    log.write(one)
        elif request[0] in DISCARDS:
            for one in units_discarded(request, unit):
                count["discarded"] += one in whole.place
                for log in logs.values():
                    log.discard(one)
    count["mapped"] = len(whole.place)
    dead = {
        one
        for _, first, end, _ in later
        for one in whole.place
        if first <= one * unit and (one + 1) * unit <= end
    }
    count["discarded_later"] = len(dead)
    for name in ("written", "overwritten", "discarded", "mapped", "discarded_later"):
        compare.check(f"{path}figures.bytes_{name}", count[name] * unit)
    for name, log in logs.items():
        for key, value in log.figures(unit).items():
            compare.check(f"{path}figures.{name}.{key}", value)
    compare.check(path + "figures.density", whole.density())
    compare.check(path + "figures.density_segmented", logs["segmented"].density())
    compare.check(path + "score", whole.density())
    compare.offenders("grouping_by_death_time", whole.captives(writer, unit))


def main(report, trace, replayed, phase):
    report = json.loads(pathlib.Path(report).read_text())
    compare = Comparison(report)
    given = variables(report, trace, replayed, phase)
    queries = Queries(given)
    by_queries(compare, queries)
    requests, later = queries.requests("judged"), queries.requests("later")
    unit = given["unit"]
    locality(compare, requests, given["reach"])
    alignment(compare, requests, unit)
    grouping(compare, requests, later, unit)
    print(*compare.different, sep="\n")
    print(f"{compare.compared} figures compared, {len(compare.different)} differ")
    return 1 if compare.different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
