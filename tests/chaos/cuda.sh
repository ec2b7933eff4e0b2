#!/usr/bin/env bash
# `bulkhead chaos` on a CUDA device, the fake one: its faults, alone and together; and which faults are not
# for which device.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
LIMIT=120
fake_cuda

# -- each that is another one there ---------------------------------------------------------------------
for fault in hang illegal device; do
    behind "$fault" chaos --device cuda --seed 5 --faults $fault --count 5 --rate 40 --history h.jsonl --json
done
behind all chaos --device cuda --seed 9 --count 16 --rate 40 --history h.jsonl --json
behind without_oom chaos --device cuda --seed 3 --faults kill,oom --count 2 --json
behind without_illegal chaos --device lavapipe --seed 3 --faults kill,illegal --count 2 --json
ends_of_baits() { # FILE: status and signal of each that did not inherit its end
    jq -rs '(map(select(.kind == "op" and .bait) | {(.op | tostring): true}) | add) as $baits
        | [.[] | select(.kind == "end" and $baits[.op | tostring] and .hops == 0) | "\(.status) \(.signal)"] | unique[]' "$1"
}
for fault in hang illegal device; do
    case_name="fault $fault"
    of_behind "$fault"
    expect_status 0
    expect_json ".verdict == \"valid\" and .faults.$fault == 5 and .lost == 0 and .device == \"cuda:0\""
    expect_json ".power.compared >= 299"
done
# A kernel has no guard to be stopped by: its worker is killed (T2). One that faults ends by itself.
case_name="how kernels end that do not end well"
ends=$(ends_of_baits hang/h.jsonl)
if [[ $ends == *"DEADLINE 9"* && $ends != *"DEADLINE 0"* ]]; then passed=$((passed + 1)); else fail "hang: $ends"; fi
ends=$(ends_of_baits illegal/h.jsonl)
if [[ $ends == *"DEVICE_FAULT 0"* ]]; then passed=$((passed + 1)); else fail "illegal: $ends"; fi

# -- all of them ------------------------------------------------------------------------------------------
case_name="what is injected without --faults"
of_behind all
expect_status 0
if ! grep -q "left out" .stderr; then passed=$((passed + 1)); else fail "something is left out"; fi
expect_json '.verdict == "valid" and .lost == 0 and .faults.illegal > 0 and .faults.kill > 0
    and .faults.oom == 0 and .faults.unguarded == 0'
set_of=$(head -n 1 all/h.jsonl | jq -rc '.faults')
if [ "$set_of" = '["kill","segv","stop","hang","garbage","close","zygote","slow","full","illegal"]' ]; then
    passed=$((passed + 1))
else
    fail "it asks for $set_of"
fi
case_name="the same again"
cli chaos --device cuda:0 --replay all/h.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.illegal > 0'

# -- faults that the device does not have -------------------------------------------------------------------
case_name="one of several is left out"
of_behind without_oom
expect_status 0
expect_stderr "oom is left out: "
expect_json '.verdict == "valid" and .faults.kill == 2 and .faults.oom == 0'
of_behind without_illegal
expect_status 0
expect_stderr "illegal is left out: it needs a CUDA device (--device cuda)"
expect_json '.verdict == "valid" and .faults.kill == 2 and .faults.illegal == 0'
refuses "--faults: unguarded cannot be injected: no kernel has a guard on a CUDA device" \
    chaos --device cuda --faults unguarded
refuses "--faults: illegal cannot be injected: it needs a CUDA device" chaos --faults illegal
refuses "--replay all/h.jsonl: illegal cannot be injected: it needs a CUDA device" chaos --replay all/h.jsonl
finish
