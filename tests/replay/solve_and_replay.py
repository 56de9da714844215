#!/usr/bin/env python3
"""Solves the problems of tests/data with several planners and replays each answer.

    solve_and_replay.py REPRISE DATA_FOLDER

Costs must not be below the known optima; chains must reach them.
"""

import json
import os
import sys

import replay
from solver import Solver


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def op_graph(entry):
    """The short form of tests/data/op_graphs.json as a problem file."""
    return {
        "name": entry["id"],
        "tensors": [{"name": f"t{i}", "bytes": t[0], "kind": t[1]}
                    for i, t in enumerate(entry["tensors"])],
        "ops": [{"name": f"op{k}", "inputs": o[0], "outputs": o[1], "workspace": o[2],
                 "cost": o[3], "recomputable": o[4] == 1, "inplace": o[5]}
                for k, o in enumerate(entry["ops"])],
    }


def check_graph(solver, entry):
    """Every budget by auto, the middle one by the other planners, with and without an arena."""
    problem = op_graph(entry)
    path = solver.write(problem)
    cases = entry["cases"]
    middle = cases[len(cases) // 2]
    runs = [("auto", case, order, ()) for case in cases for order in ("free", "fixed")]
    runs += [(planner, middle, "free", ()) for planner in ("dag", "blocks", "segments", "sqrt_n", "keep_all")]
    runs += [("auto", middle, order, ("--arena",)) for order in ("free", "fixed")]
    for planner, (budget, free, fixed), order, more in runs:
        known = free if order == "free" else fixed
        where = f"{entry['id']} within {budget}, {planner}, {order} {' '.join(more)}"
        try:
            flags = ["--planner", planner, "--moves", 30, *more]
            cost, answer, _ = solver.solve(path, problem, budget, order, flags)
            if cost is None:
                continue
            replay.require(known is not None, "planned within a budget that is too small")
            replay.require(cost >= known, f"cost {cost} below the optimum {known}")
            replay.require(answer["lower_bound"] <= known, "the lower bound is above the optimum")
            if answer["optimal"] and not more:
                replay.require(cost == known, f"cost {cost} called optimal, and {known} is")
        except replay.Fault as fault:
            raise replay.Fault(f"{where}: {fault}") from None
    return len(runs)


def check_choices(solver, entry):
    """Choices that are worse in all change nothing; leaner and dearer ones can only help."""
    problem = op_graph(entry)
    known = [case for case in entry["cases"] if case[1] is not None]
    solved = 0
    for leaner in (False, True):
        for op, (_, _, workspace, cost, _, _) in zip(problem["ops"], entry["ops"]):
            op.pop("workspace", None)
            op.pop("cost", None)
            op["choices"] = [{"workspace": workspace + 8, "cost": cost + 1},
                             {"workspace": workspace, "cost": cost}]
            if leaner:
                op["choices"].append({"name": "lean", "cost": 2 * cost + 1})
        path = solver.write(problem)
        for budget, optimum, _ in known[:3]:
            cost, answer, _ = solver.solve(path, problem, budget, "free", ["--moves", 30])
            replay.require(cost is not None, f"{entry['id']} within {budget}: no plan")
            replay.require(cost <= optimum if leaner else cost == optimum,
                           f"{entry['id']} within {budget}: cost {cost}, {optimum} without choices")
            replay.require(0 not in answer["choices"], f"{entry['id']}: picks what is worse in all")
            solved += 1
    return solved


def check_arena(solver, entry):
    path = solver.write(entry)
    _, answer, _ = solver.solve(path, entry)
    replay.require(answer["arena"] >= entry["optimum"], f"{entry['id']}: below the optimum")
    replay.require(answer["lower_bound"] <= entry["optimum"], f"{entry['id']}: bound too high")
    return 1


def check_chain(solver, entry):
    """Costs equal the optimum over persistent schedules, or are better down to that over all."""
    path = solver.write(entry)
    for case in entry["cases"]:
        budget, known = case[0], case[1]
        least = case[2] if len(case) > 2 else None
        try:
            cost, answer, _ = solver.solve(path, entry, budget)
            replay.require((cost is None) == (known is None), "feasibility differs")
            if cost is None:
                continue
            replay.require(cost <= known, f"cost {cost} above the optimum {known}")
            replay.require(least is None or cost >= least, f"cost {cost} below {least}")
            replay.require(not answer["optimal"] or least in (None, cost), "called optimal")
        except replay.Fault as fault:
            raise replay.Fault(f"{entry['id']} within {budget}: {fault}") from None
    return len(entry["cases"])


def check_long_chain(solver):
    """More than 100,000 instructions are listed in runs."""
    problem = {"steps": 100_000, "a": 1, "b": 8, "g": 1, "uf": 1, "ub": 2}
    _, answer, _ = solver.solve(solver.write(problem), problem, 5_000)
    replay.require(answer["run_length"] is True, "not listed in runs")
    return 1


def main():
    program, folder = sys.argv[1:]
    solver = Solver(program)
    solved = 0
    try:
        for entry in load(folder, "op_graphs.json")["graphs"]:
            solved += check_graph(solver, entry)
        for entry in load(folder, "op_graphs.json")["graphs"][:20]:
            solved += check_choices(solver, entry)
        for entry in load(folder, "chains.json")["chains"]:
            solved += check_chain(solver, entry)
        solved += check_long_chain(solver)
        for entry in load(folder, "arenas.json")["arenas"]:
            solved += check_arena(solver, entry)
    except replay.Fault as fault:
        print(f"solve_and_replay: {fault}", file=sys.stderr)
        return 1
    print(f"solve_and_replay: {solved} answers replayed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
