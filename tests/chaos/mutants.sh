#!/usr/bin/env bash
# Builds that break a promise come out invalid, for the right reason, the first of them again when its
# history is replayed; the build that keeps it is valid with the same seed, and with the same history.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
good=$BULKHEAD
run=(--seed 11 --faults kill --count 40 --rate 50) few=(--seed 11 --faults kill --count 8 --rate 50)
# What the mutants *_few break comes round with every 1,000th event or mapping. So their runs, and that of
# the unbroken build, go on until they would find with 95 % what is wrong once in 1,000 times: 2,995
# results, which reach it at least twice. Of the others forty deaths show what is broken 9 to 426 times
# (measured, on a busy machine, too), and of some each death does: eight are enough for those. `retires` is
# none of them: it shows only where a death meets a job that runs, and of eight none may. So one run is enough,
# and a mutant that it does not find fails the test.
rare=(--find-rate 1/1000) often=(--find-rate 0)

LIMIT=120
case_name="the unbroken build"
cli chaos "${run[@]}" "${rare[@]}" --json --history good.jsonl
expect_status 0
expect_json '.verdict == "valid" and .faults.kill == 40 and .power.found_rate <= 0.001'
expect_json '.power.compared >= 2995 and .power.compared == .ready'
# Some hundred a second where nothing else runs. Ten to thirty, as it was once, prove little.
expect_json ".power.compared / .elapsed_ms * 1000 * $slowness > 50"
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

# What the mutant `keeps` does not give back is memory of the device. The driver of these runs looks like
# that of a GPU, and NVML counts 16 MiB for each such memory that the program has a descriptor of.
driver=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-mutants-XXXXXX")
pair=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-mutants-XXXXXX")
trap 'rm -rf "$folder" "$driver" "$pair"' EXIT
fake_gpu "$driver"
FAKE_GPU=$TWO_DEVICES fake_gpu "$pair"
on_pair() { # the mutant `forsakes` shows where the library copies from one device to the other
    VK_DRIVER_FILES=$pair/fake_icd.json "$@"
}
on_gpu() {
    VK_DRIVER_FILES=$driver/fake_icd.json LD_LIBRARY_PATH=$NVML${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        FAKE_NVML_WORDS=16777216 "$@"
}

# What the mutant `charges` breaks shows with kernels without the guard alone.
run_of() { # MUTANT: sets |its|, |faults| and |count|
    its=("${run[@]}" "${often[@]}") faults=kill count=40
    case $1 in
    *_few) its=("${run[@]}" "${rare[@]}") ;;
    innocent | drains | changes) its=("${few[@]}" "${often[@]}") count=8 ;;
    # Five of them spend the budget for the minute: to go on until much was compared takes longer.
    charges) its=(--seed 11 --faults unguarded --count 6 --find-rate 0) faults=unguarded count=6 ;;
    # So few descriptors are no leak by themselves, and for nine and more each rest of a run waits 20 s.
    keeps) its=(--seed 11 --faults kill --count 6 --rate 50 --find-rate 0) count=6 ;;
    forsakes)
        its=(--seed 11 --device any --streams 4 --faults device --count 30 --find-rate 0) faults=device count=30 ;;
    esac
}
run_of charges
behind unbroken chaos "${its[@]}" --json
run_of keeps
FAKE_NVML_DIRTY=2-3 on_gpu behind clean chaos "${its[@]}" --json
for mutant in $MUTANTS; do
    run_of "$mutant"
    where=
    [ "$mutant" != keeps ] || where=on_gpu
    [ "$mutant" != forsakes ] || where=on_pair
    BULKHEAD=$PROGRAMS/chaos_mutant_$mutant $where behind "$mutant" chaos "${its[@]}" --json
done
for mutant in $MUTANTS; do
    anomaly=$(< "$ANOMALIES/$mutant.anomaly")
    case_name="mutant $mutant"
    of_behind "$mutant"
    expect_status 1
    expect_json ".verdict == \"invalid\" and ([.anomalies[\"${anomaly// /\",\"}\"]] | add) > 0
        and .history == \"chaos-11.jsonl\""
    run_of "$mutant"
    case $mutant in # the loss ends its run
    # An operation makes one event or two; each death, and what waits for it, makes more.
    loses_few) expect_json ".operations >= 250 and .anomalies.lost == 1" ;;
    charges) expect_json ".faults.unguarded == 6" ;;
    keeps)
        expect_json '.faults.kill == 6 and .anomalies.leak == 1
            and (.findings[] | select(.anomaly == "leak") | .text | startswith("device memory leaked: lavapipe:0 has "))'
        expect_json '.device_memory[0] | .grown >= 100663296 and .grown == .used_last - .used_first
            and .free_first == .free_last and .waited_ms >= 10000'
        ;;
    # What a mutant has got wrong is not compared.
    *_few) expect_json ".faults.kill == 40 and .ready >= 2995" ;;
    *) expect_json ".faults.$faults == $count" ;;
    esac
    history=$mutant/chaos-11.jsonl
    [ -s "$history" ] || fail "the history was not saved"
    rm -f "$history"
done

case_name="the unbroken build, without the guard"
of_behind unbroken
expect_status 0
expect_json '.verdict == "valid" and .faults.unguarded == 6'

case_name="the unbroken build, on what looks like a GPU, which is clean at the third look"
of_behind clean
expect_status 0
expect_json '.verdict == "valid" and .accelerator and (.device_memory | length == 1)'
expect_json '.device_memory[0] | .device == "lavapipe:0" and .total == 8589934592 and .grown == 0
    and .free_first == 6408896512 and .used_first == 4194304 and .used_last == 4194304
    and .utilisation_first == 0 and .utilisation_last == 0 and .waited_ms >= 400'

BULKHEAD=$PROGRAMS/chaos_mutant_retires
case_name="a saved history"
cli chaos "${run[@]}" "${often[@]}" --history broken.jsonl
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
expect_json '.verdict == "valid" and .faults.kill >= 4'
finish
