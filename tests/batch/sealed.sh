#!/usr/bin/env bash
# What was complete when the program was killed is put in its place if it is what is found there,
# and nothing else is taken for it: not an older file with the output's name, nor what somebody has
# made of it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

"$NPY" make x.npy 'f32[1000]' ramp 0 1
printf '%s\n' '#version 450' 'layout(local_size_x = 1) in;' \
    'layout(set = 0, binding = 0) buffer Counter { uint counter; };' \
    'layout(set = 0, binding = 1) buffer Copy { uint copy; };' \
    'void main() { counter++; copy = counter; }' > count.comp

# Two outputs, one of which has the place and the size of what was there before.
killed_at() {
    rm -rf jobs.jsonl.state
    "$NPY" make count.npy 'u32[1]' ramp 7 0
    "$NPY" make copy.npy 'u32[1]' ramp 3 0
    echo '{"id":"a","kernel":"count.comp","groups":[1],"inout":{"0":"count.npy"},
"out":{"1":"copy.npy:u32[1]"}}' | tr -d '\n' > jobs.jsonl
    BULKHEAD_TEST_STEP=$1:1 cli batch jobs.jsonl
    expect_status 137
}

temporary() { # BINDING
    find . -maxdepth 1 -name ".bulkhead-*-1-0.$1.tmp"
}

expect_value() { # FILE VALUE
    local got
    got=$("$NPY" show "$1")
    if [ "$got" = "u32[1] $2" ]; then passed=$((passed + 1)); else fail "$1 is $got, not $2"; fi
}

expect_lost() { # HOW
    cli batch jobs.jsonl --resume
    expect_status 1
    expect_stderr "it was complete, but somebody $1 it before"
    expect_sql "SELECT state, sealed, outputs FROM progress" "4|0|"
    if [ -z "$(find . -name '.bulkhead-*')" ]; then passed=$((passed + 1)); else fail "something is left"; fi
}

case_name="the temporary was removed, and an older result has the name"
killed_at batch_sealed
rm "$(temporary 0)"
expect_lost removed
expect_value count.npy 7

case_name="it was removed after the other one had been renamed"
killed_at batch_renamed
expect_value copy.npy 8
rm "$(temporary 0)"
expect_lost removed
expect_value count.npy 7

case_name="the temporary was cut short"
killed_at batch_sealed
truncate -s -1 "$(temporary 0)"
expect_lost changed
expect_value count.npy 7

case_name="the temporary has another content of the same size"
killed_at batch_sealed
file=$(temporary 0)
cat copy.npy > "$file"
touch -d '1 hour ago' "$file" # whatever the clock says
expect_lost changed
expect_value count.npy 7

case_name="what is in its place has been written over"
killed_at batch_renamed
cat count.npy > copy.npy
touch -d '1 hour ago' copy.npy
expect_lost removed
expect_value count.npy 7
expect_value copy.npy 7

case_name="the temporary is a link to what it was"
killed_at batch_sealed
file=$(temporary 0)
mv "$file" moved.npy
ln -s moved.npy "$file"
expect_lost changed
expect_value count.npy 7

case_name="another disk, on which files have other numbers"
for step in batch_sealed batch_renamed batch_placed; do
    killed_at "$step"
    for file in $(temporary 0) $(temporary 1) count.npy copy.npy; do
        cp -p "$file" away.npy
        mv away.npy "$file"
    done
    # It took as long as it took, not until somebody went on with it.
    times=$(sqlite3 jobs.jsonl.state/batch.db "SELECT started_ns, ended_ns, kernel_name FROM attempt")
    cli batch jobs.jsonl --resume
    expect_status 0
    expect_value count.npy 8
    expect_value copy.npy 8
    expect_sql "SELECT state, attempts FROM jobs" "done|1"
    expect_sql "SELECT started_ns, ended_ns, kernel_name FROM attempt WHERE ended_ns > started_ns" "$times"
    expect_sql "SELECT progress.ended_ns = attempt.ended_ns FROM progress JOIN attempt USING (job)" 1
done

case_name="a record of it that is damaged"
killed_at batch_sealed
good=$(sqlite3 jobs.jsonl.state/batch.db "SELECT outputs FROM progress")
for bad in '' x "${good%% *}" "$good 1@2"; do
    sqlite3 jobs.jsonl.state/batch.db "UPDATE progress SET outputs = '$bad'"
    cli batch jobs.jsonl --resume
    expect_status 3
    expect_stderr "batch.db is damaged"
done
sqlite3 jobs.jsonl.state/batch.db "UPDATE progress SET outputs = '$good'"
cli batch jobs.jsonl --resume
expect_status 0
expect_value count.npy 8

finish
