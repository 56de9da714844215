#!/usr/bin/env python3
"""Trains three networks at full size with every planner at many budgets, and compares.

For resnet20 (Fashion-MNIST, batch 64, 20 steps), an LSTM with dropout (text, 256 time steps, hidden
256, 20 steps) and resnet50 (synthetic images, batch 4, 3 steps):

  - losses and state_hash are those of keep_all, whatever the planner and the budget
  - planned peak == measured peak <= budget; cost never rises as the budget grows
  - one byte below a planner's floor: exit code 3 and the floor in message and JSON; at the floor it trains

Takes 10 to 30 minutes on two cores, which is why it is no part of scripts/test.sh.
Usage: tests/long/budgets_and_bits.py [--program build/release/bin/reprise] [--text FILE]
       [--only NAME] [--budgets 20]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PLANNERS_WITH_MANY_BUDGETS = ("auto",)
OTHERS_BUDGETS = 5
MIB = 1 << 20


def cases(text):
    """Name -> flags of a run."""
    return {
        "resnet20": ["--model", "resnet20", "--data", "fashion-mnist", "--batch", "64", "--steps", "20"],
        "lstm": ["--model", "lstm", "--data", f"text:{text}", "--seq-len", "256", "--hidden", "256",
                 "--chunk", "16", "--batch", "16", "--dropout", "0.1", "--optimizer", "adam",
                 "--steps", "20"],
        "resnet50": ["--model", "resnet50", "--data", "synthetic", "--batch", "4", "--steps", "3"],
    }


class Runner:
    def __init__(self, program):
        self.program = program
        self.failures = 0

    def expect(self, condition, message):
        if not condition:
            self.failures += 1
            print(f"FAILED: {message}", flush=True)

    def run(self, command, flags):
        """(exit code, JSON document)."""
        # Threads that wait give their core back: beside other programs spinning is very slow.
        result = subprocess.run([self.program, command, *flags, "--json"], capture_output=True,
                                text=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        try:
            return result.returncode, json.loads(result.stdout)
        except json.JSONDecodeError:
            sys.exit(f"no JSON from {command} {' '.join(flags)}:\n{result.stdout}\n{result.stderr}")

    def train(self, flags, planner, budget):
        return self.run("train", [*flags, "--no-eval", "--planner", planner, "--budget", str(budget)])

    def planners(self):
        listed = self.run("doctor", [])[1]
        return listed["planners"]


def spaced(low, high, count):
    """`count` budgets from high down to low, both included."""
    return [high - (high - low) * k // (count - 1) for k in range(count)]


def check_refusal(runner, flags, planner, floor):
    code, answer = runner.train(flags, planner, floor - 1)
    error = answer.get("error", {})
    where = f"{planner} one byte below its floor of {floor}"
    runner.expect(code == 3, f"{where}: exit code {code}, not 3")
    runner.expect(error.get("floor_bytes") == floor, f"{where}: floor_bytes {error.get('floor_bytes')}")
    runner.expect(str(floor) in error.get("message", ""), f"{where}: message {error.get('message')}")


def planner_floor(runner, flags, planner):
    """What the planner says that it needs when it gets next to nothing."""
    code, answer = runner.train(flags, planner, 1)
    runner.expect(code == 3, f"{planner} with 1 byte: exit code {code}, not 3")
    return answer["error"]["floor_bytes"]


def check_planner(runner, flags, planner, reference, budgets):
    """Runs at each budget, largest first."""
    last_cost = 0
    for budget in budgets:
        code, answer = runner.train(flags, planner, budget)
        where = f"{planner} at {budget}"
        if code != 0:
            runner.expect(False, f"{where}: exit code {code}: {answer}")
            continue
        plan = answer["plan"]
        runner.expect(answer["losses"] == reference["losses"], f"{where}: losses differ")
        runner.expect(answer["state_hash"] == reference["state_hash"], f"{where}: state_hash differs")
        runner.expect(answer["peak_bytes_measured"] == plan["peak_bytes"], f"{where}: peak not as planned")
        runner.expect(answer["peak_bytes_measured"] <= budget, f"{where}: peak above the budget")
        runner.expect(plan["cost_ns"] >= last_cost, f"{where}: cost fell as the budget shrank")
        last_cost = plan["cost_ns"]
        print(f"  {planner:9} budget {budget / MIB:8.2f} MiB  peak {plan['peak_bytes'] / MIB:8.2f} MiB  "
              f"+{100 * plan['overhead']:5.1f} % planned  {answer['ms_per_step']:8.1f} ms a step  "
              f"{answer['state_hash']}", flush=True)


def check_case(runner, name, flags, count):
    code, reference = runner.train(flags, "keep_all", "unlimited")
    if code != 0:
        runner.expect(False, f"{name}: keep_all without a budget: exit code {code}: {reference}")
        return
    keep_all = reference["plan"]["keep_all_bytes"]
    losses = reference["losses"]
    print(f"{name}: keep_all {keep_all / MIB:.2f} MiB, losses {losses[0]:.4f} ... {losses[-1]:.4f}, "
          f"{reference['state_hash']}", flush=True)
    for planner in runner.planners():
        floor = planner_floor(runner, flags, planner)
        check_refusal(runner, flags, planner, floor)
        many = count if planner in PLANNERS_WITH_MANY_BUDGETS else OTHERS_BUDGETS
        check_planner(runner, flags, planner, reference, spaced(floor, keep_all, many))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/bin/reprise")
    parser.add_argument("--text", help="default: the book that Debian's bible-kjv prints")
    parser.add_argument("--only", help="one of resnet20, lstm, resnet50")
    parser.add_argument("--budgets", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = arguments.text or pathlib.Path(folder) / "book.txt"
        if not arguments.text:
            text.write_bytes(subprocess.check_output(["bible", "-l", "72", "gen1:1-rev22:21"]))
        runner = Runner(arguments.program)
        for name, flags in cases(text).items():
            if arguments.only in (None, name):
                check_case(runner, name, flags, arguments.budgets)
    print(f"{runner.failures} failures")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(main())
