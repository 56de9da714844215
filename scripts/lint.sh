#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) on the sources that differ from main, or on all of them with --all.
# Needs a configured build/release (cmake --preset release).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -f build/release/compile_commands.json ]; then
  echo "lint: build/release is not configured; run cmake --preset release" >&2
  exit 1
fi
case "${1:-}" in
  --all) mapfile -t files < <(git ls-files '*.cc') ;;
  '') mapfile -t files < <({ git diff --name-only --diff-filter=d main -- '*.cc'
                             git ls-files --others --exclude-standard -- '*.cc'; } | sort -u) ;;
  *) echo "lint: unknown argument '$1'; only --all is known" >&2; exit 2 ;;
esac
if [ ${#files[@]} -eq 0 ]; then
  echo "lint: nothing differs from main; --all lints everything"
  exit 0
fi
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy --quiet --warnings-as-errors='*' -p build/release
echo "lint: ${#files[@]} files are clean"
