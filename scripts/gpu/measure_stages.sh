# shellcheck shell=bash
# Stages that measure: time and memory of whole steps at several budgets, and PyTorch's on the same
# GPU. Rows go to table.md as they come.
# shellcheck disable=SC2154

table_head() {
  [ -f "$out/table.md" ] && return
  {
    echo '| network | run | ms per step | planned bytes | measured bytes | GPU memory, MiB | recomputed | last loss |'
    echo '|---|---|---|---|---|---|---|---|'
  } >"$out/table.md"
}

# What the GPU's memory grows by at most while a command runs, in MiB; the command's output is kept.
with_gpu_memory() {
  gpu_mib='-'
  if ! command -v nvidia-smi >/dev/null; then
    "$@"
    return
  fi
  local samples=$out/memory.samples code=0 before sampler
  before=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1)
  nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 100 >"$samples" 2>&1 &
  sampler=$!
  "$@" || code=$?
  kill "$sampler" 2>/dev/null || true
  wait "$sampler" 2>/dev/null || true
  gpu_mib=$(grep -E '^[0-9]+$' "$samples" | sort -n | tail -n 1)
  gpu_mib=$((${gpu_mib:-before} - before))
  return "$code"
}

# Of the list of all steps' losses, which stands on lines of its own or on one.
last_loss() {
  tr -d ' \n' <"$1" | sed -n 's/.*"losses":\[\([^]]*\)\].*/\1/p' | tr , '\n' | tail -n 1
}

# NAME STEPS MODEL FLAGS...: node costs first, then keeping everything and two budgets.
measure() {
  local name=$1 steps=$2 budget file budgets=(unlimited 50% 25%)
  [ "$double" = 0 ] || budgets=(unlimited floor)
  shift 2
  table_head
  # With costs measured, plans weigh what this GPU takes.
  reprise_json "$out/$name.profile.json" profile "$@" --device cuda --repeats 3 --seconds 5 \
    --out "$out/$name.costs" || wrong "$name: profile"
  record profile_ms_per_step "$(field ms_per_step "$out/$name.profile.json")"
  for budget in "${budgets[@]}"; do
    file=$out/$name.${budget%\%}.json
    if ! with_gpu_memory reprise_json "$file" train "$@" --device cuda --steps "$steps" --no-eval \
      --budget "$budget"; then
      wrong "$name at $budget"
      continue
    fi
    [ "$(field peak_bytes "$file")" = "$(field peak_bytes_measured "$file")" ] ||
      wrong "$name at $budget: the measured peak is not the planned one"
    printf '| %s | reprise, %s | %.2f | %s | %s | %s | %s | %s |\n' "$name" "$budget" \
      "$(field ms_per_step "$file")" "$(field peak_bytes "$file")" \
      "$(field peak_bytes_measured "$file")" "$gpu_mib" "$(field recomputed_nodes "$file")" \
      "$(last_loss "$file")" >>"$out/table.md"
    record "at_${budget%\%}" "$(printf '{"ms_per_step": %s, "predicted_ms_per_step": %s, "peak_bytes": %s, "gpu_mib": "%s", "overhead": %s, "process_overhead_bytes": %s, "costs": "%s", "plan_ms": %s}' \
      "$(field ms_per_step "$file")" "$(field predicted_ms_per_step "$file")" \
      "$(field peak_bytes "$file")" "$gpu_mib" "$(field overhead "$file")" \
      "$(field process_overhead_bytes "$file")" "$(field costs "$file")" "$(field plan_ms "$file")")"
  done
  end_of_checks
}

stage_resnet50() {
  if [ "$double" = 1 ]; then
    measure mlp 3 "${small_mlp[@]}"
  else
    measure resnet50 20 --model resnet50 --image 3x224x224 --classes 1000 --batch 128
  fi
}

# The same in bf16: activations of half the bytes, products on tensor cores.
stage_resnet50_bf16() {
  if [ "$double" = 1 ]; then
    measure mlp_bf16 3 "${small_mlp[@]}" --precision bf16
  else
    measure resnet50_bf16 20 --model resnet50 --image 3x224x224 --classes 1000 --batch 128 \
      --precision bf16
  fi
}

stage_resnet1001() {
  if [ "$double" = 1 ]; then skip 'an mlp stood for both networks of images'; fi
  measure resnet1001 8 --model resnet1001 --image 3x32x32 --classes 10 --batch 128
}

stage_lstm() {
  if [ "$double" = 1 ]; then
    measure lstm 3 "${small_lstm[@]}"
  else
    measure lstm 6 --model lstm --seq-len 10000 --chunk 100 --hidden 256 --vocabulary 64 --batch 32
  fi
}

stage_torch() {
  if ! python3 -c 'import torch' 2>/dev/null; then skip 'there is no PyTorch'; fi
  local flags=()
  if [ "$double" = 1 ]; then flags=(--tiny); fi
  table_head
  python3 scripts/gpu/torch_steps.py ${flags[@]+"${flags[@]}"} --seconds $((seconds - 5)) \
    --table "$out/table.md" --json "$out/torch.json"
  record rows "$(tr -d '\n' <"$out/torch.json")"
}
