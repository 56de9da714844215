#!/bin/bash
# Two network namespaces as two hosts, joined by two links. Needs root, iproute2 and namespaces.
#
#   - 2 ranks on each host train with the losses and bits of 4 ranks on one host
#   - GLOO_SOCKET_IFNAME chooses the link that gradients take, and the choice is printed
#   - a link that is cut, and one that swallows every packet, end both sides within the time-out,
#     with a code other than 0 and both addresses named; --resume then goes on to the same bits
#   - a master that is out of reach is an error within the time-out that names both addresses
#
# Takes about 2 minutes. Usage: tests/long/two_hosts.sh [build/release/bin/reprise]

set -u
program=$(realpath "${1:-build/release/bin/reprise}")
id=$$
one=reprise-$id-1 two=reprise-$id-2
work=$(mktemp --directory --tmpdir two_hosts_XXXXXX)
timeout=8
margin=10
failures=0
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

clean_up() {
  for host in "$one" "$two"; do
    ip netns pids "$host" 2>/dev/null | xargs -r kill -9 2>/dev/null
    ip netns del "$host" 2>/dev/null
  done
  rm -rf "$work"
}
trap clean_up EXIT

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
}
expect_in() {  # FILE TEXT
  grep -qE -- "$2" "$1" || { fail "'$2' is not in $(basename "$1"):"; tail -n 15 "$1" | sed 's/^/    /'; }
}

make_hosts() {
  ip netns add "$one" && ip netns add "$two" || exit 1
  for link in a b; do  # a: 10.77.0.x, b: 10.78.0.x
    ip link add "${link}0" netns "$one" type veth peer name "${link}1" netns "$two" || exit 1
  done
  ip -n "$one" addr add 10.77.0.1/24 dev a0
  ip -n "$two" addr add 10.77.0.2/24 dev a1
  ip -n "$one" addr add 10.78.0.1/24 dev b0
  ip -n "$two" addr add 10.78.0.2/24 dev b1
  for link in lo a0 b0; do ip -n "$one" link set "$link" up; done
  for link in lo a1 b1; do ip -n "$two" link set "$link" up; done
}

# host 1|2 NAME, master port and flags: into NAME.1.out, NAME.1.err, NAME.1.code and so on.
start() {
  local number=$1 name=$2 port=$3 host=$one
  shift 3
  [ "$number" = 2 ] && host=$two
  (cd "$work" || exit 1
   ip netns exec "$host" "$program" launch -n 2 --nnodes 2 --node-rank $((number - 1)) \
     --master-addr 10.77.0.1 --master-port "$port" --first-plain -- train "$@" \
     >"$name.$number.out" 2>"$name.$number.err"
   echo $? >"$name.$number.code") &
}

flags=(--model mlp --data synthetic --image 1x16x16 --hidden 128 --layers 3 --classes 4 --batch 24
  --dropout 0.1 --costs analytic --planner keep_all --seed 5 --comm-timeout "$timeout")

same_answer() {  # FILE: losses and hash are those of one host
  python3 - "$work/alone.out" "$1" <<'PYTHON' || fail "$1 differs from one host"
import json, sys
one, two = (json.load(open(name)) for name in sys.argv[1:])
count = len(two["losses"])
assert one["losses"][-count:] == two["losses"], (one["losses"][-count:], two["losses"])
assert one["state_hash"] == two["state_hash"] and two["world_size"] == 4
PYTHON
}

bytes_over() { ip netns exec "$one" cat "/sys/class/net/$1/statistics/tx_bytes"; }

trains_as_on_one_host() {
  (cd "$work" && "$program" launch -n 4 --first-plain -- train "${flags[@]}" --steps 30 --json \
    >alone.out 2>alone.err) || fail "one host"
  start 1 two 29500 "${flags[@]}" --steps 30 --json
  start 2 two 29500 "${flags[@]}" --steps 30 --json
  wait
  same_answer "$work/two.1.out"
  expect_in "$work/two.1.err" 'rank 1 of 4 is at 10.77.0.1 \(a0, the way to rank 0\); store of rank 0 at 10.77.0.1:30500'
  expect_in "$work/two.2.err" 'rank 2 of 4 is at 10.77.0.2 \(a1, the way to rank 0\)'
}

takes_the_chosen_link() {
  local before_a before_b
  before_a=$(bytes_over a0) before_b=$(bytes_over b0)
  GLOO_SOCKET_IFNAME=b start 1 chosen 29600 "${flags[@]}" --steps 30 --json
  GLOO_SOCKET_IFNAME=b start 2 chosen 29600 "${flags[@]}" --steps 30 --json
  wait
  same_answer "$work/chosen.1.out"
  expect_in "$work/chosen.1.err" 'rank 0 of 4 is at 10.78.0.1 \(b0, by GLOO_SOCKET_IFNAME\)'
  expect_in "$work/chosen.2.err" 'rank 3 of 4 is at 10.78.0.2 \(b1, by GLOO_SOCKET_IFNAME\)'
  local over_a=$(($(bytes_over a0) - before_a)) over_b=$(($(bytes_over b0) - before_b))
  echo "  chosen link $over_b bytes, the other $over_a"
  [ "$over_b" -gt $((10 * over_a)) ] || fail "gradients took the link that was not chosen"
}

wait_for_snapshot() {
  for _ in $(seq 300); do
    ls "$work/$1"/snapshot-*.safetensors >/dev/null 2>&1 && return
    sleep 0.1
  done
  fail "no snapshot in $1"
}

# NAME and port; what `break_it` does, in the middle of a long run.
ends_when_broken() {
  local name=$1 port=$2 begin took
  start 1 "$name" "$port" "${flags[@]}" --steps 1000000 --save "$name" --save-every 10
  start 2 "$name" "$port" "${flags[@]}" --steps 1000000 --save "$name.2" --save-every 10
  wait_for_snapshot "$name"
  break_it
  begin=$(date +%s)
  wait
  took=$(($(date +%s) - begin))
  echo "  both sides ended after $took s"
  [ "$took" -le $((timeout + margin)) ] || fail "$name: it took $took s"
  for number in 1 2; do
    [ "$(cat "$work/$name.$number.code")" != 0 ] || fail "$name: host $number ended with 0"
    expect_in "$work/$name.$number.err" 'error: .*10\.77\.0\.1'
    expect_in "$work/$name.$number.err" 'error: .*10\.77\.0\.2'
    expect_in "$work/$name.$number.err" 'rank [0-3] failed first'
  done
  heal_it
  resumes "$name" $((port + 10))
}

# From the snapshot that is there, the bits of a run on one host that stopped at no time.
resumes() {
  local name=$1 port=$2 snapshot steps
  snapshot=$(ls -v "$work/$name"/snapshot-*.safetensors | tail -n 1)
  steps=$(($(basename "$snapshot" .safetensors | tr -dc 0-9) + 5))
  start 1 "$name-on" "$port" "${flags[@]}" --steps "$steps" --resume "$snapshot" --json
  start 2 "$name-on" "$port" "${flags[@]}" --steps "$steps" --resume "$snapshot" --json
  (cd "$work" && "$program" launch -n 4 --first-plain -- train "${flags[@]}" --steps "$steps" \
    --json >alone.out 2>alone.err) || fail "one host"
  wait
  same_answer "$work/$name-on.1.out"
}

# Nobody answers for a neighbour's address that is wrong: packets leave and are dropped.
break_by_silence() {
  ip -n "$one" neigh replace 10.77.0.2 lladdr 02:00:00:00:00:99 dev a0 nud permanent
  ip -n "$two" neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev a1 nud permanent
}
heal_silence() {
  ip -n "$one" neigh del 10.77.0.2 dev a0
  ip -n "$two" neigh del 10.77.0.1 dev a1
}

unreachable_master() {
  ip -n "$one" link set a0 down
  local begin took
  begin=$(date +%s)
  start 2 lost 29900 "${flags[@]}" --steps 3
  wait
  took=$(($(date +%s) - begin))
  ip -n "$one" link set a0 up
  [ "$(cat "$work/lost.2.code")" != 0 ] || fail "no master, and still 0"
  [ "$took" -le $((timeout + margin)) ] || fail "unreachable master: it took $took s"
  expect_in "$work/lost.2.err" 'no connection from 10.77.0.2 to rank 0 at 10.77.0.1:30900 within'
}

make_hosts
echo "training over two hosts"
trains_as_on_one_host
echo "the link that GLOO_SOCKET_IFNAME names"
takes_the_chosen_link
echo "a link that is cut"
break_it() { ip -n "$one" link set a0 down; }
heal_it() { ip -n "$one" link set a0 up; }
ends_when_broken cut 29700
echo "a link that swallows everything"
break_it() { break_by_silence; }
heal_it() { heal_silence; }
ends_when_broken silent 29800
echo "a master that is out of reach"
unreachable_master
echo "$failures failures"
[ "$failures" = 0 ]
