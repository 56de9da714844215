# shellcheck shell=bash
# Stages and their results. Sourced by gpu_check.sh, which sets out, build, seconds and double.
# shellcheck disable=SC2154

choose_programs() {
  program=$build/bin/reprise
  check_program=$build/bin/gpu_check
  facts_program=$build/bin/gpu_facts
  export XDG_CACHE_HOME=$out/cache  # costs measured here are for here
  if [ "$double" = 1 ]; then
    export REPRISE_CUDA_MODULE=$build/lib/libreprise_cuda_double.so
    facts_program=$build/bin/gpu_facts_double
  else
    unset REPRISE_CUDA_MODULE
  fi
}

# name VALUE: one more field of the stage's result; VALUE is JSON.
record() {
  printf '  "%s": %s\n' "$1" "$2" >>"$out/$stage.fields"
}

# The JSON text of a line.
text() {
  printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# A check of the stage that is named in the log; the stage goes on, and fails in the end.
failures=0
wrong() {
  echo "FAILED $1"
  failures=$((failures + 1))
}

# field NAME FILE: the first field of that name in JSON as reprise prints it.
field() {
  sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$2" | head -n 1
}

# A signal ends the stage that runs, too.
start_results() {
  running=''
  trap '[ -z "$running" ] || kill "$running"; exit 143' INT TERM
  start=$SECONDS
  bad=0
  rm -f "$out"/*.log "$out"/*.fields "$out"/gpu_check.json "$out"/table.md "$out"/results.part
  : >"$out/results.part"
}

# NAME LIMIT: in a process of its own, with everything it starts ended after LIMIT seconds.
run_stage() {
  local name=$1 limit=$2 left=$((seconds - (SECONDS - start))) began=$SECONDS code=0 result
  local double_flag=()
  [ "$double" = 0 ] || double_flag=(--double)
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -le 3 ]; then
    add_result "$name" "left out: no time" 0 0
    bad=1
    return
  fi
  timeout --kill-after=5 "$limit" "$BASH" "$script" --stage "$name" --out "$out" \
    --build "$build" --deps "$deps" --seconds "$limit" "${double_flag[@]}" \
    >"$out/$name.log" 2>&1 </dev/null &
  running=$!
  wait "$running" || code=$?
  running=''
  case $code in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="out of time" ;;
    *) result=failed ;;
  esac
  case $code in 0 | 77) ;; *) bad=1 ;; esac
  add_result "$name" "$result" "$code" $((SECONDS - began))
  if [ "$code" != 0 ]; then tail -n 5 "$out/$name.log" | sed 's/^/    /'; fi
}

# Appends the stage, and writes gpu_check.json anew.
add_result() {
  local name=$1 fields=''
  printf '%-13s %-12s %4d s\n' "$name" "$2" "$4"
  [ ! -s "$out/$name.fields" ] || fields=$(sed 's/$/,/' "$out/$name.fields")
  printf '{\n  "stage": "%s",\n%s\n  "result": "%s",\n  "exit_code": %d,\n  "seconds": %d\n},\n' \
    "$name" "$fields" "$2" "$3" "$4" >>"$out/results.part"
  { echo '['; sed '$ s/,$//' "$out/results.part"; echo ']'; } >"$out/gpu_check.json.new"
  mv "$out/gpu_check.json.new" "$out/gpu_check.json"
}

finish_results() {
  echo
  [ ! -f "$out/table.md" ] || cat "$out/table.md"
  echo "results: $out/gpu_check.json, logs beside it; $((SECONDS - start)) s"
  exit "$bad"
}

require_built() {
  local missing=() each
  for each in "$program" "$check_program" "$facts_program" "$REPRISE_CUDA_MODULE"; do
    [ -e "$each" ] || missing+=("$each")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "gpu_check: not built: ${missing[*]}" >&2
    echo "  cmake --build $build --target reprise reprise_cuda_double gpu_check gpu_facts_double" >&2
    exit 2
  fi
}
