#!/usr/bin/env python3
"""Solves random problems of mixed form and size and replays each answer.

    random_problems.py REPRISE [--count 10000] [--first 0] [--jobs N] [--keep FOLDER]

Problem n is the same on every machine. For each:

  - every schedule replays, to the cost and peak that are stated, and its peak is within the budget
  - no planner goes below the lower bound, or below a cost called optimal
  - auto's floor can be planned for, and one byte less is refused
  - with auto, a larger budget never costs more
  - the same problem gives the same answer, whatever the number of threads
  - a damaged file is read or refused with exit code 2 and an error document

The first fault ends the run; the problem is written to FOLDER (default: this one).
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import subprocess
import sys

import replay
from solver import Solver

TIMES = ("plan_ms",)  # what may differ between two runs


# ---- problems ------------------------------------------------------------------------------------

def sizes(rng):
    """A way to draw bytes: small ones meet by chance, large ones hardly ever, some are 0."""
    family = rng.randrange(4)
    if family == 0:
        return lambda: rng.randint(1, 9)
    if family == 1:
        return lambda: rng.randint(0, 1 << 30)
    if family == 2:
        return lambda: 1 << rng.randrange(24)
    return lambda: rng.choice((0, 4096, 8192, 65536))


def costs(rng):
    top = rng.choice((1, 5, 1000, 10**9))
    return lambda: rng.randint(0 if top > 1 and rng.random() < 0.1 else 1, top)


def log_uniform(rng, low, high):
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


def training_graph(rng):
    """Forward ops with skips, then a backward op for each, which reads some of what its forward op
    read and made. Now and then an op works in place."""
    size, cost = sizes(rng), costs(rng)
    tensors = [{"bytes": size(), "kind": "input"}]
    ops = []
    made = [0]
    for _ in range(log_uniform(rng, 1, 60 if rng.random() < 0.95 else 200)):
        inputs = {made[-1]}
        while rng.random() < 0.25:
            inputs.add(rng.choice(made[-8:]))
        tensors.append({"bytes": size()})
        made.append(len(tensors) - 1)
        ops.append({"inputs": sorted(inputs), "outputs": [made[-1]], "cost": cost(),
                    "workspace": size() if rng.random() < 0.2 else 0,
                    "recomputable": rng.random() > 0.05})
    gradient = made[-1]
    for op in list(reversed(ops)):
        reads = {gradient} | {t for t in op["inputs"] + op["outputs"] if rng.random() < 0.5}
        tensors.append({"bytes": size()})
        outputs = [len(tensors) - 1]
        if rng.random() < 0.3:
            tensors.append({"bytes": size(), "kind": "output"})
            outputs.append(len(tensors) - 1)
        ops.append({"inputs": sorted(reads), "outputs": outputs, "cost": cost(),
                    "workspace": size() if rng.random() < 0.2 else 0,
                    "recomputable": rng.random() < 0.3})
        gradient = outputs[0]
    tensors[gradient]["kind"] = "output"
    if rng.random() < 0.3:
        make_inplace(rng, tensors, ops)
    return {"tensors": tensors, "ops": ops}


def random_graph(rng):
    size, cost = sizes(rng), costs(rng)
    tensors = [{"bytes": size(), "kind": "input"} for _ in range(rng.randint(1, 3))]
    ops = []
    for _ in range(log_uniform(rng, 1, 40)):
        inputs = rng.sample(range(len(tensors)), rng.randint(0, min(3, len(tensors))))
        outputs = []
        for _ in range(1 + (rng.random() < 0.2)):
            tensors.append({"bytes": size(), "kind": "output" if rng.random() < 0.1 else "temp"})
            outputs.append(len(tensors) - 1)
        ops.append({"inputs": inputs, "outputs": outputs, "cost": cost(),
                    "workspace": size() if rng.random() < 0.2 else 0,
                    "recomputable": rng.random() > 0.1})
    tensors[-1]["kind"] = "output"
    return {"tensors": tensors, "ops": ops}


def make_inplace(rng, tensors, ops):
    """Ops that are the last in the list to read a temp may work in its bytes."""
    last = {t: k for k, op in enumerate(ops) for t in op["inputs"]}
    for k, op in enumerate(ops):
        place = rng.randrange(len(op["inputs"]))
        t, out = op["inputs"][place], op["outputs"][0]
        if last[t] == k and tensors[t].get("kind") is None and tensors[out].get("kind") is None:
            op["inplace"] = place
            tensors[out]["bytes"] = tensors[t]["bytes"]


def add_choices(rng, ops):
    """Some ops may run in several ways; not all of those are worth having."""
    size, cost = sizes(rng), costs(rng)
    for op in ops:
        if rng.random() < 0.6:
            op["choices"] = [{"workspace": op.pop("workspace", 0), "cost": op.pop("cost")}]
            op["choices"] += [{"workspace": size(), "cost": cost()}
                              for _ in range(rng.randint(0, 3))]


def chain(rng):
    size, cost = sizes(rng), costs(rng)
    n = log_uniform(rng, 1, 40)
    a = [size() for _ in range(n + 1)]
    some = rng.random() < 0.5
    return {"chain": {
        "L": n, "a": a, "b": [x + size() for x in a],
        "g": list(a) if rng.random() < 0.5 else [size() for _ in a],
        "uf": [cost() for _ in range(n)], "ub": [cost() for _ in range(n)],
        "of": [size() if some else 0 for _ in range(n)],
        "ob": [size() if some else 0 for _ in range(n)],
        "ul": cost(), "ol": size()}}


def uniform_chain(rng):
    size, cost = sizes(rng), costs(rng)
    a = size()
    return {"steps": log_uniform(rng, 1, 3000), "a": a, "b": a + size(), "g": a, "uf": cost(),
            "ub": cost(), "of": size(), "ob": size()}


def lifetimes(rng):
    size = sizes(rng)
    buffers = []
    for _ in range(log_uniform(rng, 1, 120)):
        start = rng.randrange(60)
        buffers.append({"start": start, "end": start + log_uniform(rng, 1, 30), "bytes": size()})
    return {"alignment": 1 << rng.randrange(9), "buffers": buffers}


def problem_of(n):
    rng = random.Random(n)
    make = rng.choices((training_graph, random_graph, chain, uniform_chain, lifetimes),
                       (45, 20, 20, 5, 10))[0]
    problem = make(rng)
    if "ops" in problem and rng.random() < 0.2:
        add_choices(rng, problem["ops"])
    return rng, problem


# ---- checks --------------------------------------------------------------------------------------

class Check:
    """All that is asked of one problem. `solver` writes and solves."""

    def __init__(self, solver, rng, problem):
        self.solver, self.rng, self.problem = solver, rng, problem
        self.path = solver.write(problem)
        self.answers = 0
        self.graph = "ops" in problem
        self.flags = ["--moves", 10] if self.graph else []
        self.order = rng.choice(("free", "fixed")) if self.graph else "free"

    def solve(self, budget=None, flags=()):
        self.answers += 1
        try:
            cost, answer, _ = self.solver.solve(self.path, self.problem, budget, self.order,
                                                [*self.flags, *flags])
        except replay.Fault as fault:
            raise replay.Fault(f"budget {budget}, {self.order} {flags}: {fault}") from None
        if cost is not None:
            replay.require(answer["lower_bound"] <= cost, f"cost {cost} below the lower bound")
            replay.require(not answer["optimal"] or answer["lower_bound"] == cost, "not optimal")
        return cost, answer

    def all(self):
        if "buffers" in self.problem:
            self.arena()
        else:
            self.budgets()
        self.damaged()
        return self.answers

    def arena(self):
        _, answer, _ = self.solver.solve(self.path, self.problem)
        replay.require(answer["lower_bound"] <= answer["arena"], "arena below its bound")
        self.answers += 1

    def budgets(self):
        cost, whole = self.solve()
        floor, top = whole["floor"], whole["peak"]
        replay.require(floor <= top, f"floor {floor} above the peak {top} without a budget")
        floor, top = max(1, floor), max(1, top)  # where all tensors are empty; a budget of 0 is refused
        budgets = [floor, *sorted(self.rng.randint(floor, top) for _ in range(2)), top]
        least = None
        for budget in budgets:
            cost, answer = self.solve(budget)
            replay.require(cost is not None, f"refused {budget}, and said its floor is {floor}")
            replay.require(least is None or cost <= least,
                           f"cost {cost} within {budget}, {least} within less")
            least = cost
        if floor > 1:
            replay.require(self.solve(floor - 1)[0] is None, "planned below the floor")
        self.again(budgets[1])
        if self.graph:
            self.others(budgets[2])

    def again(self, budget):
        answers = []
        for threads in ("1", "2"):
            answer = self.solve(budget, ("--threads", threads) if self.graph else ())[1]
            answers.append({k: v for k, v in answer.items() if k not in TIMES})
        replay.require(answers[0] == answers[1], f"two answers within {budget}")

    def others(self, budget):
        """Another planner, and auto with offsets: feasible or not, what is said must hold."""
        best, known = self.solve(budget)
        planner = self.rng.choice(("dag", "blocks", "segments", "sqrt_n", "keep_all"))
        cost, _ = self.solve(budget, ("--planner", planner))
        if cost is not None:
            replay.require(cost >= known["lower_bound"], f"{planner} below the lower bound")
            replay.require(best <= cost or planner in ("dag", "blocks"),
                           f"{planner} costs {cost}, auto {best}")
        self.solve(budget, ("--arena",))

    def damaged(self):
        text = json.dumps(self.problem)
        for _ in range(2):
            place = self.rng.randrange(len(text))
            piece = self.rng.choice(("-1", "9223372036854775808", "null", "}", "[", '"', "1e999", ""))
            bad = text[:place] + piece + text[place + self.rng.randint(0, 3):]
            path = self.path + ".bad"
            with open(path, "w", encoding="utf-8") as file:
                file.write(bad)
            done = subprocess.run([self.solver.program, "solve", path, "--json", "--moves", "1"],
                                  capture_output=True, text=True, check=False)
            replay.require(done.returncode in (0, 2, 3), f"exit code {done.returncode} for {bad}")
            replay.require(done.returncode == 0 or "error" in json.loads(done.stdout),
                           f"no error document for {bad}")


def run_one(arguments):
    """(n, answers, fault or "")."""
    program, n = arguments
    rng, problem = problem_of(n)
    solver = Solver(program)
    try:
        return n, Check(solver, rng, problem).all(), ""
    except replay.Fault as fault:
        return n, 0, str(fault)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", default=".", help="folder for the problem at fault")
    args = parser.parse_args()
    work = [(args.program, n) for n in range(args.first, args.first + args.count)]
    answers = 0
    with multiprocessing.Pool(args.jobs) as pool:
        for done, (n, count, fault) in enumerate(pool.imap_unordered(run_one, work), 1):
            if fault:
                path = os.path.join(args.keep, f"problem_{n}.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(problem_of(n)[1], file)
                print(f"random_problems: problem {n}: {fault}\nwritten to {path}", file=sys.stderr)
                return 1
            answers += count
            if sys.stderr.isatty() and done % 50 == 0:
                print(f"\r{done} of {args.count}", end="", file=sys.stderr)
    print(f"random_problems: {args.count} problems from {args.first} on, {answers} answers replayed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
