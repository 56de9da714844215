#!/usr/bin/env python3
"""Fails when a source file includes against the arrows of the pipeline.

    base <- graph <- models, schedule, kernels <- planner, runtime <- api <- cli

Each folder may include itself, the folders its row names, and what those may include.
Usage: check_arrows.py [ROOT]   (default: the repository of this script)
       check_arrows.py --self-test
"""

import pathlib
import re
import sys
import tempfile

# folder -> folders it may include; the closure is taken below.
ARROWS = {
    "base": [],
    "graph": ["base"],
    "models": ["graph"],
    "schedule": ["graph"],
    "planner": ["schedule", "graph"],
    "kernels": ["graph"],
    "runtime": ["schedule", "kernels", "graph"],  # never planner
    "api": ["base", "graph", "models", "schedule", "planner", "kernels", "runtime"],
    "cli": ["api"],
    # Outside the pipeline: they may use all of it.
    "bench": ["api", "cli", "tests"],  # and what the tests share
    "tests": ["api", "cli"],
    "examples": ["api"],
}
# Folders without C++ of the project.
WITHOUT_CODE = {"docs", "scripts", "cmake", "build", "out"}
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def reachable(folder):
    """The folders that `folder` may include."""
    seen, waiting = set(), [folder]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += ARROWS[name]
    return seen


def check_file(root, path, allowed):
    """Yields one line for each include of `path` that is against the arrows."""
    relative = path.relative_to(root)
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        if name.startswith("."):
            yield f'{relative}:{number}: "{name}" is relative; write the path from the root'
            continue
        target = name.split("/")[0]
        if "/" in name and target in ARROWS and target not in allowed:
            yield f'{relative}:{number}: {relative.parts[0]}/ may not include "{name}"'


def check(root):
    """All complaints about the tree at `root`."""
    complaints = []
    for folder in sorted(p for p in root.iterdir() if p.is_dir()):
        if folder.name.startswith(".") or folder.name in WITHOUT_CODE:
            continue
        sources = sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES)
        if folder.name not in ARROWS:
            if sources:
                complaints.append(f"{folder.name}/: unknown folder; add it to ARROWS in "
                                  "scripts/check_arrows.py")
            continue
        allowed = reachable(folder.name)
        for source in sources:
            complaints += check_file(root, source, allowed)
    return complaints


def self_test():
    """The check finds what it is for, and nothing else."""
    cases = [
        ("graph/a.h", '#include "base/bytes.h"\n#include <vector>\n', 0),
        ("cli/a.cc", '#include "graph/graph.h"\n#include "CLI/CLI.hpp"\n', 0),
        ("base/a.h", '#include "graph/graph.h"\n', 1),
        ("runtime/a.cc", '#include "planner/strategy.h"\n', 1),
        ("runtime/a.cc", '  #  include "planner/strategy.h"\n', 1),
        ("runtime/a.cc", '// #include "planner/strategy.h" would be wrong\n', 0),
        ("kernels/cpu/a.cc", '#include "schedule/schedule.h"\n', 1),
        ("planner/a.cc", '#include "kernels/backend.h"\n#include "runtime/arena.h"\n', 2),
        ("graph/a.cc", '#include "../base/bytes.h"\n', 1),
        ("misc/a.cc", "int x;\n", 1),
        ("misc/readme.txt", "text\n", 0),
    ]
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            found = check(pathlib.Path(folder))
            if len(found) != expected:
                sys.exit(f"self-test: {name!r} {text!r}: {len(found)} complaints, not {expected}")
    print(f"check_arrows: self-test, {len(cases)} cases hold")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).parents[1])
    complaints = check(root.resolve())
    print("\n".join(complaints) if complaints else "check_arrows: all includes follow the arrows")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
