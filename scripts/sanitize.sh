#!/usr/bin/env bash
# Builds and tests with sanitizers: addresses and undefined behaviour, then threads.
#   scripts/sanitize.sh [asan-ubsan|tsan] [ctest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(asan-ubsan tsan)
if [[ "${1:-}" =~ ^(asan-ubsan|tsan)$ ]]; then
  presets=("$1")
  shift
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
for preset in "${presets[@]}"; do
  echo "== $preset"
  REPRISE_PRESET=$preset scripts/test.sh "$@"
done
