"""The flash library: every level, buffers of Python, files that outlive the process, threads."""

from __future__ import annotations

import os
import pathlib
import random
import threading
from collections.abc import Iterator

import numpy
import pytest

import prism
from prism import flash


@pytest.fixture(params=["memory", "file"])
def device(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[flash.Device]:
    if request.param == "memory":
        made = flash.Device.memory(blocks_per_lun=32)
    else:
        made = flash.Device.create(tmp_path / "flash.prism", blocks_per_lun=32)
    with made:
        yield made


def test_raw_level_has_the_rules_of_flash(device: flash.Device) -> None:
    with device.allocate("raw", "4MiB").raw() as raw:
        block = next(raw.blocks())
        page = bytes(range(256)) * 16
        raw.write_page(block, page, b"oob")
        assert raw.read_page(block) == page and raw.read_oob(block, 3) == b"oob"
        assert raw.read_page(block, 10, offset=5) == page[5:15]
        into = bytearray(raw.page_size)
        raw.read_page_into(block, into)
        assert into == page and raw.write_pointer(block) == 1
        with pytest.raises(prism.FlashError, match="page 0"):
            raw.write_page(block, page)
        raw.erase_block(block)
        assert raw.write_pointer(block) == 0 and raw.erase_count(block) >= 1
        raw.sync()


def test_function_level_allocates_and_erases(device: flash.Device) -> None:
    with device.allocate("function", "4MiB").function() as function:
        free = function.free(0)
        at = function.allocate_block(0)
        data = numpy.arange(2 * function.page_size // 8, dtype="u8")
        function.write(at, data)
        back = numpy.zeros_like(data)
        function.read_into(at, back)
        assert (back == data).all() and function.read(at, data.nbytes) == data.tobytes()
        assert [a._replace(page=0) for a in function.allocated()] == [at]
        assert function.free(0) < free
        function.trim_block(at)
        function.drain()
        assert function.free(0) == free and function.allocated() == []


def test_policy_level_is_an_array_of_bytes(device: flash.Device) -> None:
    with device.allocate("policy", "4MiB").policy() as policy:
        size = 2 << 20
        policy.configure(0, size)
        assert policy.ranges == [flash.Range(0, size, 0)]
        model = bytearray(size)
        sample = random.Random(1)
        for _ in range(400):
            at = sample.randrange(size - 9000)
            data = sample.randbytes(sample.randrange(1, 9000))
            policy.write(at, data)
            model[at : at + len(data)] = data
        policy.trim(0, policy.unit)
        model[: policy.unit] = bytes(policy.unit)
        policy.flush()
        assert policy.read(0, size) == model
        for bad in [{"mapping": "hash"}, {"cleaning": "best"}]:
            with pytest.raises(prism.Error, match="known are"):
                policy.configure(size, 2 * size, **bad)  # type: ignore[arg-type]


def test_objects_grow_and_are_deleted(device: flash.Device) -> None:
    with device.allocate("objects", "4MiB").objects() as objects:
        one, two = objects.create(lifetime="short"), objects.create()
        objects.write(one, b"first")
        assert objects.append(one, memoryview(b" and second")) == 5
        for bad in [2.0, "2"]:
            with pytest.raises(TypeError, match="length: a whole number is expected"):
                objects.read(one, bad)  # type: ignore[arg-type]
        with pytest.raises(prism.Error, match="offset: -1 is out of range"):
            objects.read(one, offset=-1)
        assert objects.read(one) == b"first and second" and objects.read(one, 3, offset=6) == b"and"
        objects.truncate(one, 5)
        assert objects.list() == {one: 5, two: 0} and objects.free < objects.capacity
        objects.delete(two)
        objects.flush()
        assert list(objects.list()) == [one]
        with pytest.raises(prism.FlashError):
            objects.size(two)


def test_keys_and_values_are_a_dictionary(device: flash.Device) -> None:
    with device.allocate("kv", "4MiB").key_value() as store:
        model: dict[bytes, bytes] = {}
        sample = random.Random(2)
        for _ in range(3000):
            key = b"%04d" % sample.randrange(1500)
            if sample.random() < 0.2 and key in model:
                del model[key], store[key]
            else:
                model[key] = store[key] = sample.randbytes(sample.randrange(200))
        assert len(store) == len(model) and list(store.items()) == sorted(model.items())
        assert dict(store) == dict(store.items()) == model
        keys, values = store.keys(), store.values()
        for _ in range(2):
            assert list(keys) == sorted(model) and list(values) == [model[key] for key in keys]
        assert len(keys) == len(values) == len(model) and next(iter(model)) in keys
        some = store.keys(b"0100", b"0200")
        assert list(some) == [key for key in keys if b"0100" <= key < b"0200"] and len(some) == len(list(some))
        assert list(store.values(b"0100", b"0200")) == [model[key] for key in some]
        assert list(store.items(b"0100", b"0200")) == sorted(
            (key, value) for key, value in model.items() if b"0100" <= key < b"0200"
        )
        assert b"none" not in store and store.get(b"none") is None
        for call in [lambda: store[b"none"], lambda: store.__delitem__(b"none")]:
            with pytest.raises(KeyError):
                call()
        store.flush()


def test_a_file_outlives_the_device(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "flash.prism"
    with flash.Device.create(path, blocks_per_lun=32) as device:
        with device.allocate("kv", "4MiB").key_value() as store:
            store[b"key"] = b"value"
            store.flush()
        with pytest.raises(prism.FlashError):
            flash.Device.open(path)
    with pytest.raises(prism.FlashError, match="closed"):
        device.attach("kv")
    with flash.Device.open(path) as device:
        assert [share.name for share in device.shares] == ["kv"]
        assert device.geometry == flash.Geometry(blocks_per_lun=32)
        with device.attach("kv").key_value() as store:
            assert store[b"key"] == b"value"
        with pytest.raises(prism.FlashError, match="closed"):
            store.flush()
        free = device.free_luns
        device.release("kv")
        assert device.free_luns > free and device.shares == [] and device.wear.max >= 0
    with pytest.raises(prism.FlashError, match="flash.prism"):
        flash.Device.create(path)


def test_a_fork_does_not_use_the_device(tmp_path: pathlib.Path) -> None:
    with flash.Device.create(tmp_path / "flash.prism", blocks_per_lun=32) as device:
        with device.allocate("policy", "4MiB").policy() as policy:
            policy.configure(0, 1 << 20)
            with policy.queue(1) as queue:
                calls = [
                    lambda: policy.write(0, bytes(4096)),
                    lambda: device.allocate("other", "1MiB"),
                    lambda: queue.poll(),
                ]
                child = os.fork()
                if child == 0:
                    refused = 0
                    try:
                        for call in calls:
                            try:
                                call()
                            except prism.FlashError as error:
                                refused += "of which this one is a fork" in str(error)
                    finally:
                        # Nothing else of the tests runs in this process.
                        os._exit(refused)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
            policy.write(0, b"here" * 1024)
            policy.flush()
            assert policy.read(0, 4) == b"here"


def test_buffers_are_checked(device: flash.Device) -> None:
    share = device.allocate("policy", "4MiB")
    with share.policy() as policy:
        policy.configure(0, 1 << 20)
        with pytest.raises(prism.Error, match="read-only"):
            policy.read_into(0, b"constant")
        with pytest.raises(prism.Error, match="one piece"):
            policy.write(0, numpy.zeros((8, 8))[:, ::2])
        with pytest.raises(TypeError):
            policy.write(0, "text")  # type: ignore[arg-type]
        objects = numpy.array([None] * 512, dtype=object)
        for call in (policy.write, policy.read_into):
            with pytest.raises(prism.Error, match="it holds objects of Python"):
                call(0, objects)
        policy.write(0, b"")
        with pytest.raises(prism.FlashError, match="no range has the address 1048576: configure one"):
            policy.read(1 << 20, 1)
        # More than there is memory for.
        with pytest.raises(prism.FlashError, match="the access ends at byte 1152921504606846976; the range ends at 1048576"):
            policy.read(0, 1 << 60)
        container = policy.create_container(0, "some", 1 << 18)
        assert container.read(1, 2) == bytes(2)
        with pytest.raises(prism.FlashError, match="the container ends at 262144"):
            container.read(1, 1 << 60)
        with pytest.raises(prism.FlashError, match="already"):
            share.raw()
    with device.allocate("raw", "1MiB").raw() as raw:
        at = next(raw.blocks())
        with pytest.raises(prism.FlashError, match="the page ends at 4096"):
            raw.read_page(at, 1 << 60)
        with pytest.raises(prism.FlashError, match="1152921504606846976 out-of-band bytes are too many"):
            raw.read_oob(at, 1 << 60)
    with device.allocate("function", "1MiB").function() as function:
        block = function.allocate_block()
        for call in (lambda: function.read(block, 1 << 60), lambda: function.read_into(block, bytearray(1 << 23))):
            with pytest.raises(prism.FlashError, match="page .* is out of range: there are .*, counted from 0"):
                call()
    with pytest.raises(prism.Error, match="channels: -1 is out of range"):
        flash.Device.memory(channels=-1)
    with pytest.raises(prism.Error, match="fields are channels"):
        flash.Device.memory(chanels=1)
    with pytest.raises(prism.Error, match="geometry: "):
        flash.Device.memory(channels=0)
    with pytest.raises(prism.Error, match="capacity: "):
        device.allocate("x", "5")


def test_threads_use_a_device_at_once(device: flash.Device) -> None:
    with device.allocate("policy", "8MiB").policy() as policy:
        policy.configure(0, 4 << 20)

        def work(part: int) -> None:
            for step in range(40):
                at = (part << 20) + step * 4096
                policy.write(at, bytes([part + 1]) * 4096)
                assert policy.read(at, 4096) == bytes([part + 1]) * 4096

        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for part in range(4):
            assert policy.read(part << 20, 40 * 4096) == bytes([part + 1]) * (40 * 4096)
