#!/usr/bin/env python3
"""Draws the losses of `reprise train --json` as text and prints the run's figures.

Usage: loss_curve.py FILE.json [--accuracy LEAST]
Exits with 1 when the test accuracy is below LEAST (a fraction), or when the loss has not fallen in a
run of 50 steps or more.
"""

import argparse
import json
import math
import sys

WIDTH, HEIGHT = 72, 14


def smooth(values, count):
    """`count` means over consecutive parts of `values`."""
    count = min(count, len(values))
    edges = [len(values) * i // count for i in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]


def draw(losses):
    points = smooth(losses, WIDTH)
    low, high = min(points), max(points)
    span = (high - low) or 1.0
    level = [round((high - p) / span * (HEIGHT - 1)) for p in points]
    lines = []
    for row in range(HEIGHT):
        label = f"{high - span * row / (HEIGHT - 1):8.3f} |"
        lines.append(label + "".join("*" if at == row else " " for at in level).rstrip())
    lines.append(" " * 9 + "+" + "-" * len(points))
    lines.append(" " * 10 + f"step 1{'':{max(0, len(points) - 12)}}{len(losses):>6}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--accuracy", type=float, default=0.0)
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        run = json.load(file)
    losses = run["losses"]
    if not losses or any(loss is None or not math.isfinite(loss) for loss in losses):
        sys.exit(f"{options.file}: a loss is missing or not finite")
    plan, mib = run["plan"], 1 << 20
    print(f"\nloss of {plan['model']}")
    print(draw(losses))
    print(f"peak {run['peak_bytes_measured'] / mib:.1f} MiB measured, "
          f"budget {plan['budget_bytes'] / mib:.1f} MiB, "
          f"keeping everything {plan['keep_all_bytes'] / mib:.1f} MiB; "
          f"{run['ms_per_step']:.1f} ms per step, "
          f"recomputation planned to add {plan['overhead'] * 100:.1f} %")
    if run["test_accuracy"] is not None:
        print(f"test accuracy: {run['test_accuracy'] * 100:.2f} %")
    if (run["test_accuracy"] or 0.0) < options.accuracy:
        sys.exit(f"the test accuracy is below {options.accuracy * 100:.0f} %")
    tenth = len(losses) // 10
    if len(losses) >= 50 and sum(losses[-tenth:]) >= sum(losses[:tenth]):
        sys.exit("the loss has not fallen")


if __name__ == "__main__":
    main()
