#!/usr/bin/env python3
"""Solves every case of a file of known answers, replays each answer, and prints a table.

    check_reference.py REPRISE REFERENCE.json [--only chains,...] [--planners exact,dag]
                       [--seconds 0.5] [--all-faults]

The file holds lists `chains`, `homogeneous`, `revolve`, `dags`, `arenas`, with cases and optima.
Exit code 1 when an answer is wrong (does not replay, beats a known optimum, refuses what is
feasible by a planner that must not). Answers that are only worse than the optimum are counted.
"""

import argparse
import json
import sys
import time

import replay
from solver import Solver


class Tally:
    """One row of the table."""

    def __init__(self, title):
        self.title = title
        self.cases = self.reached = self.wrong = 0
        self.worst = 0.0
        self.user = 0.0
        self.slowest = 0.0
        self.misses = []

    def took(self, seconds):
        self.user += seconds
        self.slowest = max(self.slowest, seconds)

    def row(self):
        return (f"{self.title:<34}{self.cases:>6}{self.reached:>9}{self.wrong:>7}"
                f"{self.worst * 100:>9.2f}%{self.user:>9.2f}s{self.slowest:>9.3f}s")


class Checker:
    def __init__(self, program, seconds):
        self.solver = Solver(program)
        self.seconds = seconds
        self.tallies = []

    def tally(self, title):
        self.tallies.append(Tally(title))
        return self.tallies[-1]

    def case(self, tally, where, judge):
        """`judge` returns None when the optimum is reached, else (relative miss, words)."""
        tally.cases += 1
        try:
            miss = judge()
        except (replay.Fault, KeyError, json.JSONDecodeError) as fault:
            tally.wrong += 1
            print(f"WRONG {tally.title}: {where}: {fault!r}", file=sys.stderr)
            return
        if miss is None:
            tally.reached += 1
        else:
            tally.worst = max(tally.worst, miss[0])
            tally.misses.append(f"{where}: {miss[1]}")

    # Chains: equal to `opt`, or better down to `opt_unrestricted` where that is known.
    def chains(self, entries):
        cost_row = self.tally("chains: cost")
        floor_row = self.tally("chains: smallest memory")
        all_row = self.tally("chains: optimum of all schedules")
        for entry in entries:
            path = self.solver.write(entry)
            for case in entry["cases"]:
                where = f"{entry['id']} within {case['budget']}"
                found = {}

                def judge(entry=entry, case=case, path=path, found=found):
                    cost, _, seconds = self.solver.solve(path, entry, case["budget"])
                    found["cost"] = cost
                    cost_row.took(seconds)
                    if case["opt"] is None:
                        replay.require(cost is None, "planned within too small a budget")
                        return None
                    replay.require(cost is not None, "refused")
                    low = case.get("opt_unrestricted")
                    replay.require(low is None or cost >= low, f"{cost} below the optimum {low}")
                    if cost > case["opt"]:
                        return cost / case["opt"] - 1, f"{cost}, optimum {case['opt']}"
                    return None

                self.case(cost_row, where, judge)
                low = case.get("opt_unrestricted")
                if low is not None and found.get("cost") is not None:
                    cost = found["cost"]
                    self.case(all_row, where,
                              lambda: None if cost == low else (cost / low - 1, f"{cost}, {low}"))

            def judge_floor(entry=entry, path=path):
                _, answer, _ = self.solver.solve(path, entry, "floor", flags=())
                known = entry["min_memory_persistent"]
                replay.require(answer["floor"] == known == answer["peak"],
                               f"floor {answer['floor']}, peak {answer['peak']}, known {known}")

            self.case(floor_row, entry["id"], judge_floor)

    def homogeneous(self, entries):
        row = self.tally("uniform chains: cost")
        floor_row = self.tally("uniform chains: smallest memory")
        for entry in entries:
            path = self.solver.write(entry)
            for case in entry["cases"]:
                def judge(entry=entry, case=case, path=path):
                    cost, _, seconds = self.solver.solve(path, entry, case["budget"])
                    row.took(seconds)
                    replay.require((cost is None) == (case["opt"] is None), "feasibility differs")
                    if cost is not None and cost > case["opt"]:
                        return cost / case["opt"] - 1, f"{cost}, optimum {case['opt']}"
                    return None
                self.case(row, f"{entry['steps']} steps within {case['budget']}", judge)

            def judge_floor(entry=entry, path=path):
                _, answer, _ = self.solver.solve(path, entry, "floor")
                replay.require(answer["floor"] == entry["min_memory"], f"floor {answer['floor']}")
            self.case(floor_row, f"{entry['steps']} steps", judge_floor)

    def revolve(self, entries):
        row = self.tally("Revolve: counts")
        chain_row = self.tally("Revolve as a uniform chain")
        for entry in entries:
            path = self.solver.write({k: entry[k] for k in ("steps", "checkpoints")})

            def judge(entry=entry, path=path):
                code, answer, seconds = self.solver.run(path)
                row.took(seconds)
                replay.require(code == 0, "refused")
                for name in ("repetitions", "extra_forwards", "total_forwards"):
                    replay.require(answer[name] == entry[name], f"{name} {answer[name]}")
                replay.require(answer["cost"] == entry["total_forwards"], "cost")
            self.case(row, f"{entry['steps']}, {entry['checkpoints']}", judge)
            if entry["steps"] > 1000:
                continue
            c = entry["checkpoints"]
            chain = {"steps": entry["steps"], "a": 1, "b": c + 2, "g": 0, "uf": 1, "ub": 0}
            chain_path = self.solver.write(chain)

            def judge_chain(entry=entry, chain=chain, path=chain_path, c=c):
                cost, _, seconds = self.solver.solve(path, chain, 2 * c + 3)
                chain_row.took(seconds)
                if cost > entry["total_forwards"]:
                    return cost / entry["total_forwards"] - 1, f"{cost}"
                return None
            self.case(chain_row, f"{entry['steps']}, {c}", judge_chain)

    def dags(self, entries, planners):
        for planner in planners:
            for order in ("fixed", "free"):
                row = self.tally(f"op graphs: {planner}, {order}")
                floor_row = self.tally(f"op graphs: {planner}, {order}, memory")
                for entry in entries:
                    self.dag(entry, planner, order, row, floor_row)

    def dag(self, entry, planner, order, row, floor_row):
        path = self.solver.write(entry)
        flags = ["--planner", planner]
        if planner == "dag":
            flags += ["--seconds", self.seconds]
        for case in entry["cases"]:
            def judge(case=case):
                cost, answer, seconds = self.solver.solve(path, entry, case["budget"], order, flags)
                row.took(seconds)
                known = case[f"opt_{order}_order"]
                if known is None:
                    replay.require(cost is None, "planned within too small a budget")
                    return None
                if cost is None:
                    return 1.0, "found no plan"
                replay.require(cost >= known, f"cost {cost} below the optimum {known}")
                replay.require(answer["lower_bound"] <= known,
                               f"lower bound {answer['lower_bound']} above the optimum {known}")
                replay.require(not answer["optimal"] or cost == known,
                               f"{cost} called optimal, and {known} is")
                if cost > known:
                    return cost / known - 1, f"{cost}, optimum {known}"
                return None
            self.case(row, f"{entry['id']} within {case['budget']}", judge)

        def judge_floor():
            _, answer, _ = self.solver.solve(path, entry, "floor", order, flags)
            known = entry[f"min_memory_{order}_order"]
            replay.require(answer["floor"] >= known, f"floor {answer['floor']} below {known}")
            if answer["floor"] > known:
                return answer["floor"] / known - 1, f"floor {answer['floor']}, known {known}"
            return None
        self.case(floor_row, entry["id"], judge_floor)

    def arenas(self, entries):
        row = self.tally("arenas")
        for entry in entries:
            path = self.solver.write(entry)

            def judge(entry=entry, path=path):
                _, answer, seconds = self.solver.solve(path, entry)
                row.took(seconds)
                arena, known = answer["arena"], entry["optimum"]
                replay.require(arena >= known, f"arena {arena} below the optimum {known}")
                replay.require(answer["lower_bound"] <= known, "lower bound above the optimum")
                replay.require(not answer["optimal"] or arena == known, "called optimal")
                if arena > known:
                    return arena / known - 1, f"{arena}, optimum {known}"
                return None
            self.case(row, entry["id"], judge)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("reference")
    parser.add_argument("--only", default="chains,homogeneous,revolve,dags,arenas")
    parser.add_argument("--planners", default="exact,dag", help="for op graphs")
    parser.add_argument("--seconds", type=float, default=0.5, help="for planner dag")
    args = parser.parse_args()
    with open(args.reference, encoding="utf-8") as file:
        reference = json.load(file)
    checker = Checker(args.program, args.seconds)
    begin = time.monotonic()
    for kind in args.only.split(","):
        more = (args.planners.split(","),) if kind == "dags" else ()
        getattr(checker, kind)(reference[kind], *more)
    print(f"{'':<34}{'cases':>6}{'optimal':>9}{'wrong':>7}{'worst':>10}{'user':>10}{'slowest':>10}")
    for tally in checker.tallies:
        print(tally.row())
    for tally in checker.tallies:
        for miss in tally.misses:
            print(f"missed: {tally.title}: {miss}")
    print(f"{time.monotonic() - begin:.0f} s")
    return 1 if any(tally.wrong for tally in checker.tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
