#!/usr/bin/env bash
# A host on a bad day: examples/chaos_host.c, whose processes are hit at the rates below, for each seed in
# $SEEDS. All answers must be right, by retries of the host's alone, and nobody may be blamed for what others
# ended: no verdict is UNAVAILABLE, QUARANTINED or COMPILE_FAILED, or anything else that is no VICTIM (T2, E13).
#   REQUESTS, RETRIES   of each run (100, 20); RETRIES=0: each request that is not right is a VICTIM
#   RECORD              the file to which each run adds a line
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
LIMIT=400
requests=${REQUESTS:-100}
# A second. On a machine that is slower by $slowness there are as many for each request.
rates=${RATES:-"kill worker 6, kill compiler 4, kill zygote 0.7, stop worker 2"}

# plan SEED: independent faults of each kind, with random gaps, for five minutes.
plan() {
    awk -v seed="$1" -v rates="$rates" -v slowness="$slowness" 'BEGIN {
        srand(seed)
        kinds = split(rates, kind, ", *")
        for (k = 1; k <= kinds; k++) {
            split(kind[k], part, " ")
            for (at = 0; at < 300000 * slowness;) {
                at += -log(1 - rand()) * 1000 * slowness / part[3]
                printf "%d %s %s %d\n", at, part[1], part[2], int(rand() * 2147483647)
            }
        }
    }' | sort -n | awk '{
        printf "{\"number\": %d, \"at_ms\": %d, \"fault\": \"%s\", \"target\": \"%s\", \"salt\": \"%s\"}\n", NR, $1, $2, $3, $4
    }'
}

retries=${RETRIES:-20}
for seed in $SEEDS; do
    case_name="seed $seed"
    plan "$seed" > plan.jsonl
    cli chaos --run --schedule plan.jsonl --log hits.jsonl -- "$EXAMPLE" "$requests" "$retries" "$((5 * slowness))" history.jsonl
    # shellcheck disable=SC2016 # jq's
    jq -c --argjson seed "$seed" --slurpfile faults hits.jsonl '{seed: $seed} + . + ($faults |
        {seconds: ([.[].time] | max - min), faults: ([.[] | select(.missed == null) | "\(.fault) \(.target)"] |
         group_by(.) | map({(.[0]): length}) | add)})' .stdout >> "${RECORD:-record.jsonl}"
    if [ "$retries" = 0 ]; then
        expect_json '.right + .victims == '"$requests"' and .lost == .victims and .others == 0'
    else
        expect_status 0
        expect_json ".right == $requests and .others == 0 and .victims == .retried"
    fi
    cli chaos --check history.jsonl --json
    expect_status 0
    expect_json ".verdict == \"valid\" and .power.compared <= $requests"
done
finish
