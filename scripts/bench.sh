#!/usr/bin/env bash
# Runs the benchmarks: JSON to out/bench/, a short table to the terminal.
#   scripts/bench.sh [--quick] [NAME...]     NAME: a program of bench/ without _bench; default all
set -euo pipefail
cd "$(dirname "$0")/.."

# Repetitions of different rows take turns, so that a slow minute of the machine falls on all of them.
flags=(--benchmark_repetitions=5 --benchmark_report_aggregates_only=true
  --benchmark_enable_random_interleaving=true)
if [ "${1:-}" = --quick ]; then
  flags=(--benchmark_min_time=0.05)
  shift
fi
scripts/install_deps.sh
cmake --preset release
cmake --build --preset release --parallel "$(nproc)"
mkdir -p out/bench
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for program in build/release/bin/*_bench; do
    name=$(basename "$program")
    names+=("${name%_bench}")
  done
fi
for name in "${names[@]}"; do
  if [ "$name" = overlap ]; then  # runs kinds of steps in turn, so it is a program of its own
    build/release/bin/overlap_bench --json out/bench/overlap.json
    continue
  fi
  build/release/bin/"${name}"_bench "${flags[@]}" \
    --benchmark_out="out/bench/$name.json" --benchmark_out_format=json >/dev/null
  python3 scripts/bench_table.py "out/bench/$name.json"
done
