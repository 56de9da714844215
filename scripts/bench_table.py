#!/usr/bin/env python3
"""Prints the JSON of a benchmark program as a short table: median, spread and counters.

Usage: bench_table.py FILE.json
"""

import json
import sys

UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def human(ns):
    for unit in ("s", "ms", "us"):
        if ns >= UNITS[unit]:
            return f"{ns / UNITS[unit]:.3g} {unit}"
    return f"{ns:.3g} ns"


def number(value):
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


# Fields of a run that are no counters of ours.
OWN = {"iterations", "real_time", "cpu_time", "repetitions", "repetition_index", "threads",
       "family_index", "per_family_instance_index"}


def rows(runs):
    """(name, ns, spread in %, counters) of each benchmark; medians where there were repetitions."""
    spread = {r["run_name"]: r["real_time"] * 100 for r in runs if r.get("aggregate_name") == "cv"}
    for run in runs:
        if run.get("aggregate_name", "median") != "median" or run.get("error_occurred"):
            continue
        counters = {k: v for k, v in run.items()
                    if k not in OWN and isinstance(v, (int, float)) and not isinstance(v, bool)}
        yield run["run_name"], run["real_time"] * UNITS[run["time_unit"]], \
            spread.get(run["run_name"]), counters


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    lines = list(rows(report["benchmarks"]))
    width = max([len(name) for name, *_ in lines] + [9])
    print(f"{'benchmark':<{width}}  {'time':>9}  {'spread':>7}  counters")
    for name, ns, cv, counters in lines:
        shown = "  ".join(f"{k}={number(v)}" for k, v in counters.items())
        print(f"{name:<{width}}  {human(ns):>9}  {'' if cv is None else f'{cv:.1f} %':>7}  {shown}")
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            print(f"{run['run_name']}: {run.get('error_message', 'failed')}")


if __name__ == "__main__":
    main()
