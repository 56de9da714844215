#!/usr/bin/env python3
"""Ranks that are killed, stand still, throw or get no memory, at random moments of a training job.

Each run trains on 2 to 4 ranks, started by `reprise launch` or, as torchrun would, by variables
alone, and one rank meets with a fault: at the rendezvous, while planning, in the forward pass, the
backward pass, the optimizer or an evaluation, in the middle of a sum of gradients, while a snapshot
is written. Most faults are brought about by fault_shim.cc, which is loaded before the program and
needs no hook in it; others are a limit of the rank's address space (`ulimit -v`), below what it
needs, and a folder for snapshots that goes away.

Checked each time:
  - every process ended within the time-out and a margin, with a code other than 0, and none is left
  - every other rank's message, and launch's, names the rank that failed first and no other
  - the snapshots that are there are whole, and --resume on as many ranks ends with the state_hash of
    a run that nothing happened to
  - and for a signal (SIGTERM or SIGINT to launch, SIGTERM to one rank): all end with 0 and a snapshot,
    from which a run goes on likewise

Takes about 10 minutes, which is why it is no part of scripts/test.sh.
Usage: tests/long/rank_faults.py [--program build/release/bin/reprise] [--runs 40] [--seed 1]
       [--only NUMBER] [--ranks N] [--network mlp] [--shim FILE] [--keep FOLDER]
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
MARGIN = 12  # seconds that a busy machine may add to any deadline
STEPS = 12
EVALUATIONS = 3  # of 12 steps of synthetic data, four batches a pass

COMMON = ["--data", "synthetic", "--costs", "analytic", "--planner", "keep_all", "--steps", str(STEPS),
          "--seed", "3", "--save-every", "3", "--compare-every", "5"]
NETWORKS = {
    "mlp": ["--model", "mlp", "--image", "1x16x16", "--hidden", "256", "--layers", "3", "--classes",
            "4", "--batch", "24", "--dropout", "0.1"],
    "lstm": ["--model", "lstm", "--hidden", "64", "--seq-len", "32", "--chunk", "8", "--batch", "12",
             "--dropout", "0.1", "--optimizer", "adam", "--stateless"],
    "resnet20": ["--model", "resnet20", "--image", "3x8x8", "--classes", "4", "--batch", "12",
                 "--augment"],
}
KINDS = ("kill", "stop", "throw", "alloc")
MOMENTS = ("rendezvous", "planning", "forward", "backward", "optimizer", "bucket", "evaluation",
           "saving")


def free_port():
    """A port whose neighbour 1000 above, where ranks meet, is free too."""
    while True:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            if port + 1000 > 65535:
                continue
            try:
                high.bind(("127.0.0.1", port + 1000))
            except OSError:
                continue
            return port


def processes_of(mark):
    """pid -> rank (None for launch) of the living processes that have the mark in their environment."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
        except OSError:
            continue
        if f"FAULT_JOB={mark}".encode() in variables:
            rank = [v[5:] for v in variables if v.startswith(b"RANK=")]
            found[int(folder.name)] = int(rank[0]) if rank else None
    return found


class Job:
    """One training job, and what became of its ranks."""

    def __init__(self, program, folder, world, flags, launched, variables):
        self.mark = uuid.uuid4().hex
        self.world, self.launched = world, launched
        self.lines = []  # (rank or None, text)
        self.codes = {}  # rank or None for launch -> exit code
        self.first_seen = {}  # text looked for -> when
        self.changed = threading.Condition()
        common = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1",
                  "FAULT_JOB": self.mark, **variables}
        self.processes = {}
        # In /bin/sh, so that a limit can be set for one rank.
        limit = '[ "$RANK" = "$LIMITED_RANK" ] && ulimit -v $LIMIT_KIB; exec "$0" "$@"'
        train = ["/bin/sh", "-c", limit, program, "train", *flags]
        if launched:
            self.start(None, [program, "launch", "-n", str(world), "--", *train], common, folder)
            return
        port = free_port()
        self.agent = socket.create_server(("127.0.0.1", port))  # torchrun's listens there
        for rank in range(world):
            own = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world,
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            self.start(rank, train, {**common, **{k: str(v) for k, v in own.items()}}, folder)

    def start(self, rank, command, variables, folder):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=variables, cwd=folder)
        self.processes[rank] = process
        threading.Thread(target=self.read, args=(rank, process), daemon=True).start()

    def read(self, rank, process):
        for line in process.stdout:
            named = re.match(r"\[rank (\d+)\] (.*)", line) if rank is None else None
            with self.changed:
                self.lines.append((int(named[1]), named[2]) if named else (rank, line.rstrip("\n")))
                self.changed.notify_all()
        process.wait()
        with self.changed:
            self.codes[rank] = process.returncode
            self.changed.notify_all()

    def wait_for(self, text, seconds):
        """When the text was seen; None if it was not and all have ended, or time is up."""
        with self.changed:
            self.changed.wait_for(lambda: any(text in line for _, line in self.lines)
                                  or len(self.codes) == len(self.processes), seconds)
            return time.monotonic() if any(text in line for _, line in self.lines) else None

    def wait(self, seconds, but=()):
        """Until all have ended but that rank; whether they did in time."""
        with self.changed:
            return self.changed.wait_for(
                lambda: all(rank in self.codes or rank in but for rank in self.processes), seconds)

    def end(self):
        if not self.launched:
            self.agent.close()
        for process in self.processes.values():
            process.kill()
        for pid in processes_of(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def said(self, rank):
        return "\n".join(line for who, line in self.lines if who == rank)

    def text(self):
        return "\n".join(f"[{'launch' if who is None else who}] {line}" for who, line in self.lines)


def state_hash(job):
    found = re.search(r"state hash\s+([0-9a-f]{16})", job.text())
    return found[1] if found else None


def whole(snapshot):
    """Whether a safetensors file is as long as its header says; its checksum is compared on resume."""
    data = snapshot.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    return len(data) == 8 + size + end


class Tester:
    def __init__(self, arguments, shim):
        self.program, self.shim = os.path.abspath(arguments.program), shim
        self.timeout, self.keep = arguments.timeout, arguments.keep
        self.ranks, self.network = arguments.ranks, arguments.network
        self.probes = {}
        self.failures = 0

    def flags(self, network):
        return [*NETWORKS[network], *COMMON, "--comm-timeout", str(self.timeout)]

    def undisturbed(self, folder, flags, world, variables=None):
        job = Job(self.program, folder, world, flags, True, variables or {})
        if not job.wait(300) or any(job.codes.values()):
            job.end()
            raise RuntimeError(f"a run without a fault failed: {flags}\n{job.text()}")
        return job

    def probe(self, network, world):
        """How often each moment comes, by rank, and the hash at the end."""
        key = (network, world)
        if key not in self.probes:
            with tempfile.TemporaryDirectory() as folder:
                counts = {}
                for name, more in (("all", ["--save", "run"]), ("no_eval", ["--no-eval", "--save", "run"])):
                    os.mkdir(f"{folder}/{name}")
                    job = self.undisturbed(folder, [*self.flags(network), *more], world,
                                           {"LD_PRELOAD": self.shim, "FAULT_COUNTS": f"{folder}/{name}"})
                    if name == "all":
                        hash_text = state_hash(job)
                    for rank in range(world):
                        text = pathlib.Path(f"{folder}/{name}/rank{rank}").read_text()
                        counts[name, rank] = {k: int(v) for k, v in
                                              (line.split() for line in text.splitlines())}
            self.probes[key] = counts, hash_text
        return self.probes[key]

    def call_at(self, rng, counts, rank, moment):
        """Moment of the shim and number of the call, for a moment of training."""
        every = counts["all", rank]
        a_step = counts["no_eval", rank]["instruction"] // STEPS
        an_evaluation = (every["instruction"] - a_step * STEPS) // EVALUATIONS
        if moment in ("rendezvous", "planning", "saving"):
            return moment, rng.randint(1, every[moment])
        if moment == "bucket":
            return moment, rng.randint(every[moment] // 8, every[moment] - every[moment] // 8)
        step = rng.randrange(STEPS)
        before = step * a_step + step // 4 * an_evaluation
        if moment == "evaluation":
            before = rng.randint(1, EVALUATIONS) * (4 * a_step + an_evaluation) - an_evaluation
            return "instruction", before + rng.randint(1, max(1, an_evaluation))
        third = max(1, a_step // 3)
        part = ("forward", "backward", "optimizer").index(moment)
        if part == 2:  # updates are the last nodes, since all sums are waited for first
            return "instruction", before + a_step - rng.randrange(min(3, a_step))
        return "instruction", before + part * third + rng.randint(1, third)

    def run(self, number, rng):
        world = self.ranks or rng.randint(2, 4)
        culprit = rng.randrange(world)
        kind = KINDS[number % len(KINDS)]
        network = self.network or rng.choice(("mlp", "mlp", "mlp", "lstm", "lstm", "resnet20"))
        launched = rng.random() < 0.75
        moment = rng.choice(MOMENTS)
        if moment == "saving" and kind != "kill" and culprit != 0:
            culprit = 0  # it alone saves; for others, see below
        real = kind in ("throw", "alloc") and rng.random() < 0.4
        counts, wanted = self.probe(network, world)
        variables = {"LD_PRELOAD": self.shim}
        if real:
            moment = "folder goes away"
            if kind == "throw":
                culprit = 0
            else:
                limit = int(counts["all", culprit]["address_kib"] * rng.uniform(0.1, 0.7))
                variables = {"LIMITED_RANK": str(culprit), "LIMIT_KIB": str(limit)}
                moment = f"address space of {limit} KiB"
        elif moment == "saving" and culprit != 0:  # in the step that others begin meanwhile
            shim_moment, call = self.call_at(rng, counts, culprit, "forward")
            variables["FAULT_SLOW_SYNC"] = "150"
        else:
            shim_moment, call = self.call_at(rng, counts, culprit, moment)
        if not real:
            variables["FAULT"] = f"{culprit} {shim_moment} {call} {kind}"
        title = (f"run {number}: {kind} on rank {culprit} of {world}, {moment}"
                 f"{'' if real else f' ({shim_moment} {call})'}, {network}, "
                 f"{'launch' if launched else 'variables'}")
        folder = tempfile.mkdtemp(prefix="rank_faults_")
        try:
            problems, job, took = self.disturbed(folder, network, world, culprit, kind, launched,
                                                 variables, real, rng)
            while took is None and (moment == "rendezvous" or "LIMIT_KIB" in variables):
                if moment == "rendezvous":  # this time it was connected at once
                    variables["FAULT"] = f"{culprit} {shim_moment} 1 {kind}"
                else:  # much of an address space is never needed
                    variables["LIMIT_KIB"] = str(int(variables["LIMIT_KIB"]) * 3 // 4)
                title += ", tried again"
                shutil.rmtree(f"{folder}/run", ignore_errors=True)
                problems, job, took = self.disturbed(folder, network, world, culprit, kind, launched,
                                                     variables, real, rng)
            problems += self.resumed(folder, network, world, wanted)
        finally:
            if self.keep and problems:
                shutil.copytree(folder, pathlib.Path(self.keep) / f"run{number}", dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{'FAILED' if problems else 'ok'}  {title}, ended after {took or 0:.1f} s", flush=True)
        for problem in problems:
            print(f"    {problem}")
        if problems:
            self.failures += 1
            lines = [line for line in job.text().splitlines() if not re.search(r"saved run|: test|\]   ", line)]
            print("\n".join(f"    {line}" for line in lines[-40:]), flush=True)

    def disturbed(self, folder, network, world, culprit, kind, launched, variables, real, rng):
        flags = [*self.flags(network), "--save", "run"]
        if real and kind == "throw":  # it takes as long as it takes until the fault shows
            flags[flags.index("--steps") + 1] = "1000000"
        job = Job(self.program, folder, world, flags, launched, variables)
        try:
            begin = self.bring_about(job, folder, kind, real, rng)
            if begin is None:
                return ["the fault did not come about"], job, None
            limit = self.timeout + MARGIN
            stopped_alone = kind == "stop" and not launched
            in_time = job.wait(max(0, begin + limit - time.monotonic()),
                               but=[culprit] if stopped_alone else ())
            took = time.monotonic() - begin
            problems = [] if in_time else [f"not all ended within {limit} s"]
            if stopped_alone:  # nobody is there to end it; once it goes on, it hears the news
                job.processes[culprit].send_signal(signal.SIGCONT)
                if not job.wait(MARGIN):
                    problems.append("the rank that stood goes on for ever")
            time.sleep(0.2)
            if left := processes_of(job.mark):
                problems.append(f"left behind: {left}")
            return problems + self.blamed(job, world, culprit, kind, launched), job, took
        finally:
            job.end()

    def bring_about(self, job, folder, kind, real, rng):
        """When it was; None if it did not come about."""
        if not real:
            return job.wait_for("FAULT", 120)
        if kind == "alloc":
            return job.wait_for("error", 120)
        if job.wait_for("saved run", 120) is None:
            return None
        time.sleep(rng.random())
        os.rename(f"{folder}/run", f"{folder}/moved")
        pathlib.Path(f"{folder}/run").write_text("no folder")
        return time.monotonic()

    def blamed(self, job, world, culprit, kind, launched):
        problems = []
        # Before it joins, nobody but launch can know of it; launch ends the others before they have
        # waited for it all the time that they have.
        joined = f"rank {culprit} of {world} is at" in job.said(culprit)
        for rank in range(world):
            said = job.said(rank)
            blames = [int(n) for n in re.findall(r"rank (\d+) failed first", said)]
            missing = re.search(r"did not join within \d+ ms: ([\d, ]+)", said)
            if missing:
                blames += [int(n) for n in missing[1].split(",")]
            if any(blame != culprit for blame in blames):
                problems.append(f"rank {rank} blames {blames}")
            if rank != culprit and not blames and (joined or not launched):
                problems.append(f"rank {rank} does not name rank {culprit}")
        if launched:
            if not re.search(rf"launch: rank {culprit} .*; it failed first", job.said(None)):
                problems.append(f"launch does not name rank {culprit}")
        if any(code == 0 for code in job.codes.values()):
            problems.append(f"exit codes {job.codes}")
        # oneDNN crashes where it gets no memory for the code that it generates.
        crashed = job.codes.get(culprit) == -11 or "signal 11" in job.said(None)
        if kind in ("throw", "alloc") and not crashed and "error" not in job.said(culprit):
            problems.append(f"rank {culprit} does not say what went wrong")
        return problems

    def resumed(self, folder, network, world, wanted):
        run = "moved" if os.path.isdir(f"{folder}/moved") else "run"
        snapshots = sorted(pathlib.Path(folder, run).glob("snapshot-*.safetensors"))
        problems = [f"{path.name} is not whole" for path in snapshots if not whole(path)]
        flags = [*self.flags(network), "--save", "anew"]
        if snapshots:
            steps = max(int(re.search(r"-(\d+)\.", path.name)[1]) for path in snapshots)
            if steps >= STEPS:  # so far that it may go on from an older one only
                older = [p for p in snapshots if int(re.search(r"-(\d+)\.", p.name)[1]) < STEPS]
                if not older:
                    return problems
                flags += ["--resume", str(older[-1])]
            else:
                flags += ["--resume", run]
        job = Job(self.program, folder, world, flags, True, {})
        try:
            if not job.wait(300) or any(job.codes.values()):
                return problems + [f"resuming failed:\n{job.text()}"]
            if state_hash(job) != wanted:
                problems.append(f"after resuming the hash is {state_hash(job)}, not {wanted}")
            return problems
        finally:
            job.end()


    def signalled(self, to, number):
        """All ranks end in peace after the same step; the rest is done from the snapshot."""
        world, network = self.ranks or 3, self.network or "mlp"
        flags = self.flags(network)
        steps_at = flags.index("--steps") + 1
        flags[steps_at] = "1000000"
        problems = []
        with tempfile.TemporaryDirectory() as folder:
            job = Job(self.program, folder, world, [*flags, "--save", "run"], to == "launch", {})
            try:
                job.wait_for("saved run", 120)
                pids = {rank: pid for pid, rank in processes_of(job.mark).items()}
                os.kill(pids[None] if to == "launch" else pids[to], number)
                if not job.wait(60):
                    problems.append("not all ended")
                if any(job.codes.values()):
                    problems.append(f"exit codes {job.codes}")
            finally:
                job.end()
            stopped = re.search(r"stopped early, after step (\d+) of", job.text())
            if not stopped:
                problems.append("nothing was said of an early stop")
            else:
                flags[steps_at] = str(int(stopped[1]) + 4)
                straight = self.undisturbed(folder, [*flags, "--save", "straight"], world)
                on = self.undisturbed(folder, [*flags, "--save", "run", "--resume", "run"], world)
                if f"resumed from step {stopped[1]}" not in on.text():
                    problems.append(f"not resumed from step {stopped[1]}")
                if state_hash(straight) != state_hash(on):
                    problems.append(f"hash {state_hash(on)}, not {state_hash(straight)}")
        self.failures += bool(problems)
        print(f"{'FAILED' if problems else 'ok'}  {signal.Signals(number).name} to "
              f"{to if to == 'launch' else f'rank {to}'}, {world} ranks", flush=True)
        for problem in problems:
            print(f"    {problem}")
        if problems:
            print(job.text()[-2000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/bin/reprise")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=10, help="--comm-timeout of the jobs")
    parser.add_argument("--only", type=int, help="this run alone")
    parser.add_argument("--ranks", type=int, help="of every job; default: 2 to 4 at random")
    parser.add_argument("--network", choices=sorted(NETWORKS), help="default: at random")
    parser.add_argument("--shim", help="fault_shim.cc, compiled; default: compiles it")
    parser.add_argument("--keep", help="folder for what failed runs left")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, time-out {arguments.timeout} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        shim = os.path.abspath(arguments.shim or f"{folder}/fault_shim.so")
        if not arguments.shim:
            subprocess.check_call(["g++", "-std=c++20", "-O1", "-shared", "-fPIC",
                                   str(HERE / "fault_shim.cc"), "-o", shim])
        tester = Tester(arguments, shim)
        for number in range(arguments.runs):
            if arguments.only in (None, number):
                tester.run(number, random.Random(f"{arguments.seed} {number}"))
        if arguments.only is None:
            for to, number in (("launch", signal.SIGTERM), ("launch", signal.SIGINT), (1, signal.SIGTERM)):
                tester.signalled(to, number)
    print(f"{tester.failures} failures")
    return 1 if tester.failures else 0


if __name__ == "__main__":
    sys.exit(main())
