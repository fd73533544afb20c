"""A program that mypy checks against the stubs, as a user's editor does."""

import prism


def amplification(path: str) -> float:
    trace: prism.Trace = prism.read_trace(path, phase="app")
    report: prism.Report = prism.report(trace, device="dc-tlc", set={"ftl.victim": "fifo"})
    table: prism.Table = report.rules
    names: list[str] = table.column_names
    print(names, len(trace), report.text())
    value: float = report["result"]["write_amplification"]
    jobs: prism.Table = prism.simulate(rw="randwrite", bs="4k").jobs
    rules: prism.Table = prism.simulate(trace, passes=1).rules
    print(len(jobs), len(rules))
    return value
