#!/usr/bin/env bash
# bulkhead judge: what is refused before anything runs, and how.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task task.json
kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'

refuses 'TASK CANDIDATE... is missing' judge
refuses 'TASK CANDIDATE... is missing' judge task.json
refuses 'nowhere.json: No such file or directory' judge nowhere.json right.comp
refuses "unknown option '--sed'; did you mean '--seed'?" judge task.json right.comp --sed 1
refuses "--seed -1: " judge task.json right.comp --seed -1
refuses "--seed 18446744073709551616: " judge task.json right.comp --seed 18446744073709551616
refuses '--device any: all candidates run on one device: name it' judge task.json right.comp --device any
refuses '--repeat needs --time' judge task.json right.comp --repeat 5
refuses '--warm needs --time' judge task.json right.comp --warm
refuses '--all-processors needs --time' judge task.json right.comp --all-processors
refuses '--guard-cost needs --time' judge task.json right.comp --guard-cost
refuses '--slower-than needs --time' judge task.json right.comp --slower-than 2
refuses '--repeat 4: ' judge task.json right.comp --time --repeat 4
refuses '--slower-than 0: it must be a number above 0' judge task.json right.comp --time --slower-than 0
refuses '--slower-than nan: it must be a number above 0' judge task.json right.comp --time --slower-than nan
"$NPY" make x.npy 'f32[5]' ramp 0 1
task files.json '.sizes = [{n: 5}] | del(.check_sizes) | .in.X.fill = {file: "x.npy"} | .in.Y.fill = {file: "x.npy"}
    | .reference = {files: {Z: "x.npy"}}'
refuses '--time: the reference of files.json is files, which take no time' judge files.json right.comp --time
refuses '--workers 0: ' judge task.json right.comp --workers 0
refuses '--workers 65: ' judge task.json right.comp --workers 65
sed 's/"normal"/"gauss"/' task.json > bad.json
refuses 'bad.json:' judge bad.json right.comp
refuses "\"in\" \"X\" \"fill\": there is no generator 'gauss'" judge bad.json right.comp

case_name="no such device"
cli judge task.json right.comp --device nowhere
expect_status 3
expect_stderr "no device matches 'nowhere'"

mkfifo pipe
case_name="with --json"
cli judge bad.json right.comp --json
expect_status 2
expect_json '.error.code == "INVALID_ARGUMENT" and (.error.message | startswith("bad.json:"))'
cli judge nowhere.json right.comp --json
expect_status 2
expect_json '.error.code == "LOAD_FAILED"'

case_name="standard input"
INPUT=task.json cli judge - right.comp --json
expect_status 0
expect_json '.correct == 1 and .file == "-"'
refuses '-: standard input is one file; give others by their paths' judge task.json - -

for operands in "task.json -" "- right.comp"; do
    case_name="a signal, while standard input is read: $operands"
    # shellcheck disable=SC2086 # two words
    "$BULKHEAD" judge $operands < pipe > .stdout 2> .stderr &
    judge=$!
    exec 9> pipe # nothing is ever written
    for ((tries = 0; tries < 600 * slowness; tries++)); do
        caught=$(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$judge/status")
        if ((${caught:-0} & 1 << 14)); then break; fi
        sleep 0.02
    done
    kill -TERM "$judge"
    wait "$judge"
    status=$?
    exec 9>&-
    expect_status 143
    expect_stderr 'bulkhead judge: cancelled by SIGTERM'
done

case_name="a signal, while two candidates run that do not end"
endless endless.comp
cp endless.comp second.comp
task long.json '.limits.deadline = "1000s" | .groups = [65535]'
"$BULKHEAD" judge long.json endless.comp second.comp --workers 2 --verbose > .stdout 2> .stderr &
judge=$!
for ((tries = 0; tries < 600 * slowness; tries++)); do
    if grep -q 'kernel endless: compiled' .stderr && grep -q 'kernel second: compiled' .stderr; then break; fi
    if ! kill -0 "$judge" 2> /dev/null; then break; fi
    sleep 0.1
done
if grep -q 'kernel endless: compiled' .stderr && grep -q 'kernel second: compiled' .stderr; then
    passed=$((passed + 1))
else
    fail "they do not run at once"
fi
kill -TERM "$judge"
wait "$judge"
status=$?
expect_status 143
expect_stderr 'bulkhead judge: cancelled by SIGTERM'
expect_empty .stdout
finish
