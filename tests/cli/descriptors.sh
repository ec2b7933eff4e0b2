#!/usr/bin/env bash
# Few descriptors, whether the limit is low (`ulimit -n N`) or most are taken: each command that needs
# a worker says at once how many it needs, or does its work. It never aborts, never tries for seconds,
# never says that a driver is missing; chaos never accuses the library.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nightly=${BULKHEAD_TEST_NIGHTLY:-}

echo '{"id":"a","kernel":"own.comp","groups":[1],"out":{"0":"a.npy:u32[64]"}}' > jobs.jsonl
cat > own.comp <<'GLSL'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
void main() { a[gl_GlobalInvocationID.x] = 3u; }
GLSL
"$NPY" make x.npy 'f32[64]' ramp 0 1

# A refusal waits for nothing. What it might wait for by mistake takes ten seconds: a worker that cannot
# start, or a deadline.
refusal_s=$((8 * slowness))

seconds=$((30 * slowness))
slowest_us=0
slowest_case=none
# PREFIX... BULKHEAD ARGUMENT...
bounded() {
    rm -rf jobs.jsonl.state a.npy out.npy chaos.jsonl
    local began=${EPOCHREALTIME/./}
    timeout --kill-after=5 "$seconds" "$@" < /dev/null > .stdout 2> .stderr
    status=$?
    took_us=$((${EPOCHREALTIME/./} - began))
    if [ "$status" -eq 3 ] && [ "$took_us" -gt "$slowest_us" ]; then
        slowest_us=$took_us slowest_case=$case_name
    fi
}

# few LIMIT_OF_FILES COMMAND ARGUMENT...: so few in the program, and no more to be had.
few() {
    local files=$1
    shift
    case_name="a limit of $files: $*"
    bounded prlimit --nofile="$files" "$BULKHEAD" "$@"
}

# free COUNT COMMAND ARGUMENT...: so many of 250 are free in the program.
free() {
    local count=$1
    shift
    case_name="$count free: $*"
    bounded "$LEAVE_FREE" "$count" "$BULKHEAD" "$@"
}

# COMMAND HOW COUNT: the command, with few or with that many free.
devices() { "$1" "$2" devices; }
run() { "$1" "$2" run own.comp --groups 1 --out '0=out.npy:u32[64]'; }
inspect() { "$1" "$2" inspect own.comp; }
eval_() { "$1" "$2" eval 'y = x + 1' --in x=x.npy --out y=out.npy; }
batch() { "$1" "$2" batch jobs.jsonl; }
doctor() { "$1" "$2" doctor; }
chaos() { "$1" "$2" chaos --count 1 --streams 1 --faults kill --history chaos.jsonl; }

expect_no_text() {
    if grep -q -- "$2" "$1"; then fail "$1 has '$2'"; else passed=$((passed + 1)); fi
}

# It did its work (0), or it was refused (3), and the refusal is what it should be.
says_the_need() {
    [ "$status" -ne 0 ] || return 0
    expect_status 3
    if grep -qE 'needs [0-9]+ (free )?(file )?descriptors' .stderr; then passed=$((passed + 1)); else fail "it does not say how many it needs"; fi
    expect_no_text .stderr 'workers died'
    expect_no_text .stderr 'Vulkan driver'
}

# COMMAND COUNT: refused, and waits for nothing.
is_refused_at_once() {
    seconds=$refusal_s
    "$1" free "$2"
    seconds=$((30 * slowness))
    expect_status 3
    says_the_need
}

# COMMAND COUNT: refused without a wait, or done. At some counts it depends on what has ended
# by then: the next run of the same command may do what this one refuses.
is_refused_or_done() {
    "$1" free "$2"
    says_the_need
    if [ "$status" -eq 3 ]; then
        if [ "$took_us" -lt $((refusal_s * 1000000)) ]; then passed=$((passed + 1)); else fail "it took $took_us us"; fi
    fi
}

# A worker inherits the hard limit: below 64 none can start.
for files in 10 15 16 17 18 20 24 31 40 63; do
    devices few "$files"
    expect_status 3
    says_the_need
done
for files in 20 63; do
    for command in run inspect eval_ batch doctor chaos; do
        $command few "$files"
        expect_status 3
        says_the_need
    done
done

# Under 40 there is no context; a batch needs 54, chaos 160 (docs/operating.md): those two count before they begin.
commands=(devices run inspect eval_ batch doctor chaos)
for count in $(seq 3 39); do # each count by three of them
    for turn in 0 1 2 3 4 5 6; do
        if [ -n "$nightly" ] || [ $(((count + turn) % 3)) -eq 0 ]; then is_refused_at_once "${commands[turn]}" "$count"; fi
    done
done
for count in 40 41 42 43 44 48 53; do is_refused_at_once batch "$count"; done
for count in 54 55 $(seq 56 8 96); do is_refused_or_done batch "$count"; done
for count in 40 42 44 $(seq 48 12 144) 159; do is_refused_at_once chaos "$count"; done
case_name="what was counted is what was free"
if grep -qE 'a run with 1 stream needs 160 free file descriptors, but only 15[5-9] of 250 are free' .stderr; then passed=$((passed + 1)); else fail "the line is another"; fi
# From 40 on more and more is done, at some count everything; at night each count, of each command.
if [ -n "$nightly" ]; then
    for count in $(seq 40 200); do
        for command in "${commands[@]}"; do is_refused_or_done $command "$count"; done
    done
else
    turn=0
    for count in 40 41 42 43 44 $(seq 48 4 100); do
        command=${commands[$((turn++ % 4))]}
        is_refused_or_done "$command" "$count"
    done
    for count in 40 44; do
        is_refused_or_done run "$count"
        is_refused_or_done eval_ "$count"
    done
    is_refused_or_done doctor 40
fi
# What each needs at most.
for command in run inspect eval_ batch; do
    $command few 128
    expect_status 0
done
# The soft limit alone is raised, as far as what is open makes necessary.
case_name="a soft limit of 20"
bounded prlimit --nofile=20: "$BULKHEAD" run own.comp --groups 1 --out '0=out.npy:u32[64]'
expect_status 0
case_name="a soft limit of 250, of which 10 are free"
SOFT=1 bounded "$LEAVE_FREE" 10 "$BULKHEAD" chaos --count 1 --streams 1 --faults kill
expect_status 0
# To be read, not judged: docs/operating.md has it.
echo "the slowest refusal took $((slowest_us / 1000)) ms: $slowest_case"
finish
