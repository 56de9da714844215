#!/usr/bin/env bash
# Installs what building and testing Reprise needs on Debian 12. Skips what is there; asks nothing.
#   scripts/install_deps.sh [--dev] [--tsan]
#     --dev adds clang-format, clang-tidy and ccache; --tsan what the thread sanitizer's build needs
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libdnnl-dev ocl-icd-opencl-dev  # the second is asked for by the CMake files of the first
  libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3                  # scripts/check_arrows.py, the loss curve of scripts/demo.sh
  dataset-fashion-mnist    # the demo's images
  bible-kjv bible-kjv-text # the demo's book
  librsvg2-bin             # pictures as PNG
  libgloo-dev              # optional: gradients between processes
  coinor-libclp-dev        # optional: lower bounds on the cost of plans by linear programs
)
for argument in "$@"; do
  case $argument in
    --dev) packages+=(clang-format clang-tidy ccache) ;;
    --tsan) packages+=(clang libomp-dev) ;;
    *)
      echo "install_deps: unknown argument '$argument'; --dev and --tsan are known" >&2
      exit 2
      ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [ "${status:0:2}" = ii ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "install_deps: everything is installed (${#packages[@]} packages)"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: not root and no sudo; install these: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install_deps: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
