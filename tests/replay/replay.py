#!/usr/bin/env python3
"""Replays what `reprise solve --json` answers, sharing nothing with the program.

    replay.py PROBLEM.json ANSWER.json [--order fixed|free] [--budget BYTES]

Checks that the schedule is an execution of the problem (docs/problem_format.md says what each
instruction needs and takes), that cost and peak are what the answer says, that the peak is within
the budget, and that buffers of an arena lie apart. Exit code 1 names the first instruction at fault.
"""

import argparse
import json
import sys


class Fault(Exception):
    """The answer is wrong, and why."""


def require(condition, message):
    if not condition:
        raise Fault(message)


# ---- op graphs -----------------------------------------------------------------------------------

def algorithm_of(k, op, choices):
    if "choices" not in op:
        return op
    require(choices is not None and len(choices) > k, f"the answer picks no choice for op {k}")
    pick = choices[k]
    require(0 <= pick < len(op["choices"]), f"op {k} has no choice {pick}")
    return op["choices"][pick]


class GraphReplay:
    """One instruction at a time over the set of tensors that are resident."""

    def __init__(self, problem, choices=None):
        self.tensors = problem["tensors"]
        self.ops = problem["ops"]
        # What each op takes: with the choice that the answer names, the same in all its runs.
        self.taken = [algorithm_of(k, op, choices) for k, op in enumerate(self.ops)]
        self.bytes = [t["bytes"] for t in self.tensors]
        self.kinds = [t.get("kind", "temp") for t in self.tensors]
        self.resident = {i for i, kind in enumerate(self.kinds) if kind == "input"}
        self.live = sum(self.bytes[i] for i in self.resident)
        self.peak = 0
        self.cost = 0
        self.runs = [0] * len(self.ops)
        self.first_runs = []
        self.made = set()
        # Per materialization: [tensor, first run, one past the last run], runs counted from 0.
        self.lives = [[i, 0, None] for i in sorted(self.resident)]
        self.open = {i: n for n, (i, _, _) in enumerate(self.lives)}
        self.passed = []  # (life, life): the second has the buffer of the first
        self.steps = 0

    def end(self, tensor):
        self.lives[self.open.pop(tensor)][2] = self.steps
        self.resident.discard(tensor)
        self.live -= self.bytes[tensor]

    def run(self, k):
        require(0 <= k < len(self.ops), f"op {k} does not exist")
        op = self.ops[k]
        name = op.get("name", k)
        require(op.get("recomputable", True) or self.runs[k] == 0, f"op '{name}' runs twice")
        for t in op["inputs"]:
            require(t in self.resident, f"op '{name}' reads tensor {t}, which is not there")
        inplace = op.get("inplace", -1)
        new = {t for t in op["outputs"] if t not in self.resident}
        during = self.live + sum(self.bytes[t] for t in new) + self.taken[k].get("workspace", 0)
        if inplace >= 0:
            during -= self.bytes[op["inputs"][inplace]]
        self.peak = max(self.peak, during)
        if self.runs[k] == 0:
            self.first_runs.append(k)
        self.runs[k] += 1
        self.cost += self.taken[k]["cost"]
        for t in op["outputs"]:
            if t in new:
                self.open[t] = len(self.lives)
                self.lives.append([t, self.steps, None])
                self.resident.add(t)
                self.live += self.bytes[t]
            self.made.add(t)
        self.steps += 1
        if inplace >= 0:
            source = op["inputs"][inplace]
            require(self.kinds[source] == "temp", f"op '{name}' destroys tensor {source}")
            self.passed.append((self.open[source], self.open[op["outputs"][0]]))
            self.end(source)

    def drop(self, t):
        require(t in self.resident, f"tensor {t} is dropped and not there")
        require(self.kinds[t] == "temp", f"tensor {t} is dropped and of kind {self.kinds[t]}")
        self.end(t)

    def finish(self, order):
        for t, kind in enumerate(self.kinds):
            require(kind != "output" or t in self.resident, f"output {t} was never made")
        for k, op in enumerate(self.ops):
            once = not op.get("recomputable", True)
            require(not once or self.runs[k] == 1, f"op {k} may and must run once")
            require(order != "fixed" or self.runs[k] > 0, f"op {k} never runs; the order is fixed")
        if order == "fixed":
            require(self.first_runs == sorted(self.first_runs), "first runs leave the order")
        if self.steps == 0:
            self.peak = self.live
        for life in self.lives:
            if life[2] is None:
                life[2] = max(self.steps, 1)


def replay_graph(problem, answer, order):
    replay = GraphReplay(problem, answer.get("choices"))
    for n, (what, index) in enumerate(answer["schedule"]):
        try:
            require(what in ("run", "drop"), f"unknown instruction {what}")
            replay.run(index) if what == "run" else replay.drop(index)
        except Fault as fault:
            raise Fault(f"instruction {n}: {fault}") from None
    replay.finish(order)
    peak = replay.peak
    if "buffers" in answer:
        require(peak <= answer["live_peak"], f"live peak {peak}, stated {answer['live_peak']}")
        check_graph_arena(problem, answer, replay)
        peak = answer["arena"]
    return replay.cost, peak


def check_graph_arena(problem, answer, replay):
    """Every materialization has its place, in one buffer with what it was passed from."""
    buffers = answer["buffers"]
    check_arena(buffers, [b["offset"] for b in buffers], problem.get("alignment", 1),
                answer["arena"])
    places = {}
    for n, buffer in enumerate(buffers):
        for t in buffer.get("tensors", []):
            places.setdefault(t, []).append(n)
    home = []
    for tensor, start, end in replay.lives:
        fits = [n for n in places.get(tensor, [])
                if buffers[n]["start"] <= start and end <= buffers[n]["end"]
                and buffers[n]["bytes"] >= replay.bytes[tensor]]
        require(fits, f"tensor {tensor} has no buffer over runs {start} to {end}")
        home.append(fits)
    for source, target in replay.passed:
        require(set(home[source]) & set(home[target]),
                f"tensor {replay.lives[target][0]} is not where its input was")
    booked = {}
    for buffer in buffers:
        if "workspace_of" in buffer:
            booked[buffer["start"]] = buffer
    step = 0
    for what, index in answer["schedule"]:
        if what != "run":
            continue
        need = replay.taken[index].get("workspace", 0)
        if need:
            buffer = booked.get(step)
            require(buffer and buffer["workspace_of"] == index and buffer["bytes"] >= need,
                    f"run {step} of op {index} has no workspace")
        step += 1


# ---- arenas --------------------------------------------------------------------------------------

def check_arena(buffers, offsets, alignment, arena):
    require(len(offsets) == len(buffers), f"{len(offsets)} offsets for {len(buffers)} buffers")
    top = 0
    for n, (buffer, offset) in enumerate(zip(buffers, offsets)):
        require(offset >= 0 and offset % alignment == 0, f"buffer {n}: offset {offset}")
        if buffer["bytes"]:
            top = max(top, offset + buffer["bytes"])
    require(top <= arena, f"buffers reach {top}, the arena has {arena}")
    # A sweep over time with the open buffers by offset: what overlaps meets a neighbour.
    events = []
    for n, buffer in enumerate(buffers):
        if buffer["bytes"]:
            events.append((buffer["end"], 0, n))
            events.append((buffer["start"], 1, n))
    live = set()
    for _, opens, n in sorted(events):
        if not opens:
            live.discard(n)
            continue
        low, high = offsets[n], offsets[n] + buffers[n]["bytes"]
        for m in live:
            require(high <= offsets[m] or offsets[m] + buffers[m]["bytes"] <= low,
                    f"buffers {m} and {n} overlap")
        live.add(n)
    return top


def replay_buffers(problem, answer):
    top = check_arena(problem["buffers"], answer["offsets"], problem.get("alignment", 1),
                      answer["arena"])
    require(top == answer["arena"], f"buffers reach {top}, stated {answer['arena']}")
    return None, answer["arena"]


# ---- chains --------------------------------------------------------------------------------------

def lists_of(problem):
    """The chain's lists; a uniform chain or a Revolve problem is spelled out."""
    if "chain" in problem:
        chain = dict(problem["chain"])
        chain.setdefault("of", [0] * chain["L"])
        chain.setdefault("ob", [0] * chain["L"])
        chain.setdefault("ul", 0)
        chain.setdefault("ol", 0)
        return chain
    n = problem["steps"]
    scalars = dict(problem)
    if "a" not in problem:
        scalars.update(a=1, b=problem["checkpoints"] + 2, g=0, uf=1, ub=0)
    chain = {"L": n, "ul": scalars.get("ul", 0), "ol": scalars.get("ol", 0)}
    for name in "abg":
        chain[name] = [scalars[name]] * (n + 1)
    for name in ("uf", "ub", "of", "ob"):
        chain[name] = [scalars.get(name, 0)] * n
    return chain


class ChainReplay:
    def __init__(self, chain):
        self.chain = chain
        self.length = chain["L"]
        self.x = {0}
        self.xbar = set()
        self.y = None
        self.next_backward = None  # before the loss
        self.live = chain["a"][0]
        self.peak = self.live
        self.cost = 0

    def during(self, extra, cost):
        self.peak = max(self.peak, self.live + extra)
        self.cost += cost

    def forward(self, what, i):
        c = self.chain
        require(0 <= i < self.length, f"stage {i} does not exist")
        there = i in self.x or (i in self.xbar and what != "Fnone")
        require(there, f"x_{i} is not there")
        require(what != "Fnone" or i > 0, "x_0 stays")
        if what == "Fall":
            made, size = self.xbar, c["b"][i + 1]
        else:
            made, size = self.x, c["a"][i + 1]
        require(i + 1 not in made, "what it makes is there already")
        self.during(size + c["of"][i], c["uf"][i])
        made.add(i + 1)
        self.live += size
        if what == "Fnone":
            self.free_x(i)

    def free_x(self, i):
        self.x.discard(i)
        self.live -= self.chain["a"][i]

    def free_xbar(self, i):
        self.xbar.discard(i)
        self.live -= self.chain["b"][i]

    def loss(self):
        last = self.length
        require(self.next_backward is None, "the loss runs twice")
        require(last in self.x or last in self.xbar, f"x_{last} is not there")
        self.during(self.chain["g"][last] + self.chain["ol"], self.chain["ul"])
        self.y = last
        self.live += self.chain["g"][last]
        if last in self.x and last > 0:
            self.free_x(last)
        self.next_backward = last - 1

    def backward(self, i):
        c = self.chain
        require(self.next_backward == i, f"the next backward stage is {self.next_backward}")
        require(self.y == i + 1, f"y_{i + 1} is not there")
        require(i + 1 in self.xbar, f"xbar_{i + 1} is not there")
        require(i in self.x or i in self.xbar, f"x_{i} is not there")
        self.during(c["g"][i] + c["ob"][i], c["ub"][i])
        self.live += c["g"][i] - c["g"][i + 1]
        self.y = i
        self.free_xbar(i + 1)
        if i in self.x:
            self.free_x(i)
        self.next_backward = i - 1

    def step(self, what, i=None):
        if what in ("Fall", "Fck", "Fnone"):
            self.forward(what, i)
        elif what == "Loss":
            self.loss()
        elif what == "B":
            self.backward(i)
        elif what == "DropX":
            require(i in self.x and i > 0, f"x_{i} is not there, or stays")
            self.free_x(i)
        elif what == "DropXB":
            require(i in self.xbar, f"xbar_{i} is not there")
            self.free_xbar(i)
        else:
            raise Fault(f"unknown instruction {what}")

    def finish(self):
        require(self.next_backward == -1, f"backward stage {self.next_backward} is missing")


def spelled_out(schedule):
    """The instructions of a schedule. With a count behind them they stand for as many: forward ones
    on stages going up, all others going down."""
    for item in schedule:
        if len(item) == 2 or item == ["Loss"]:
            yield tuple(item)
        elif item[0] == "Loss":
            yield ("Loss",)
        else:
            what, stage, count = item
            direction = 1 if what in ("Fall", "Fck", "Fnone") else -1
            for k in range(count):
                yield what, stage + direction * k


def replay_chain(problem, answer):
    replay = ChainReplay(lists_of(problem))
    for n, item in enumerate(spelled_out(answer["schedule"])):
        try:
            replay.step(*item)
        except Fault as fault:
            raise Fault(f"instruction {n} {item}: {fault}") from None
    replay.finish()
    return replay.cost, replay.peak


# ---- all of them ---------------------------------------------------------------------------------

def check(problem, answer, order="free", budget=None):
    """(cost, peak) of a feasible answer; throws Fault."""
    if "ops" in problem:
        cost, peak = replay_graph(problem, answer, order)
    elif "buffers" in problem:
        cost, peak = replay_buffers(problem, answer)
    else:
        cost, peak = replay_chain(problem, answer)
    if cost is not None:
        require(cost == answer["cost"], f"cost {cost}, stated {answer['cost']}")
        bound = answer["lower_bound"]
        require(bound <= cost, f"cost {cost} below its own lower bound {bound}")
    require(peak == answer["peak"], f"peak {peak}, stated {answer['peak']}")
    require(budget is None or peak <= budget, f"peak {peak} in a budget of {budget}")
    require(answer["floor"] <= peak, f"peak {peak} below the floor {answer['floor']}")
    return cost, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem")
    parser.add_argument("answer")
    parser.add_argument("--order", choices=("fixed", "free"), default="free")
    parser.add_argument("--budget", type=int)
    args = parser.parse_args()
    with open(args.problem, encoding="utf-8") as file:
        problem = json.load(file)
    with open(args.answer, encoding="utf-8") as file:
        answer = json.load(file)
    try:
        cost, peak = check(problem, answer, args.order, args.budget)
    except Fault as fault:
        print(f"replay: {fault}", file=sys.stderr)
        return 1
    print(f"replay: cost {cost}, peak {peak}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
