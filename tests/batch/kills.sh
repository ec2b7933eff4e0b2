#!/usr/bin/env bash
# kill -9 of the program at moments that nobody has chosen, KILLS times; at the end every job has
# run exactly once. The moments come from a seed, which is printed; when they are in a job's life
# is the machine's affair, and where it is too slow for a job to start before its kill, the kills
# come later and later until jobs are hit.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/counters.sh"

counters=30 chain=20
RANDOM=${SEED:=$$}
echo "SEED=$SEED"
kills=0 batches=0 cut=0 began=0
span=500 # ms: a kill comes within it
# shellcheck disable=SC2153 # of the environment
limit=$((KILLS * 20)) # runs that are over before they are killed

# How many attempts the journal knows: "all" or "cut" (off). Of a copy: whoever closes the database
# moves its log, and that is left to the program.
attempts() {
    local where=1
    [ "$1" = all ] || where="ended_ns = 0"
    rm -rf copy
    cp -r jobs.jsonl.state copy 2> .cp # it may be that nothing has been made yet
    sqlite3 copy/batch.db "SELECT count(*) FROM attempt WHERE $where" 2> .sqlite || echo 0
}

while [ "$kills" -lt "$KILLS" ] || [ "$cut" -eq 0 ]; do
    rm -rf jobs.jsonl.state counters squares
    make_counters "$counters" "$chain"
    if [ ! -e expected.npy ]; then
        case_name="what is to be expected"
        cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
        expect_status 0
    fi
    batches=$((batches + 1))
    status=1
    while [ "$status" -ne 0 ]; do
        case_name="batch $batches, after $kills kills"
        milliseconds=$((1 + (RANDOM << 15 | RANDOM) % span))
        after=$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))
        [ "$kills" -lt "$KILLS" ] || [ "$((cut + $(attempts cut)))" -eq 0 ] || after=60
        # The harness kills the program and nothing else: its workers have to go by themselves.
        "$LEAVES_NONE" timeout --foreground -s KILL "$after" "$BULKHEAD" batch jobs.jsonl --resume > .stdout 2> .stderr
        status=$?
        limit=$((limit - 1))
        case $status in
        0) ;;
        124) ;; # its time was up when it had ended by itself: for timeout that is no kill
        137)
            kills=$((kills + 1))
            before=$began
            began=$(attempts all)
            [ "$began" -gt "$before" ] || span=$((span + 100))
            ;;
        *) limit=-1 ;;
        esac
        if [ "$limit" -lt 0 ]; then
            fail "it ended with $status"
            finish
        fi
    done
    if why=$(check_counters "$counters" "$chain"); then
        passed=$((passed + 1))
    else
        fail "$why"
        finish
    fi
    # The attempts that a kill cut off stay as they are.
    cut=$((cut + $(attempts cut)))
    began=0
done
echo "$kills kills in $batches batches cut off $cut attempts, the last within $span ms"
finish
