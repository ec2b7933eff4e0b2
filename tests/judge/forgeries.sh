#!/usr/bin/env bash
# bulkhead judge --time: workers that were taken over by the kernel "cheat", and lie about its time
# (bulkhead-worker-faulty). The same kernel under another name is honest.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# It takes long enough for the host to see it.
kernel reference.comp << 'END'
    if (i >= n) return;
    float sum = a * x[i] + y[i];
    for (uint k = 0; k < 500u; k++) sum = fract(sum * 1.0001 + 0.37);
    z[i] = sum;
END
cp reference.comp honest.comp
cp reference.comp cheat.comp
task task.json '.reference = {kernel: "reference.comp"} | .sizes = [{n: 1000}]'

case_name="a thousandth of the time"
LIMIT=300 with_faults '*:lie_short:*=fail' cli judge task.json honest.comp cheat.comp --time --repeat 20 --json
expect_status 1
says honest.comp CORRECT '.timing | length == 1'
says cheat.comp TIMING_FORGED '(.message | test("its worker claims .* us for a run, and the host saw .* us .n=1000.")) and .size == {n: 1000} and .timing[0].ratio == null'

case_name="a time that is longer than the run"
LIMIT=300 with_faults '*:lie_long:*=fail' cli judge task.json cheat.comp --time --repeat 5 --json
says cheat.comp TIMING_FORGED '.message | contains("claims more time on the device than has passed")'

case_name="no time, on a device with a clock"
LIMIT=300 with_faults '*:lie_untimed:*=fail' cli judge task.json cheat.comp honest.comp --time --repeat 5 --json
says cheat.comp TIMING_FORGED '.message | contains("claims that the device has no clock")'
says honest.comp CORRECT

case_name="work that is put off past its completion record"
LIMIT=300 with_faults '*:lie_late:*=fail' cli judge task.json cheat.comp honest.comp --time --repeat 5 --json
says cheat.comp TIMING_FORGED '.message == "its output Z has changed after its run was reported to be complete (n=1000)"'
says honest.comp CORRECT

# By the batches the claims are true. The longer way back is found, though it may vary by much. On
# one processor a pause is no work, and gains nothing.
case_name="single runs that take longer than is claimed"
pauses=$(printf ',*:lie_single:*=pause%.0s' $(seq $((slowness > 1 ? 12 : 4))))
LIMIT=300 with_faults "${pauses#,}" cli judge task.json cheat.comp --time --all-processors --repeat 20 --json
expect_status 1
says cheat.comp TIMING_FORGED '.message | startswith("its worker claims ")'

# The first timed run of each of the candidate's workers does not count. It lies, so that it is seen:
# once in each worker, of which each of the eight groups has one.
case_name="a worker that sleeps where no time is taken gains nothing, and each group has a fresh one"
LIMIT=300 with_faults "*:lie_asleep:*=pause,*:lie_short:1=fail" cli judge task.json cheat.comp --time --repeat 8 --json
says cheat.comp CORRECT
if [ "${fired[1]}" -ge 8 ]; then passed=$((passed + 1)); else fail "the candidate had ${fired[1]} workers"; fi

# The reference's worker is believed: here it has the name, too.
case_name="a device without a clock"
mkdir tasks
cp reference.comp tasks/cheat.comp
task tasks/task.json '.reference = {kernel: "cheat.comp"} | .sizes = [{n: 1000}]'
LIMIT=300 with_faults '*:lie_untimed:*=fail' cli judge tasks/task.json cheat.comp --time --repeat 5 --json
expect_status 0
says cheat.comp CORRECT '.timing[0] | .runs == 5 and (.device | not) and (.cold | not) and .median_ns > 0'
LIMIT=300 with_faults '*:lie_untimed:*=fail' cli judge tasks/task.json cheat.comp --time --repeat 5
expect_stdout 'the device has no clock'

# sometimes NAME MODULUS LINES: the kernel LINES come first in one run of MODULUS, by the first number
# of X; the check, of which the seeds are known, has no such number.
sometimes() {
    for ((rest = 0; rest < $2; rest++)); do
        { echo "    if (floatBitsToUint(x[0]) % ${2}u == ${rest}u) { $3 }"
            sed -n '/if (i >= n)/,/z\[i\]/p' reference.comp; } | kernel "$1"
        cli judge quick.json "$1" --seed 42 --json
        [ "$status" -ne 0 ] || break
    done
    expect_status 0
}
task quick.json ".reference = {kernel: \"reference.comp\"} | .sizes = [{n: 1000}] | del(.check_sizes)
    | .limits.deadline = \"$((4 * slowness))s\""

case_name="endless in one run of twenty"
sometimes endless.comp 20 'while (z[0] != 7.0) { for (uint k = 0; k < 60000u && z[0] != 7.0; k++) z[1] = fract(sin(z[1]) * 43758.5); }'
# Its timed runs end with the first of these; that none of 400 is one happens once in 10^9 times. The
# three runs of the check were right, and the first timed one may be the one that is not.
LIMIT=300 cli judge quick.json endless.comp --seed 42 --time --repeat 400 --json
expect_status 1
expect_json '.candidates[0] | (.verdict == "DEADLINE" or .verdict == "LOOP_LIMIT") and .runs >= 3'

case_name="wrong in one run of four"
sometimes wrong.comp 4 'if (i < n) z[i] = 0; return;'
LIMIT=300 cli judge quick.json wrong.comp --seed 42 --time --repeat 100 --json
expect_status 1
says wrong.comp WRONG '.message | contains("(n=1000, a timed run)")'

case_name="a worker that writes beside its outputs"
kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
task eval.json
LIMIT=200 with_faults '*:tamper_output:*=scribble' cli judge eval.json right.comp --json
expect_status 1
says right.comp STRAY_WRITE '.message == "it wrote at byte 4096 in front of Z (n=1, seed 1)"'
finish
