#!/usr/bin/env bash
# Installs what is missing, builds and runs every test. Arguments go to ctest, e.g. -R Planner.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${REPRISE_PRESET:-release}
jobs=${REPRISE_JOBS:-$(nproc)}
scripts/install_deps.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$jobs"
ctest --preset "$preset" --parallel "$jobs" --no-tests=error "$@"
