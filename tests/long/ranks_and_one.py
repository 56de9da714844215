#!/usr/bin/env python3
"""Several ranks and devices against one that has the whole batch, at full size.

For resnet20 (28x28 images, batch norm over the ranks), an MLP and an LSTM, on global batches of 30, 10
and 1, over 1 to 4 ranks, as processes (Gloo) and as devices of one process (threads):

  - the loss of the first step and the gradient of every parameter are those of one rank, to 1e-5
    relative, on the reference backend; for each planner at half of what activations take (3 ranks)
  - over 200 steps on the cpu backend parameters and optimizer state have one hash on all ranks after
    each step (--compare-every 1), and processes and devices end in the same bits

A gradient is read off the weights: plain SGD with rate R moves w to w - R grad, and with rate 0 nowhere.

Takes about an hour on two cores, which is why it is no part of scripts/test.sh.
Usage: tests/long/ranks_and_one.py [--program build/release/bin/reprise] [--only NAME] [--batches 30,10,1]
"""

import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

RATE = 1000.0  # rounding of w - R grad is then nothing beside R grad
TOLERANCE = 1e-5

CASES = {
    "resnet20": ["--model", "resnet20", "--image", "1x28x28", "--classes", "10", "--sync-batch-norm"],
    "mlp": ["--model", "mlp", "--image", "1x28x28", "--classes", "10"],
    "lstm": ["--model", "lstm", "--seq-len", "64", "--hidden", "64", "--chunk", "8",
             "--stateless"],
}


class Runner:
    def __init__(self, program):
        self.program = program
        self.failures = 0

    def expect(self, condition, message):
        if not condition:
            self.failures += 1
            print(f"FAILED: {message}", flush=True)

    def train(self, kind, size, device, flags):
        """(exit code, JSON document) of one run on `size` ranks."""
        command = [self.program]
        if kind == "processes" and size > 1:
            command += ["launch", "-n", str(size), "--first-plain", "--", self.program]
        command += ["train", *flags, "--no-eval", "--costs", "analytic", "--json",
                    "--comm-timeout", "600"]
        if kind == "devices" and size > 1:
            command += ["--devices", f"{device}:{size}"]
        else:
            command += ["--device", device]
        result = subprocess.run(command, capture_output=True, text=True,
                                env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        try:
            return result.returncode, json.loads(result.stdout)
        except json.JSONDecodeError:
            sys.exit(f"no JSON from {' '.join(command)}:\n{result.stdout}\n{result.stderr}")

    def trained(self, *arguments):
        code, document = self.train(*arguments)
        if code != 0:
            sys.exit(f"exit code {code} of {arguments}: {document}")
        return document

    def first_step(self, kind, size, flags):
        """(loss, {parameter: gradient}) of the first step, and the plan."""
        weights = []
        for rate in ("0", str(RATE)):
            with tempfile.TemporaryDirectory() as folder:
                document = self.trained(kind, size, "reference",
                                        [*flags, "--optimizer", "sgd", "--lr", rate, "--steps", "1",
                                         "--save", folder])
                weights.append(read_weights(pathlib.Path(folder) / "weights.safetensors"))
        gradients = {name: [(a - b) / RATE for a, b in zip(weights[0][name], weights[1][name])]
                     for name in weights[0] if "running_" not in name}
        return document["losses"][0], gradients, document["plan"]


def read_weights(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        tensors[name] = struct.unpack(f"<{len(raw) // 4}f", raw)
    return tensors


def norm(numbers):
    return math.sqrt(sum(number * number for number in numbers))


def compare(runner, where, got, wanted):
    loss, gradients = got[:2]
    runner.expect(abs(loss - wanted[0]) <= TOLERANCE * abs(wanted[0]),
                  f"{where}: loss {loss}, alone {wanted[0]}")
    worst = 0.0
    for name, gradient in wanted[1].items():
        off = norm([a - b for a, b in zip(gradients[name], gradient)]) / (norm(gradient) or 1.0)
        worst = max(worst, off)
        runner.expect(off <= TOLERANCE, f"{where}: gradient of {name} is off by {off:.2e}")
    print(f"{where}: loss {loss:.7g}, gradients within {worst:.1e}", flush=True)


def check_first_steps(runner, name, batches):
    for batch in batches:
        flags = [*CASES[name], "--batch", str(batch)]
        wanted = runner.first_step("devices", 1, [*flags, "--planner", "keep_all"])
        for kind in ("devices", "processes"):
            for size in (2, 3, 4):
                got = runner.first_step(kind, size, [*flags, "--planner", "keep_all"])
                compare(runner, f"{name} {batch} over {size} {kind}", got, wanted)


def check_planners(runner, name, batch, planners):
    flags = [*CASES[name], "--batch", str(batch)]
    alone = runner.first_step("devices", 1, [*flags, "--planner", "keep_all"])
    plan = runner.first_step("devices", 3, [*flags, "--planner", "keep_all"])[2]
    half = (plan["keep_all_bytes"] + plan["persistent_bytes"]) // 2
    for planner in planners:
        budgeted = [*flags, "--planner", planner, "--budget", str(half)]
        code, document = runner.train("devices", 3, "reference", [*budgeted, "--steps", "1"])
        if code == 3:
            budgeted[-1] = str(document["error"]["floor_bytes"])
        compare(runner, f"{name} {batch} over 3 devices, {planner} in {budgeted[-1]} bytes",
                runner.first_step("devices", 3, budgeted), alone)


def check_hashes(runner, name):
    flags = [*CASES[name], "--batch", "10", "--steps", "200", "--compare-every", "1",
             "--planner", "auto", "--budget", "floor", "--threads", "1", "--lr", "0.01"]
    for size in (2, 3, 4):
        ends = {kind: runner.trained(kind, size, "cpu", flags) for kind in ("devices", "processes")}
        hashes = {kind: end["state_hash"] for kind, end in ends.items()}
        runner.expect(len(set(hashes.values())) == 1 and ends["devices"]["steps"] == 200,
                      f"{name} over {size}: {hashes}")
        print(f"{name} over {size}: 200 steps, hash {hashes['devices']}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/bin/reprise")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--batches", default="30,10,1")
    arguments = parser.parse_args()
    runner = Runner(arguments.program)
    planners = json.loads(subprocess.run([arguments.program, "doctor", "--json"],
                                         capture_output=True, text=True).stdout)["planners"]
    for name in [arguments.only] if arguments.only else CASES:
        check_hashes(runner, name)
        check_first_steps(runner, name, [int(batch) for batch in arguments.batches.split(",")])
        check_planners(runner, name, 30, [each for each in planners if each != "exact"])
    print("passed" if runner.failures == 0 else f"{runner.failures} failed")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(main())
