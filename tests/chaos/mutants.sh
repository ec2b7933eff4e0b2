#!/usr/bin/env bash
# Builds that break a promise come out invalid, for the right reason, the first of them again when its
# history is replayed; the build that keeps it is valid with the same seed, and with the same history.
# shellcheck disable=SC2046
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
good=$BULKHEAD
run=(--seed 11 --faults kill --count 40 --rate 50)
# Of what is wrong once in 1,000 times a run has to see enough.
of_mutant() {
    case $1 in *_few) echo --find-rate 1/1000 ;; esac
}

LIMIT=120
case_name="the unbroken build"
cli chaos "${run[@]}" --json --history good.jsonl
expect_status 0
expect_json '.verdict == "valid" and .faults.kill > 10 and .power.found_rate <= 0.01'
case_name="too few operations"
jq -c 'if .bulkhead_chaos then .find_rate = 0.00001 else . end' good.jsonl > few.jsonl
cli chaos --check few.jsonl --json
expect_status 4
expect_json '.verdict == "unknown" and (.findings[0].text | startswith("too few operations"))'
case_name="a history of before there was a rate to find"
jq -c 'del(.find_rate)' good.jsonl > old.jsonl
cli chaos --check old.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .power.find_rate == 0'
rm -f good.jsonl few.jsonl old.jsonl

for mutant in $MUTANTS; do
    BULKHEAD=$PROGRAMS/chaos_mutant_$mutant behind "$mutant" chaos "${run[@]}" $(of_mutant "$mutant") --json
done
for mutant in $MUTANTS; do
    anomaly=$(< "$ANOMALIES/$mutant.anomaly")
    case_name="mutant $mutant"
    of_behind "$mutant"
    seed=11 history=$mutant/chaos-11.jsonl
    # A busy machine does little between two kills: what is broken need not come up in the first run,
    # or something else does, for which nothing can be said of that.
    while [ "$seed" -lt 15 ] && ! { [ -s .stdout ] && jq -e ".anomalies.$anomaly > 0" .stdout > .jq 2>&1; }; do
        rm -f "$history"
        seed=$((seed + 1))
        history=chaos-$seed.jsonl
        BULKHEAD=$PROGRAMS/chaos_mutant_$mutant cli chaos --seed "$seed" --faults kill --count 160 \
            --rate 50 $(of_mutant "$mutant") --json
    done
    rm -f .jq
    expect_status 1
    expect_json ".verdict == \"invalid\" and .anomalies.$anomaly > 0 and .history == \"chaos-$seed.jsonl\""
    [ -s "$history" ] || fail "the history was not saved"
    rm -f "$history"
done

# Of the first mutant, whose every death shows it.
BULKHEAD=$PROGRAMS/chaos_mutant_retires
case_name="a saved history"
cli chaos "${run[@]}" --history broken.jsonl
expect_status 1
expect_stdout "To see it again: bulkhead chaos --replay broken.jsonl"
cli chaos --check broken.jsonl
expect_status 1
expect_stdout "invalid"
expect_untouched
case_name="replayed by the same build"
cli chaos --replay broken.jsonl --json
expect_status 1
expect_json '.verdict == "invalid" and .anomalies.false_success > 0 and .seed == "11"'
case_name="replayed by the unbroken build"
BULKHEAD=$good
cli chaos --replay broken.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.kill > 10'
finish
