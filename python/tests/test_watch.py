"""Long work is interrupted by Ctrl-C, shows its progress, and lets other threads run."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable

import pytest

import prism

LONG = {"rw": "randwrite", "bs": "4k", "iodepth": 32, "io_size": "1t"}


class Shown:
    """Remembers its calls, and acts after a number of them."""

    def __init__(self, after: int = 0, act: object = None) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.after, self.act = after, act

    def note(self, *call: object) -> None:
        self.calls.append(call)
        if self.act is not None and len(self.calls) == self.after:
            self.act()  # type: ignore[operator]

    def begin(self, label: str, things: str, total: int | None) -> None:
        self.note("begin", label, things, total)

    def reached(self, done: int) -> None:
        self.note("reached", done)

    def end(self, done: int) -> None:
        self.note("end", done)


class Late(Shown):
    """As slow as a notebook at the end of a step."""

    def end(self, done: int) -> None:
        time.sleep(0.1)
        self.note("end", done)


def test_steps_are_shown(sample: str) -> None:
    shown = Shown()
    trace = prism.read_trace(sample, progress=shown)
    assert shown.calls[0][:3] == ("begin", "reading", "bytes")
    assert shown.calls[-1] == ("end", shown.calls[0][3])
    # However late the step ends, nothing is reached after that.
    shown = Late()
    prism.read_trace(sample, progress=shown)
    assert shown.calls[-1] == ("end", shown.calls[0][3])
    shown = Shown()
    prism.report(trace, what_if=["merge"], progress=shown)
    labels = [call[1] for call in shown.calls if call[0] == "begin"]
    assert "replaying:" in labels and any("what-if" in str(label) for label in labels)


@pytest.mark.parametrize(
    ("victim", "labels"),
    [
        ("greedy", ["laying out the steady state:", "filling the drive:"]),
        # Its steady state has no closed form.
        ("cost-benefit", ["filling the drive:"]),
    ],
)
def test_steps_of_a_preparation_have_their_labels(victim: str, labels: list[str]) -> None:
    shown = Shown()
    prism.simulate(
        {"rw": "randwrite", "io_size": "1m"}, capacity="64MiB", state="preconditioned",
        set={"ftl.victim": victim}, progress=shown,
    )
    begun = [call[1] for call in shown.calls if call[0] == "begin"]
    assert begun[: len(labels)] == labels and begun.count("filling the drive:") == 1


def simulate() -> None:
    prism.simulate(LONG, capacity="256MiB", progress=False)


def sweep() -> None:
    prism.sweep({"capacity": "256MiB", **LONG}, jobs=2, repeats=4, progress=False)


def run_design() -> None:
    from prism import _prism

    base = "".join(f"{name} = {json.dumps(value)}\n" for name, value in LONG.items())
    planned = _prism.plan_sweep("s", "", f'[base]\ncapacity = "256MiB"\n{base}', {}, None, False)
    prism.run_design(planned.open_designs()[0])


@pytest.mark.parametrize("work", [simulate, sweep, run_design])
def test_ctrl_c_ends_work(work: Callable[[], None]) -> None:
    """Nothing is shown, so it is the work itself that asks for signals."""

    def interrupt() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    # A process in the background may begin with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt).start()
            work()
    finally:
        signal.signal(signal.SIGINT, before)
    # The interpreter and the package go on.
    assert prism.simulate(rw="read", io_size="1m", capacity="256MiB")["seed"] == 1


def test_an_exception_of_the_display_ends_the_work(
    trace: prism.Trace, tmp_path: pathlib.Path
) -> None:
    class Enough(Exception):
        pass

    def stop() -> None:
        raise Enough

    with pytest.raises(Enough):
        prism.simulate(LONG, capacity="256MiB", progress=Shown(4, stop))
    # While what-ifs run on other threads.
    class InWhatIfs(Shown):
        inside = False

        def begin(self, label: str, things: str, total: int | None) -> None:
            self.inside = "what-if" in label

        def reached(self, done: int) -> None:
            if self.inside:
                raise Enough

    with pytest.raises(Enough):
        prism.report(trace, progress=InWhatIfs())


def test_other_threads_run_meanwhile() -> None:
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    prism.simulate(rw="randwrite", bs="4k", iodepth=32, io_size="256m", capacity="256MiB")
    over.set()
    thread.join()
    assert counted - before > 100


def test_simulations_run_on_threads_at_once() -> None:
    options = {"rw": "randwrite", "bs": "4k", "io_size": "16m"}
    expected = prism.simulate(options, capacity="256MiB")["result"]
    found: list[object] = []
    work = lambda: found.append(prism.simulate(options, capacity="256MiB")["result"])  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
