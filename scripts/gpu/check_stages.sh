# shellcheck shell=bash
# Stages that say whether the backend is right. Sourced by gpu_check.sh; each stage_NAME is run in a
# process of its own, and exits with 77 where it does not apply.
# shellcheck disable=SC2154

skip() {
  echo "$1"
  record skipped "$(text "$1")"
  exit 77
}

end_of_checks() {
  [ "$failures" = 0 ]
}

# reprise, on the GPU. The first argument names the file that gets the JSON.
reprise_json() {
  local to=$1
  shift
  echo "reprise $*"
  "$program" "$@" --json >"$to"
}

stage_machine() {
  if [ "$double" = 1 ]; then skip 'the double is no machine'; fi
  nvidia-smi || wrong 'nvidia-smi'
  record gpu "$(text "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)")"
  local nvcc
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc)
  record nvcc "$(text "$("$nvcc" --version | sed -n 's/.*\(release.*\)/\1/p')")"
  record compiler "$(text "$("${CXX:-c++}" --version | head -n 1)")"
  record cores "$(nproc)"
  end_of_checks
}

stage_build() {
  if [ "$double" = 1 ]; then skip 'the build folder is taken as it is'; fi
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DREPRISE_CUDA=ON -DREPRISE_TESTS=OFF \
    -DREPRISE_BENCH=OFF -DCMAKE_CUDA_ARCHITECTURES="80;90" -DCMAKE_PREFIX_PATH="$deps"
  cmake --build "$build" --parallel "$(nproc)" --target reprise reprise_cuda gpu_check gpu_facts
}

stage_doctor() {
  "$program" doctor
  reprise_json "$out/doctor.json" doctor
  local device
  device=$("$program" doctor | sed -n '/^ *cuda /,/^$/p' | tr -s ' \n' ' ')
  record device "$(text "$device")"
  [[ $device == *cuda\ yes* ]] || wrong "the program finds no GPU: $device"
  end_of_checks
}

# Four processes share the cases: what takes the time is reserving memory for every operand.
stage_ops() {
  local shares=4 each pids=() code=0
  if [ "$double" = 1 ]; then shares=16; fi
  for each in 1 2 3 4; do
    if [ "$double" = 1 ] && [ "$each" -gt 1 ]; then break; fi
    "$check_program" --share "$each/$shares" --seconds $((seconds - 5)) >"$out/ops.$each.txt" 2>&1 &
    pids+=($!)
  done
  for each in "${pids[@]}"; do wait "$each" || code=1; done
  cat "$out"/ops.?.txt
  record cases "$(cat "$out"/ops.?.txt | grep -c '^ok  ' || true)"
  record failed "$(cat "$out"/ops.?.txt | grep -c '^FAILED' || true)"
  record parts "[$(cat "$out"/ops.?.txt | grep '^{' | paste -sd, -)]"
  return "$code"
}

stage_facts() {
  local code=0
  "$facts_program" >"$out/facts.txt" 2>&1 || code=$?
  cat "$out/facts.txt"
  record failed "[$(sed -n 's/^FAILED \(.*\)/"\1"/p' "$out/facts.txt" | paste -sd, -)]"
  return "$code"
}

small_mlp=(--model mlp --image 1x8x8 --classes 5 --batch 128 --hidden 32 --layers 6)
small_lstm=(--model lstm --seq-len 12 --chunk 3 --hidden 16 --vocabulary 11 --batch 2)

stage_sanitizer() {
  local sanitizer tool log
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null ||
    ls /usr/local/cuda/compute-sanitizer/compute-sanitizer 2>/dev/null || true)
  if [ "$double" = 1 ]; then skip 'the double checks each access itself'; fi
  if [ -z "$sanitizer" ]; then skip 'there is no compute-sanitizer'; fi
  for tool in memcheck racecheck synccheck; do
    if [ "$tool" != memcheck ] && [ "$SECONDS" -gt $((seconds / 2)) ]; then
      echo "no time for $tool"
      continue
    fi
    for network in small_mlp small_lstm; do
      local -n model=$network
      log=$out/sanitizer.$tool.$network.txt
      if timeout $((seconds - SECONDS - 2)) "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" train "${model[@]}" \
        --device cuda --steps 3 --no-eval --budget floor >"$log" 2>&1; then
        echo "ok     $tool $network"
      else
        wrong "$tool $network: $log"
      fi
      record "${tool}_$network" "$(text "$(grep 'SUMMARY' "$log" | tail -n 1)")"
    done
  done
  end_of_checks
}

# The bytes that leave a quarter of the activations, or the floor.
quarter() {
  local keep floor activations
  reprise_json "$out/$1.plan.json" plan "${@:2}" --device cuda --budget unlimited >&2 || return
  keep=$(field keep_all_bytes "$out/$1.plan.json")
  floor=$(field floor_bytes "$out/$1.plan.json")
  activations=$(field activation "$out/$1.plan.json")
  local left=$((keep - activations * 3 / 4))
  echo $((left > floor ? left : floor))
}

# Trains the network of this name at two budgets, recorded and not: one hash, and the planned peaks.
train_four_ways() {
  local name=$1 steps=$2 budget recorded file hash first='' planned measured
  shift 2
  local tight
  tight=$(quarter "$name" "$@") || { wrong "$name: no plan"; return 1; }
  for budget in unlimited "$tight"; do
    for recorded in on off; do
      file=$out/$name.$budget.$recorded.json
      reprise_json "$file" train "$@" --device cuda --steps "$steps" --no-eval --budget "$budget" \
        --cuda-graph "$recorded" || { wrong "$name at $budget"; continue; }
      hash=$(field state_hash "$file")
      planned=$(field peak_bytes "$file")
      measured=$(field peak_bytes_measured "$file")
      first=${first:-$hash}
      if [ "$budget" != unlimited ] && [ "$(field recomputed_nodes "$file")" = 0 ]; then
        wrong "$name at $budget: nothing is computed again, so that equal bits say nothing"
      fi
      [ "$hash" = "$first" ] || wrong "$name at $budget, --cuda-graph $recorded: other bits"
      [ "$planned" = "$measured" ] || wrong "$name at $budget: $measured bytes instead of $planned"
      record "${name}_${budget}_graph_$recorded" "$(printf \
        '{"state_hash": "%s", "peak_bytes": %s, "measured": %s, "ms_per_step": %s, "recomputed": %s}' \
        "$hash" "$planned" "$measured" "$(field ms_per_step "$file")" \
        "$(field recomputed_nodes "$file")")"
    done
  done
  end_of_checks
}

# The networks side by side: planning them takes longer than their steps.
stage_train() {
  local images=(--image 1x28x28 --classes 10) each runs=() code=0
  if "$program" doctor | grep -q 'fashion-mnist  yes'; then images=(--data fashion-mnist); fi
  if [ "$double" = 1 ]; then
    train_four_ways mlp 3 "${small_mlp[@]}" &
    runs+=($!)
    train_four_ways mlp_bf16 3 "${small_mlp[@]}" --precision bf16 &
    runs+=($!)
    train_four_ways lstm 3 "${small_lstm[@]}" --optimizer adam &
    runs+=($!)
  else
    train_four_ways resnet20 200 --model resnet20 "${images[@]}" --batch 128 &
    runs+=($!)
    train_four_ways resnet20_bf16 100 --model resnet20 "${images[@]}" --batch 128 \
      --precision bf16 &
    runs+=($!)
    train_four_ways lstm 200 --model lstm --seq-len 256 --chunk 16 --hidden 256 --vocabulary 64 \
      --batch 16 --optimizer adam &
    runs+=($!)
  fi
  for each in "${runs[@]}"; do wait "$each" || code=1; done
  return "$code"
}
