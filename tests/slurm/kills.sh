#!/usr/bin/env bash
# 1,000 jobs over three nodes, and KILLS random kills of what a real Slurm and its tasks consist of:
# of a shard's batch, of a machine, of the controller, of the submitter. At the end every job has run
# exactly once. The kills come from a seed, which is printed.
# shellcheck disable=SC2317 # until_true calls functions
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

RANDOM=${SEED:=$$}
echo "SEED=$SEED"
counters=20 chain=49 # with one more job for each counter: 1,000
slurm=(--executor slurm --poll 1s --no-probe --shards 6 --streams 1 --on-interrupt leave)
make_counters 1 1
cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
expect_status 0
cluster_start 3 || finish

# The pids of the shards' batches, of those that hold their state folder now.
batches() {
    local lock pid
    for lock in jobs.jsonl.state/shards/*/state/lock; do
        pid=$(tr -dc '0-9 ' 2> /dev/null < "$lock" | awk '{ print $NF }')
        # A pid that is another process by now is left alone.
        if tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline" | grep -qF "$folder/jobs.jsonl.state/"; then echo "$pid"; fi
    done
}
# Slurm may take minutes to notice; most often it takes some ten seconds.
stays_dead() { # NODE
    local end=$((SECONDS + 15))
    until sinfo --noheader --Node --nodes="$1" -o %T | grep -q ^down || [ "$SECONDS" -gt "$end" ]; do sleep 0.2; done
}
submit() { "$BULKHEAD" batch jobs.jsonl "${slurm[@]}" --resume >> submitter.log 2>&1 < /dev/null & }

kills=0 runs=0
# shellcheck disable=SC2153 # of the environment
while [ "$runs" -eq 0 ] || [ "$kills" -lt "$KILLS" ]; do
    runs=$((runs + 1))
    case_name="run $runs, from kill $kills on"
    rm -rf jobs.jsonl.state counters squares
    make_counters "$counters" "$chain"
    : > submitter.log
    submit
    submitter=$!
    end=$((SECONDS + 600 * slowness))
    while [ "$SECONDS" -lt "$end" ]; do
        if ! kill -0 "$submitter" 2> /dev/null; then
            wait "$submitter"
            status=$?
            [ "$status" -ne 0 ] || break
            submit # one that was killed, or a shard that was stuck
            submitter=$!
        fi
        sleep "0.$((RANDOM % 9 + 1))"
        [ "$kills" -lt "$KILLS" ] || continue
        kills=$((kills + 1))
        case $((RANDOM % 10)) in
        0)
            controller_kill
            controller_start
            ;;
        1 | 2)
            node=n$((RANDOM % 3 + 1))
            node_kill "$node"
            # Its tasks go on, and are lost for Slurm when it has noticed.
            [ "$KILLS" -lt 10 ] || [ $((RANDOM % 4)) -gt 0 ] || stays_dead "$node"
            node_start "$node"
            ;;
        3 | 4)
            kill -KILL "$submitter" 2> /dev/null
            ;;
        *)
            pid=$(batches | shuf -n 1 --random-source=<(yes "$RANDOM"))
            [ -z "$pid" ] || kill -KILL "$pid" 2> /dev/null
            ;;
        esac
    done
    tail -n 20 submitter.log > .stderr
    tail -n 2 submitter.log > .stdout
    expect_status 0
    expect_shards jobs.jsonl.state "$counters" "$chain"
    [ "$failed" -eq 0 ] || break
done
echo "$kills kills in $runs runs of 1,000 jobs, the last submitted in $(jq '.rounds | length' jobs.jsonl.state/array.json) arrays"
finish
