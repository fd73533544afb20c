"""The flash library: commands in flight, clocks, containers, several buffers at once."""

from __future__ import annotations

import pathlib
import random
import select
import threading
from collections.abc import Iterator

import numpy
import pytest

import prism
from prism import flash


@pytest.fixture(params=["memory", "file", "portable", "timed", "real"])
def device(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[flash.Device]:
    if request.param == "memory":
        made = flash.Device.memory(blocks_per_lun=32)
    elif request.param == "timed":
        made = flash.Device.memory(blocks_per_lun=32, timing="dc-tlc")
    elif request.param == "real":
        made = flash.Device.memory(blocks_per_lun=32, timing="dc-tlc", real_time=True)
    else:
        engine = "portable" if request.param == "portable" else "best"
        made = flash.Device.create(tmp_path / "flash.prism", blocks_per_lun=32, engine=engine)
    with made:
        yield made


def test_commands_of_blocks_complete_with_their_tags(device: flash.Device) -> None:
    """What was written from each buffer is read into another, in any order of completion."""
    with device.allocate("raw", "4MiB").raw() as raw, raw.queue(16) as queue:
        blocks = list(raw.blocks())[:4]
        pages = [bytearray([number]) * raw.page_size for number in range(4)]
        for number, (block, page) in enumerate(zip(blocks, pages, strict=True)):
            queue.write(block, page, oob=b"x", tag=("write", number))
        queue.sync("sync")
        assert len(queue) == 5
        done = list(queue)
        assert {c.tag for c in done} == {("write", n) for n in range(4)} | {"sync"}
        assert all(c.error is None for c in done) and len(queue) == 0
        assert (done[-1].end_ns > 0) == raw.is_timed
        into = [numpy.zeros(raw.page_size, dtype="u1") for _ in range(4)]
        for number, block in enumerate(blocks):
            queue.read(block, into[number], tag=number)
        assert sorted(c.tag for c in queue) == [0, 1, 2, 3]  # type: ignore[type-var]
        assert all((array == number).all() for number, array in enumerate(into))
        part = bytearray(10)
        queue.read(blocks[2], part, offset=100)
        queue.erase(blocks[3], tag="erase")
        assert len(list(queue)) == 2 and part == bytes([2]) * 10
        assert raw.write_pointer(blocks[3]) == 0
        queue.write(blocks[0], b"short", tag="wrong")
        wrong = queue.complete()
        assert wrong is not None and wrong.tag == "wrong" and wrong.error is not None
        assert queue.poll() is None and queue.complete() is None


def test_a_full_queue_is_refused_and_keeps_its_commands(device: flash.Device) -> None:
    with device.allocate("function", "4MiB").function() as function:
        with function.queue(2) as queue:
            at = function.allocate_block()
            page = bytearray(function.page_size)
            queue.write(at, page, tag=1)
            queue.write(at._replace(page=1), page, tag=2)
            with pytest.raises(prism.FlashError, match="full"):
                queue.write(at._replace(page=2), page, tag=3)
            assert queue.wait()
            assert [c.tag for c in queue] == [1, 2]
            with pytest.raises(prism.Error, match="read-only"):
                queue.read(at, b"constant")
        with pytest.raises(prism.FlashError, match="closed"):
            queue.poll()


def test_random_commands_of_addresses_against_an_array(device: flash.Device) -> None:
    sample = random.Random(5)
    size = 1 << 20
    expected = bytearray(size)
    with device.allocate("policy", "8MiB").policy() as policy, policy.queue(8) as queue:
        policy.configure(0, size)
        reads: dict[int, tuple[bytes, bytearray]] = {}
        for number in range(400):
            while len(queue) == 8:
                done = queue.complete()
                assert done is not None and done.error is None
                if done.tag in reads:
                    wanted, found = reads.pop(int(done.tag))  # type: ignore[call-overload]
                    assert found == wanted
            at = sample.randrange(size - 20_000)
            length = sample.randrange(1, 20_000)
            if sample.random() < 0.5:
                data = sample.randbytes(length)
                # Both kinds of memory.
                queue.write(at, data if number % 2 else bytearray(data), tag=number)
                expected[at : at + length] = data
                # A later read in flight may see a later write.
                for done in queue:
                    if done.tag in reads:
                        wanted, found = reads.pop(int(done.tag))  # type: ignore[call-overload]
                        assert found == wanted
            elif sample.random() < 0.1:
                queue.sync(number)
            else:
                found = bytearray(length)
                reads[number] = (bytes(expected[at : at + length]), found)
                queue.read(at, found, tag=number)
        list(queue)
        assert all(found == wanted for wanted, found in reads.values())
        unit = policy.unit
        queue.trim(0, unit)
        assert [c.error for c in queue] == [None]
        assert policy.read(0, unit) == bytes(unit)


def test_a_level_is_free_when_its_queues_are_closed() -> None:
    with flash.Device.memory() as device:
        share = device.allocate("raw", "4MiB")
        raw = share.raw()
        queue = raw.queue()
        with pytest.raises(prism.FlashError, match="a queue of the level is open"):
            raw.grow(1)
        raw.close()
        with pytest.raises(prism.FlashError):
            device.attach("raw")
        queue.close()
        device.attach("raw").close()


def test_queues_have_at_least_a_command(device: flash.Device) -> None:
    with device.allocate("raw", "4MiB").raw() as raw:
        with pytest.raises(prism.FlashError, match="depth: a queue has at least 1 command"):
            raw.queue(0)
        with pytest.raises(OverflowError):
            raw.queue(-1)
        with raw.queue(1) as queue:
            # Any object is a tag.
            tag = {"of": "a command"}
            queue.read(next(iter(raw.blocks())), bytearray(16), tag=tag)
            done = queue.complete()
            assert done is not None and done.tag is tag


def test_files_have_event_loops(tmp_path: pathlib.Path) -> None:
    with flash.Device.create(tmp_path / "f.prism", preallocate=True, depth=8) as device:
        with device.allocate("raw", "4MiB").raw() as raw, raw.queue(64) as queue:
            blocks = list(raw.blocks())[:32]
            for block in blocks:
                queue.write(block, bytearray(raw.page_size), tag=block)
            seen = 0
            while seen < len(blocks):
                while queue.poll() is not None:
                    seen += 1
                if seen < len(blocks):
                    select.select([queue], [], [], 10)
            assert seen == len(blocks)
    with flash.Device.open(tmp_path / "f.prism", read_only=True, engine="portable") as device:
        assert [share.name for share in device.shares] == ["raw"]
    with pytest.raises(prism.Error, match="engine: \"fast\" is unknown"):
        flash.Device.open(tmp_path / "f.prism", engine="fast")


def test_operations_take_the_time_of_a_drive() -> None:
    drive = prism.device("dc-tlc")
    drive["flash"]["t_read"] = "1ms"
    with flash.Device.memory(timing=drive) as device:
        with device.allocate("raw", "4MiB").raw() as raw:
            block = next(raw.blocks())
            raw.write_page(block, bytes(raw.page_size))
            begun = raw.now_ns
            raw.read_page(block)
            assert 1_000_000 <= raw.now_ns - begun < 1_200_000
            raw.pass_time(5)
            assert raw.is_timed
    with flash.Device.memory() as device, device.allocate("raw", "4MiB").raw() as raw:
        assert not raw.is_timed and raw.now_ns == 0
        assert len(raw.queue()) == 0
        with pytest.raises(prism.FlashError, match="complete when they are submitted"):
            raw.queue().fileno()
    with pytest.raises(prism.FlashError):
        flash.Device.memory(real_time=True)
    with flash.Device.memory(timing="dc-tlc", real_time=True) as device:
        with device.allocate("policy", "4MiB").policy() as policy:
            begun = policy.now_ns
            policy.pass_time(2_000_000)
            assert policy.now_ns - begun >= 2_000_000


def test_several_buffers_and_pages_at_once(device: flash.Device) -> None:
    with device.allocate("raw", "4MiB").raw() as raw:
        first, second, *_ = raw.blocks()
        raw.write_vectored(first, [b"a" * raw.page_size, bytearray(b"b" * 2 * raw.page_size)])
        raw.write_page(second, b"c" * raw.page_size)
        into = bytearray(2 * raw.page_size)
        raw.read_pages_into([second, first._replace(page=2)], into)
        assert into == b"c" * raw.page_size + b"b" * raw.page_size
        raw.erase_blocks([first, second])
        assert raw.write_pointer(first) == raw.write_pointer(second) == 0
        luns = sum(raw.channels)
        raw.grow(1)
        assert sum(raw.channels) == luns + 1
        raw.shrink(1)
        assert sum(raw.channels) == luns
    device.release("raw")
    with device.allocate("function", "4MiB").function() as function:
        at = function.allocate_block()
        function.write_vectored(at, [b"d" * function.page_size] * 2)
        assert function.read(at, 2 * function.page_size) == b"d" * 2 * function.page_size
    device.release("function")
    with device.allocate("policy", "8MiB").policy() as policy:
        policy.configure(
            0, 8 * policy.block_bytes, mapping="hybrid", group_blocks=2, group_log_blocks=1
        )
        policy.write_vectored(10, [b"one", bytearray(b"two")])
        some, more = bytearray(3), bytearray(2)
        policy.read_vectored([(13, some), (10, more)])
        assert (some, more) == (b"two", b"on")


def test_containers_are_named_parts_of_a_range(device: flash.Device) -> None:
    with device.allocate("policy", "8MiB").policy() as policy:
        policy.configure(0, 1 << 20, handles=5)
        log = policy.create_container(0, "log", 1 << 16, lifetime="short")
        table = policy.create_container(0, "table", 1 << 16, lifetime="long")
        log.write(5, b"record")
        assert log.read(5, 6) == b"record" and table.read(5, 6) == bytes(6)
        assert policy.read(log.begin + 5, 6) == b"record"
        assert {name: of.lifetime for name, of in policy.containers.items()} == {
            "log": "short", "table": "long"
        }
        assert log.size == 1 << 16 and "log" in repr(log)
        log.trim(0, policy.unit)
        assert log.read(5, 6) == bytes(6)
        log.delete()
        assert list(policy.containers) == ["table"]
        with pytest.raises(prism.FlashError, match="no container named \"log\""):
            log.read(0, 1)
        with pytest.raises(prism.Error, match="lifetime: \"soon\" is unknown"):
            policy.create_container(0, "x", 1 << 16, lifetime="soon")


def test_queues_of_several_threads_end_with_commands_in_flight(device: flash.Device) -> None:
    """Closed or forgotten, they wait for their commands, and no thread waits for another."""
    with device.allocate("policy", "8MiB").policy() as policy:
        policy.configure(0, 1 << 20)

        def open_and_end(number: int) -> None:
            for turn in range(50):
                queue = policy.queue(4)
                for page in range(4):
                    queue.write(page << 12, bytearray([number]) * 4096, tag=page)
                if turn % 2:
                    queue.close()
                del queue

        threads = [threading.Thread(target=open_and_end, args=(n,)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert policy.read(0, 1) in {b"\1", b"\2"}


def test_clocks_end_after_292_years() -> None:
    with flash.Device.memory(timing="dc-tlc") as device:
        with device.allocate("raw", "4MiB").raw() as raw, raw.queue(2) as queue:
            with pytest.raises(prism.FlashError, match="292 years"):
                raw.pass_time(2**64 - 1)
            queue.read(next(iter(raw.blocks())), bytearray(16))
            assert queue.wait(2**64 - 1) and queue.complete() is not None
