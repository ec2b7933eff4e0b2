#!/usr/bin/env bash
# `ulimit -n N` for every N from where a program can be loaded: each command that needs a worker says
# at once how many descriptors it needs, or does its work. It never aborts, never tries for seconds,
# and never says that a driver is missing.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

echo '{"id":"a","kernel":"own.comp","groups":[1],"out":{"0":"a.npy:u32[64]"}}' > jobs.jsonl
cat > own.comp <<'GLSL'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
void main() { a[gl_GlobalInvocationID.x] = 3u; }
GLSL
"$NPY" make x.npy 'f32[64]' ramp 0 1

# LIMIT_OF_FILES COMMAND ARGUMENT...: so few in the program, and no more to be had.
few() {
    local files=$1
    shift
    rm -rf jobs.jsonl.state out.npy chaos.jsonl
    (ulimit -n "$files" && exec timeout --kill-after=5 $((30 * ${BULKHEAD_TEST_SLOWNESS:-1})) "$BULKHEAD" "$@") > .stdout 2> .stderr
    status=$?
    case_name="$files: $*"
}
run() { few "$1" run own.comp --groups 1 --out '0=out.npy:u32[64]'; }
inspect() { few "$1" inspect own.comp; }
eval_() { few "$1" eval 'y = x + 1' --in x=x.npy --out y=out.npy; }
batch() { few "$1" batch jobs.jsonl; }
chaos() { few "$1" chaos --count 1 --streams 1 --faults kill --history chaos.jsonl; }

says_the_need() {
    [ "$status" -ne 0 ] || return 0
    if [ "$status" -ge 124 ]; then fail "it was killed, or tried for too long"; return; fi
    if grep -qE 'needs [0-9]+ (free )?(file )?descriptors' .stderr; then passed=$((passed + 1)); else fail "it does not say how many it needs"; fi
    expect_no_text .stderr 'workers died'
    expect_no_text .stderr 'Vulkan driver'
}
expect_no_text() {
    if grep -q -- "$2" "$1"; then fail "$1 has '$2'"; else passed=$((passed + 1)); fi
}

# A worker inherits the hard limit: below 64 none can start.
for files in 10 15 16 17 18 20 24 31 40 63; do
    few "$files" devices
    expect_status 3
    says_the_need
done
for files in 20 63; do
    for command in run inspect eval_ batch; do
        $command "$files"
        [ "$status" -ne 0 ] || fail "it did its work"
        says_the_need
    done
    few "$files" doctor
    expect_status 3
    says_the_need
done
chaos 63
says_the_need
for files in 64 80; do
    for command in run inspect eval_ batch chaos; do
        $command "$files"
        says_the_need
    done
done
# What a run, a batch and doctor need at most.
for command in run inspect eval_ batch; do
    $command 128
    expect_status 0
done
# The soft limit alone is raised.
(ulimit -S -n 20 && exec timeout $((30 * ${BULKHEAD_TEST_SLOWNESS:-1})) "$BULKHEAD" run own.comp --groups 1 --out '0=out.npy:u32[64]') > .stdout 2> .stderr
status=$?
case_name="a soft limit of 20"
expect_status 0
finish
