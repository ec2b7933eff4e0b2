#!/usr/bin/env bash
# Killed with -9 at each step of a job on its way to disk, the first times that it gets there; then
# once more where the outputs are put in their places; then to the end. Every job has run exactly once.
# What becomes of files, whenever it is killed and whenever the power is lost, is in tests/power.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/counters.sh"

counters=2 chain=3
steps=$(sed -n 's/^ \*   \(batch_[a-z]*\) .*/\1/p' "$STEP_H")
kills=0 missed=0

check_all() {
    if why=$(check_counters "$counters" "$chain"); then
        passed=$((passed + 1))
    else
        fail "$why"
    fi
}

make_counters "$counters" "$chain"
cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
expect_status 0

# One batch, killed at $1, then where $2 says, then to its end.
killed_at() {
    case_name="killed at $1 and ${2:-never again}"
    rm -rf jobs.jsonl.state counters squares
    make_counters "$counters" "$chain"
    BULKHEAD_TEST_STEP=$1 cli batch jobs.jsonl
    if [ "$status" -eq 137 ]; then
        kills=$((kills + 1))
        BULKHEAD_TEST_STEP=$2 cli batch jobs.jsonl --resume
        [ "$status" -eq 137 ] && kills=$((kills + 1))
        cli batch jobs.jsonl --resume
    else
        missed=$((missed + 1)) # it does not get there so often
    fi
    expect_status 0
    check_all
}

for step in $steps; do
    for time in $TIMES; do
        killed_at "$step:$time" ''
    done
done
killed_at batch_sealed:2 batch_renamed:1

# It must not be forgotten in a list that nobody looks at any more.
case_name="a signal while a job is made ready"
rm -rf jobs.jsonl.state counters squares
make_counters "$counters" "$chain"
BULKHEAD_TEST_STEP=stage_ready:2 cli batch jobs.jsonl
expect_status 143
cli batch jobs.jsonl --resume
expect_status 0
check_all

# A rename is all that they need: where they were begun anew each would compute twice.
for step in batch_sealed batch_renamed batch_placed; do
    case_name="a signal before what was sealed is looked at, after a kill at $step"
    rm -rf jobs.jsonl.state counters squares
    make_counters "$counters" "$chain"
    BULKHEAD_TEST_STEP=$step:2 cli batch jobs.jsonl
    expect_status 137
    BULKHEAD_TEST_STEP=stage_begun:1 cli batch jobs.jsonl --resume
    expect_status 143
    cli batch jobs.jsonl --resume
    expect_status 0
    check_all
done

case_name="the kills hit"
status=0
echo "$kills kills, $missed steps were not passed so often"
if [ "$kills" -ge 10 ]; then passed=$((passed + 1)); else fail "$kills kills only"; fi
finish
