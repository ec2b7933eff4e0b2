#!/usr/bin/env bash
# bulkhead judge --time: what it reports. No time is compared with another: the machine may be busy.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel wrong.comp <<< 'if (i < n) z[i] = a * x[i] + 0.9 * y[i];'
task task.json
# A ratio is known, or it is not; if it is, it is in its interval.
ratio='(.ratio == null and .low == null and .high == null and (.doubt | IN("claims", "drift", "load"))) or (.doubt == null and .low <= .ratio and .ratio <= .high and .low > 0)'

case_name="beside an expression, with cold caches"
LIMIT=200 cli judge task.json right.comp wrong.comp --time --repeat 5 --json
expect_status 1
says right.comp CORRECT "(.timing | map(.size) == [{n: 1000}, {n: 3001}]) and (.timing | map($ratio) | all)"
says right.comp CORRECT '.timing | map(.runs == 5 and .cold and .device and .one_processor and .median_ns > 0 and .reference_ns > 0 and .noise >= 0 and .guard_ratio == null) | all'
# 14 runs to check it, and those of the warm-up, the timed ones and the batches of each size.
says right.comp CORRECT '.runs > 14 + 2 * (5 + 5 + 1)'
says wrong.comp WRONG '.timing == null'
expect_json '.flushed_bytes >= 8388608'

case_name="beside a kernel, with warm caches, on all processors, and without the guard"
cp right.comp reference.comp
task kernel.json '.reference = {kernel: "reference.comp"} | .sizes = [{n: 1000}]'
LIMIT=200 cli judge kernel.json right.comp --time --warm --all-processors --guard-cost --repeat 6 --json
expect_status 0
says right.comp CORRECT '.timing[0].one_processor == false'
says right.comp CORRECT "(.timing | length == 1) and (.timing[0] | .runs == 6 and (.cold | not) and .guard_ratio > 0 and ($ratio))"
expect_json '.flushed_bytes == 0'

case_name="for a person; from standard input, which can be read only once"
# On a terminal, too narrow for the name of the candidate: the progress, which is wiped at the end.
COLUMNS=16 script -qefc "stty cols 100; '$BULKHEAD' judge kernel.json - --time --repeat 5 < right.comp > .stdout" /dev/null < /dev/null > .stderr
status=$?
expect_status 0
progress=$(printf '\r%s\e[K' 'judged 0 of 1' 'judged 1 of 1' '' 'timing 1 of 1:' '')
if [ "$(cat .stderr)" = "$progress" ]; then passed=$((passed + 1)); else fail "the progress is $(cat -A .stderr)"; fi
expect_stdout 'CANDIDATE  SIZE    '
expect_stdout '-          n=1000  '
expect_stdout 'cold, on one processor'

case_name="slower than was asked for"
LIMIT=200 cli judge kernel.json right.comp --time --repeat 5 --slower-than 0.0001 --json
expect_json '.candidates[0] | if .timing[0].ratio == null then .verdict == "CORRECT" else .verdict == "SLOWER" and (.message | startswith("it takes ")) and .size == {n: 1000} end'
LIMIT=200 cli judge kernel.json right.comp --time --repeat 5 --slower-than 1e9 --json
expect_status 0
says right.comp CORRECT

# X of the public seed begins with two numbers that the reports of two wrong kernels name. The kernel is
# wrong where they stand side by side elsewhere, as in that seed's inputs, rotated.
case_name="timed runs have no inputs of the public seed"
task public.json '.reference = {eval: "Z = X + a*Y"} | .in.Y.fill = {integers: [0, 0]} | .sizes = [{n: 1000}] | del(.check_sizes)'
kernel first.comp <<< 'if (i < n) z[i] = i == 0 ? 0 : x[i] + a * y[i];'
kernel second.comp <<< 'if (i < n) z[i] = i == 1 ? 0 : x[i] + a * y[i];'
cli judge public.json first.comp second.comp --json
known=$(jq -r '[.candidates[].wrong.expected | tostring] | join(" ")' .stdout)
kernel knows.comp << END
    if (i < n) z[i] = x[i] + a * y[i];
    if (i > 0 && i < n && x[i] == ${known% *} && x[(i + 1) % n] == ${known#* }) z[i] = 1e9;
END
LIMIT=200 cli judge public.json knows.comp --time --repeat 5 --json
expect_status 0
says knows.comp CORRECT '.timing[0].runs == 5'

case_name="inputs that are files"
"$NPY" make x.npy 'f32[1000]' ramp 0 1
task files.json '.reference = {kernel: "reference.comp"} | .sizes = [{n: 1000}] | del(.check_sizes) | .in.X.fill = {file: "x.npy"}'
LIMIT=200 cli judge files.json right.comp --time --repeat 5 --json
expect_status 0
says right.comp CORRECT '.timing[0].runs == 5'

# Both are near the reference, which is files. They are not near each other.
case_name="beside a baseline"
"$NPY" make y.npy 'f32[5]' ramp 1 1
"$NPY" make five.npy 'f32[5]' ramp 0 1
"$NPY" make z.npy 'f32[5]' ramp 1 3.5
task base.json '.sizes = [{n: 5}] | del(.check_sizes) | .in.X.fill = {file: "five.npy"} | .in.Y.fill = {file: "y.npy"}
    | .reference = {files: {Z: "z.npy"}} | .out.Z = {dtype: "f32", shape: ["n"], abs: 0.5}'
kernel more.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + 0.375;'
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] - 0.375;'
refuses '--time: the reference of base.json is files, which take no time; a kernel, an expression or a --baseline does' \
    judge base.json less.comp --time
refuses '--baseline needs --time' judge base.json less.comp --baseline more.comp
kernel far.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + 9.0;'
refuses 'the baseline far.comp is WRONG: Z[' judge base.json less.comp --time --baseline far.comp
refuses 'the baseline none.comp is LOAD_FAILED: none.comp: No such file' judge base.json less.comp --time --baseline none.comp
LIMIT=200 cli judge base.json less.comp --time --baseline more.comp --repeat 5 --json --state based
expect_status 0
says less.comp CORRECT '.timing[0] | .runs == 5 and .reference_ns > 0 and .baseline'
expect_json '.baseline == "more.comp"'
refuses 'based is of another task: its text, the files that it names, what the reference computes, or the baseline has changed' \
    judge base.json less.comp --time --baseline less.comp --repeat 5 --state based --resume
LIMIT=200 cli judge base.json less.comp --time --baseline more.comp --repeat 5 --html page.html
expect_stdout 'REFERENCE is the baseline: more.comp'
if grep -qF "its time over the baseline" page.html; then passed=$((passed + 1)); else fail "the page does not say it"; fi
LIMIT=200 cli judge kernel.json right.comp --time --baseline right.comp --repeat 5 --slower-than 0.0001 --json
expect_json '.candidates[0] | if .timing[0].ratio == null then .verdict == "CORRECT" else (.message | contains("as long as the baseline")) end'
finish
