#!/usr/bin/env bash
# Builds and tests with sanitizers: addresses and undefined behaviour, then threads.
#   scripts/sanitize.sh [asan-ubsan|tsan] [ctest arguments]
# The thread sanitizer's build is Clang's: its OpenMP runtime brings Archer, which tells the sanitizer
# what the runtime has ordered. With GCC's each parallel loop would be reported as a race.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(asan-ubsan tsan)
if [[ "${1:-}" =~ ^(asan-ubsan|tsan)$ ]]; then
  presets=("$1")
  shift
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:ignore_noninstrumented_modules=1}
for preset in "${presets[@]}"; do
  echo "== $preset"
  [ "$preset" != tsan ] || scripts/install_deps.sh --tsan
  REPRISE_PRESET=$preset scripts/test.sh "$@"
done
