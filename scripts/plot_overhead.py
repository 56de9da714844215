#!/usr/bin/env python3
"""Draws what recomputation costs against memory, one panel for each training graph.

Usage: plot_overhead.py STRATEGIES.json [--steps STEPS.json] --output PICTURE.svg

STRATEGIES.json comes from bench/strategies_bench: predicted extra cost in % of each strategy at
shares of the activation memory. STEPS.json comes from bench/steps_bench: measured step times, drawn
into a row of panels of their own. Needs python3-matplotlib.
"""

import argparse
import json
import re
import sys
from collections import defaultdict

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError as error:
    sys.exit(f"plot_overhead: {error}; apt-get install python3-matplotlib, and run it with "
             "/usr/bin/python3")

# (label in the file, title), in the order of the panels.
GRAPHS = [("resnet50", "ResNet-50"), ("resnet110", "ResNet-110"),
          ("resnet1001", "ResNet-1001"), ("densenet", "DenseNet"), ("unet", "U-Net"),
          ("lstm1000x1", "LSTM, 1,000 steps"), ("lstm100000x100", "LSTM, 100,000 steps")]
MEASURED = [("resnet50", "ResNet-50"), ("resnet110", "ResNet-110"), ("lstm1000", "LSTM, 1,000")]
STYLES = {"auto": ("#0b5fa5", "o", 2.0), "revolve": ("#2a9d5c", "s", 1.2),
          "segments": ("#d9822b", "^", 1.2), "sqrt_n": ("#b0413e", "v", 1.2)}
BOUND = "no schedule costs less"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["benchmarks"]


def predicted(runs):
    """graph -> strategy -> [(share, extra %)], shares from large to small; below the floor left out."""
    lines = defaultdict(dict)
    for run in runs:
        graph, strategy = run["name"].split("/")[:2]
        points = [(int(key[:-1]), value) for key, value in run.items()
                  if re.fullmatch(r"\d+%", key) and value >= 0]
        lines[graph][strategy] = sorted(points, reverse=True)
        bounds = [(int(key.split("%")[0]), value) for key, value in run.items()
                  if re.fullmatch(r"\d+% bound", key)]
        if bounds:
            lines[graph][BOUND] = sorted(bounds, reverse=True)
    return lines


def measured(runs):
    """The same of median step times, in % above keep_all's of the same file."""
    times = {}
    for run in runs:
        if run.get("aggregate_name") != "median" or run.get("error_occurred"):
            continue
        graph, share, strategy = run["run_name"].split("/")[:3]
        times[graph, strategy, int(re.search(r"\d+", share)[0])] = run["real_time"]
    lines = defaultdict(lambda: defaultdict(list))
    for (graph, strategy, share), time in sorted(times.items(), reverse=True):
        whole = times.get((graph, "keep_all", 100))
        if whole and strategy != "keep_all":
            lines[graph][strategy].append((share, 100 * (time / whole - 1)))
    return lines


def draw(axes, title, strategies):
    proven = [p for p in strategies.get(BOUND, []) if p[0] >= 10]
    if proven:
        axes.fill_between(*zip(*proven), color="#cfd8dc", linewidth=0, label=BOUND)
    for name, (colour, marker, width) in STYLES.items():
        points = [p for p in strategies.get(name, []) if p[0] >= 10]
        if points:
            axes.plot(*zip(*points), color=colour, marker=marker, linewidth=width, markersize=4,
                      label=name)
    axes.set_title(title, fontsize=10)
    axes.set_xlim(83, 7)
    axes.set_xticks([80, 60, 50, 40, 30, 20, 10])
    axes.set_ylim(0, 75)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strategies", metavar="STRATEGIES.json")
    parser.add_argument("--steps", metavar="STEPS.json")
    parser.add_argument("--output", required=True, metavar="PICTURE.svg")
    arguments = parser.parse_args()

    panels = [(title, "predicted cost", predicted(read(arguments.strategies)).get(graph, {}))
              for graph, title in GRAPHS]
    if arguments.steps:
        lines = measured(read(arguments.steps))
        panels += [(title, "measured time", lines[graph]) for graph, title in MEASURED
                   if graph in lines]
    columns = 4
    rows = -(-len(panels) // columns)
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["font.family"] = "sans-serif"
    matplotlib.rcParams["svg.hashsalt"] = "reprise"  # the same picture from the same numbers
    figure, grid = pyplot.subplots(rows, columns, figsize=(12.5, 3.1 * rows), squeeze=False)
    cells = [axes for line in grid for axes in line]
    for axes, (title, kind, strategies) in zip(cells, panels):
        draw(axes, f"{title}: {kind}", strategies)
    for axes in cells[len(panels):]:
        axes.set_axis_off()
    for line in grid:
        line[0].set_ylabel("extra, % of keeping all", fontsize=9)
    handles, labels = cells[0].get_legend_handles_labels()
    place = cells[len(panels)] if len(cells) > len(panels) else cells[0]
    place.legend(handles, labels, fontsize=10, loc="center", frameon=False)
    figure.supxlabel("activation memory, % of keeping all", fontsize=9)
    figure.tight_layout()
    figure.savefig(arguments.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
