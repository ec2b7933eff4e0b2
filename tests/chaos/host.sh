#!/usr/bin/env bash
# `bulkhead chaos --attach` and `--run`: a host that is not the command's own (examples/chaos_host.c).
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
LIMIT=120

refuses "--attach and --run exclude each other" chaos --attach 1 --run -- true
refuses "--run takes a command" chaos --run
refuses "only --run takes a command" chaos --attach 1 -- true
refuses "says whose processes" chaos --targets worker
refuses "'host' is no process of a host" chaos --attach 1 --targets worker,host
refuses "oom cannot be injected into another host" chaos --attach 1 --faults oom
refuses "--schedule and --seed exclude each other" chaos --attach 1 --schedule x --seed 1
echo '{"number": 1}' > bad.jsonl
refuses "line 1 is no fault of a host" chaos --attach 1 --schedule bad.jsonl

case_name="the exit status is the command's"
cli chaos --run -- bash -c 'exit 7'
expect_status 7
cli chaos --run -- bash -c 'kill -KILL $$'
expect_status 137
cli chaos --run -- ./missing
expect_status 127

case_name="a host survives, and its own processes are never hit"
cli chaos --run --seed 3 --rate 3 --faults kill,slow --targets worker,spare,zygote --log first.jsonl -- \
    "$EXAMPLE" 8 20
expect_status 0
expect_json '.right == 8 and .others == 0'
hits=$(jq -r 'select(.missed == null) | [.target, .pid, .host] | @tsv' first.jsonl)
if [ -n "$hits" ]; then passed=$((passed + 1)); else fail "nothing was hit"; fi
if [ "$(jq -s 'all(.[]; .missed != null or (.pid > 1 and .host > 1 and .pid != .host))' first.jsonl)" = true ] &&
    [ "$(jq -s '[.[].host | values] | unique | length' first.jsonl)" = 1 ]; then
    passed=$((passed + 1))
else
    fail "another process was hit: $hits"
fi

case_name="a schedule is replayed"
head -n 3 first.jsonl > plan.jsonl
cli chaos --run --schedule plan.jsonl --log second.jsonl -- "$EXAMPLE" 4 20
expect_status 0
plan='[.number, .at_ms, .fault, .target, .lasts_ms, .salt]'
count=$(wc -l < second.jsonl)
if [ "$count" -ge 1 ] && diff <(head -n "$count" plan.jsonl | jq -c "$plan") <(jq -c "$plan" second.jsonl); then
    passed=$((passed + 1))
else
    fail "other faults"
fi

# T2, E13: nobody is blamed for what others do, so nothing is QUARANTINED or COMPILE_FAILED. There are fewer
# faults than a stream may lose workers, or a request be retried, however slow the machine is.
number=0
case_name="kills and stops by others cost a host retries alone"
for fault in "kill worker" "kill compiler" "kill worker" "kill zygote" "kill compiler" "stop worker" "kill worker" \
    "kill compiler" "kill worker" "kill compiler" "stop worker" "kill worker" "kill zygote" "kill worker"; do
    read -r kind target <<< "$fault"
    printf '{"number": %d, "at_ms": %d, "fault": "%s", "target": "%s", "salt": "%d"}\n' \
        "$((++number))" "$((number * 80))" "$kind" "$target" "$((number * 7919))"
done > others.jsonl
cli chaos --run --schedule others.jsonl --log hits.jsonl -- "$EXAMPLE" 40 20 "$((5 * slowness))"
expect_status 0
expect_json '.right == 40 and .others == 0 and .victims == .retried'
if jq -es '[.[] | select(.missed == null) | .target] | unique | length > 1' hits.jsonl > .stdout; then
    passed=$((passed + 1))
else
    fail "too few were hit: $(< hits.jsonl)"
fi

# What was running is lost, and is nobody's fault.
case_name="without a retry what others ended is VICTIM"
cli chaos --run --seed 5 --rate 8 --faults kill --targets worker --count 12 --log hits.jsonl -- "$EXAMPLE" 40 0
expect_json '.right + .victims == 40 and .lost == .victims and .others == 0'

case_name="the faults of the library cost a host retries alone"
export BULKHEAD_CHAOS="seed=1 device_lost=4% out_of_memory=2% unavailable=3% late=5%/50ms spawn=5%"
cli chaos --run --seed 5 --rate 8 --faults kill --targets compiler --count 12 --log hits.jsonl -- "$EXAMPLE" 40 20
unset BULKHEAD_CHAOS
expect_status 0
expect_json '.right == 40 and .others > 0 and .retried == .victims + .others'

# It is stopped, and nobody is left to continue it but the guard.
case_name="what was stopped goes on when the command is killed"
"$EXAMPLE" 1000 20 > /dev/null 2>&1 &
host=$!
"$BULKHEAD" chaos --attach "$host" --faults stop --targets zygote --rate 50 --duration 100s > log.jsonl 2> /dev/null &
chaos=$!
until pid=$(jq -r 'select(.missed == null) | .pid' log.jsonl | head -n 1) && [ -n "$pid" ]; do
    kill -0 "$chaos" || break
done
until [ "$(awk '{print $3}' "/proc/$pid/stat")" = T ]; do
    kill -0 "$chaos" || break
done
kill -KILL "$chaos"
while [ "$(awk '{print $3}' "/proc/$pid/stat" 2> /dev/null)" = T ]; do :; done
passed=$((passed + 1))
kill -KILL "$host"
wait "$host" "$chaos" 2> /dev/null
finish
