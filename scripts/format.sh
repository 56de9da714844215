#!/usr/bin/env bash
# Formats every C++ file of the project; with --check only says which ones are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
  echo "format: clang-format is missing; run scripts/install_deps.sh --dev" >&2
  exit 1
fi
mapfile -d '' files < <(find . \( -path ./build -o -path ./out -o -path './.*' \) -prune -o \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) -type f -print0 | sort -z)
case "${1:-}" in
  --check)
    clang-format --dry-run --Werror "${files[@]}"
    echo "format: ${#files[@]} files are formatted" ;;
  '')
    clang-format -i "${files[@]}"
    echo "format: formatted ${#files[@]} files" ;;
  *)
    echo "format: unknown argument '$1'; only --check is known" >&2
    exit 2 ;;
esac
