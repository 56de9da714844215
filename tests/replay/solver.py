"""Calls `reprise solve` and replays what it answers."""

import json
import os
import resource
import subprocess
import tempfile

import replay


class Solver:
    """`program` is the path of reprise. Problems are written to a temporary folder."""

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0

    def write(self, problem):
        self.count += 1
        path = os.path.join(self.folder.name, f"problem{self.count}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(problem, file)
        return path

    def run(self, path, *flags):
        """(exit code, answer, user seconds). Exit codes other than 0 and 3 are faults."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run([self.program, "solve", path, "--json", *map(str, flags)],
                              capture_output=True, text=True, check=False)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        replay.require(done.returncode in (0, 3),
                       f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done.returncode, json.loads(done.stdout), seconds

    def solve(self, path, problem, budget=None, order="free", flags=()):
        """(cost or None when infeasible, answer, user seconds), replayed. A budget of bytes is
        checked; "floor" and percentages are taken at their word."""
        all_flags = list(flags)
        limit = budget if isinstance(budget, int) else None
        if budget is not None:
            all_flags += ["--budget", budget]
        if "ops" in problem and order != "free":
            all_flags += ["--order", order]
        code, answer, seconds = self.run(path, *all_flags)
        if code == 3:
            replay.require(answer["feasible"] is False and "error" in answer, "no error document")
            replay.require(limit is None or answer["floor"] > limit,
                           f"refused {budget}, floor {answer['floor']}")
            return None, answer, seconds
        replay.require(answer["feasible"] is True, "feasible is not true")
        replay.check(problem, answer, order, limit)
        return answer.get("cost"), answer, seconds
