#!/usr/bin/env bash
# Installs what is missing, builds, and trains two models at a quarter of the activation memory that
# keeping everything would take: a residual network on Fashion-MNIST, then an LSTM on a book.
#   scripts/demo.sh            a few minutes on 2 cores; fails below 88 % test accuracy
#   scripts/demo.sh --smoke    a few steps of each, to see that everything works
# Results are in out/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

image_run=(--epochs 2 --lr 0.05 --lr-schedule cosine --warmup 100 --weight-decay 0.0005)
text_run=(--steps 600 --lr 0.004 --lr-schedule cosine --warmup 20)
wanted=0.88
if [ "${1:-}" = --smoke ]; then
  image_run=(--steps 4 --no-eval)
  text_run=(--steps 2 --no-eval)
  wanted=0
elif [ $# -gt 0 ]; then
  echo "demo: unknown argument '$1'; only --smoke is known" >&2
  exit 2
fi
reprise=build/release/bin/reprise
out=out/demo
mkdir -p "$out"

scripts/install_deps.sh
cmake --preset release
cmake --build --preset release --target reprise --parallel "$(nproc)"

# The budget that leaves a quarter of the activations: what keeping everything takes, less three
# quarters of the activations at its peak (or the floor, where that is more).
quarter() {
  "$reprise" plan "$@" --budget unlimited --json | python3 -c '
import json, sys
plan = json.load(sys.stdin)
less = plan["peak_categories"]["activation"] * 3 // 4
print(max(plan["floor_bytes"], plan["keep_all_bytes"] - less))'
}

# train NAME: plans, draws and trains what follows, and shows the losses.
train() {
  local name=$1 title=$2 budget
  shift 2
  local model=("$@")
  budget=$(quarter "${model[@]}")
  printf '\n== %s: a budget of %s bytes\n' "$title" "$budget"
  "$reprise" plan "${model[@]}" --budget "$budget"
  "$reprise" map "${model[@]}" --budget "$budget" --out "$out/$name.svg"
  rsvg-convert --format png --output "$out/$name.png" "$out/$name.svg"
  printf '\n'
  "$reprise" train "${model[@]}" "${run[@]}" --budget "$budget" --save "$out/$name" --json \
    >"$out/$name.json"
  python3 scripts/loss_curve.py "$out/$name.json" --accuracy "$wanted"
  printf 'memory map: %s (and .png); snapshot: %s\n' "$out/$name.svg" "$out/$name"
}

run=("${image_run[@]}")
train resnet20 "resnet20 on Fashion-MNIST" --model resnet20 --data fashion-mnist --batch 64

# A book where there is one, else the longest text every Debian machine has.
book=$out/book.txt
if command -v bible >/dev/null; then
  bible -l 72 gen1:1-rev22:21 >"$book"
else
  cat /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/LGPL-2.1 \
    /usr/share/common-licenses/GFDL-1.3 /usr/share/common-licenses/Apache-2.0 >"$book"
fi
wanted=0
run=("${text_run[@]}")
train lstm "LSTM on a book, 256 time steps" --model lstm --data "text:$book" --seq-len 256 \
  --chunk 16 --hidden 256 --batch 16 --optimizer adam
