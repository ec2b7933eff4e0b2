#!/usr/bin/env bash
# Killed with -9 at each step of a job on its way to disk, the first times that it gets there; then
# once more at a step of the process that goes on; then to the end. Every job has run exactly once.
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
for step in batch_written batch_sealed batch_renamed batch_placed; do
    for again in batch_taken batch_renamed batch_placed batch_sealed; do
        killed_at "$step:2" "$again:1"
    done
done

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

# What is recorded as sealed is durable under its temporary name, and what is recorded as done under
# its own: a machine that goes down instead of the program finds the same.
case_name="what is made durable, and when"
rm -rf jobs.jsonl.state
mkdir -p there
echo '{"id":"a","kernel":"'"$SHADERS"'/square.spv","groups":[4],"in":{"0":"x.npy"},
"out":{"1":"there/y.npy:f32[256]"}}' | tr -d '\n' > jobs.jsonl
BULKHEAD_TEST_TRACE=trace cli batch jobs.jsonl
expect_status 0
# The temporary has no name yet, or a hidden one where the file system must have one.
if [ "$(sed '1,/batch_ended/d;s/^fsync [#.].*/fsync TEMPORARY/' trace | tr '\n' ';')" = "fsync TEMPORARY;\
step batch_written;fsync there;step batch_sealing;step batch_sealed;step batch_renamed;fsync there;\
step batch_placed;step batch_done;" ]; then
    passed=$((passed + 1))
else
    fail "$(cat trace)"
fi

case_name="the kills hit"
status=0
echo "$kills kills, $missed steps were not passed so often"
if [ "$kills" -ge $((9 * 2 + 16)) ]; then passed=$((passed + 1)); else fail "$kills kills only"; fi
finish
