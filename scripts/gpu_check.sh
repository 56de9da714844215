#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with one NVIDIA GPU, within six minutes.
#
#   scripts/gpu_check.sh [--out DIR] [--deps DIR] [--build DIR] [--seconds S] [--only STAGES]
#   scripts/gpu_check.sh --double --build DIR [--out DIR]     the same on the double of CUDA, tiny
#   scripts/gpu_check.sh --pack DIR                           packs the libraries that it needs
#
# Needs the CUDA toolkit with cuDNN and NCCL, CMake 3.25, make and a C++20 compiler, and four small
# libraries: fmt, nlohmann_json, CLI11, zlib. Where these are not installed, bring what --pack made
# on a machine that has them, and name it with --deps (out/gpu_deps is found without).
#
#   --out DIR      logs and results; default: $OUT, else out/gpu_check
#   --build DIR    a build folder (default build/gpu); with --double one that is already built
#   --seconds S    for all stages together; default 360. What does not fit is left out and says so
#   --only STAGES  comma-separated: machine, build, doctor, ops, facts, sanitizer, train, resnet50,
#                  resnet50_bf16, resnet1001, lstm, torch
#
# Each stage has a time limit of its own. After each, DIR/gpu_check.json and DIR/table.md are
# complete so far; DIR/STAGE.log has all that was said. Exit code 1: a stage failed or ran out of time.
set -euo pipefail
script=$(readlink -f "$0")
cd "$(dirname "$script")/.."
# shellcheck source=scripts/gpu/common.sh
. scripts/gpu/common.sh
# shellcheck source=scripts/gpu/pack.sh
. scripts/gpu/pack.sh
# shellcheck source=scripts/gpu/check_stages.sh
. scripts/gpu/check_stages.sh
# shellcheck source=scripts/gpu/measure_stages.sh
. scripts/gpu/measure_stages.sh

# Names and time limits, in the order of what one would not want to miss.
stages=(machine:10 build:150 doctor:15 ops:50 facts:20 sanitizer:45 train:50
  resnet50:60 resnet50_bf16:45 lstm:60 resnet1001:60 torch:60)

usage() {
  echo "gpu_check: $1 (scripts/gpu_check.sh names all flags in its first lines)" >&2
  exit 2
}

out=${OUT:-out/gpu_check} deps=out/gpu_deps build='' seconds=360 only='' double=0 stage='' pack=''
while [ $# -gt 0 ]; do
  case $1 in
    --double) double=1; shift; continue ;;
    --out | --deps | --build | --seconds | --only | --stage | --pack)
      [ $# -ge 2 ] || usage "$1 takes a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    *) usage "there is no flag '$1'" ;;
  esac
done
[[ $seconds =~ ^[0-9]+$ ]] || usage "--seconds takes whole seconds, not '$seconds'"
if [ -n "$pack" ]; then
  pack_libraries "$pack"
  exit
fi
[ "$double" = 0 ] || [ -n "$build" ] || usage "--double takes --build with a build folder"
build=${build:-build/gpu}
mkdir -p "$out"
out=$(readlink -f "$out") build=$(readlink -m "$build") deps=$(readlink -m "$deps")

choose_programs
if [ -n "$stage" ]; then  # started by the loop below, in a process that has a time limit
  "stage_$stage"
  exit
fi

if [ "$double" = 1 ]; then require_built; else require_libraries; fi
for each in ${only//,/ }; do
  [[ " ${stages[*]}" == *" $each:"* ]] || usage "there is no stage '$each'"
done
start_results
for each in "${stages[@]}"; do
  name=${each%:*}
  [ -z "$only" ] || [[ ",$only," == *",$name,"* ]] || continue
  run_stage "$name" "${each#*:}"
done
finish_results
