# Shared by the tests of the command line. Source it, call the functions, end with `finish`.
#
# BULKHEAD is the program, NPY the npy_tool, SHADERS the folder of kernels, LEAVES_NONE the wrapper
# that proves that no process is left; ctest sets them. Each
# test runs in a folder of its own, which is removed at the end.
# shellcheck shell=bash
set -u
export COLUMNS=100 # so that a message is on one line, whatever pid is in it

# What a machine is slower by than the one that the tests were written on: for bounds that a test gives
# the program.
slowness=${BULKHEAD_TEST_SLOWNESS:-1}
passed=0
failed=0
case_name=
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    failed=$((failed + 1))
    printf 'FAILED: %s: %s\n' "$case_name" "$*"
    printf '  status %s\n' "$status"
    sed 's/^/  stdout: /' "$folder/.stdout" | head -20
    sed 's/^/  stderr: /' "$folder/.stderr" | head -20
}

# Runs the program under a time limit ($LIMIT; $BULKHEAD_TEST_SLOWNESS times as long, as in
# tests/harness/harness.h); its output goes to .stdout and .stderr, its exit to $status,
# 99 where a process is left behind.
# The files that are there before it are remembered, with their content.
cli() {
    fingerprint > .before
    cli_again "$@"
}

# The same, where the files were remembered before.
cli_again() {
    "$LEAVES_NONE" timeout --kill-after=5 "$((${LIMIT:-60} * slowness))" "$BULKHEAD" "$@" > .stdout 2> .stderr < "${INPUT:-/dev/null}"
    status=$?
}

# behind NAME ARGUMENT...: the same in a folder NAME of its own, in the background, one other at most
# beside it. `of_behind NAME` waits for all, and takes what came out.
behind() {
    local name=$1
    shift
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    mkdir -p "$name"
    (cd "$name" && cli "$@"; echo "$status" > .status) &
}

of_behind() {
    wait
    status=$(< "$1/.status")
    cp "$1/.stdout" "$1/.stderr" .
}

# with_faults LIST COMMAND...: runs it with workers that have the faults of LIST
# (tests/hostile/faults.h). Each must have happened when it has ended, but one that begins with `?`,
# and each must be one that the build knows, as in tests/harness/faults.c. How often each has happened
# is in the array `fired`.
with_faults() {
    local list=$1 item refused index=0 notes
    shift
    notes=$(mktemp "${TMPDIR:-/tmp}/bulkhead-test-notes-XXXXXX")
    truncate -s 160 "$notes" # struct bhi_fault_notes: 16 counts, then a text
    chmod 0666 "$notes" # the zygote opens it as whoever it is in its namespace
    BULKHEAD_TEST_FAULTS="$list,notes=$notes" "$@"
    mapfile -t fired < <(od -An -v -tu4 -w4 -N64 "$notes" | tr -d ' ')
    refused=$(tail -c +65 "$notes" | tr -d '\0')
    rm -f "$notes"
    if [ -z "$refused" ]; then passed=$((passed + 1)); else fail "this build knows no fault $refused"; fi
    for item in ${list//,/ }; do
        if [ "${fired[index]}" -gt 0 ] || [ "${item:0:1}" = "?" ]; then
            passed=$((passed + 1))
        else
            fail "the fault $item has never happened"
        fi
        index=$((index + 1))
    done
}

# fake_gpu FOLDER: makes the driver of tests/system/fake_transfer.c there, $FAKE_GPU, with a budget, and
# fake_icd.json, which leads to it. A worker must be able to read all that, whoever it runs as.
fake_gpu() {
    cp "$FAKE_GPU" "$1/libvulkan_lvp.so.fake"
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}' \
        "$1/libvulkan_lvp.so.fake" > "$1/fake_icd.json"
    printf '%020d %020d %020d ' 8589934592 6442450944 33554432 > "$1/budget" # 5.97 GiB of 8 are free
    truncate -s 4096 "$1/budget"
    chmod -R a+rX "$1"
}

# Makes the CUDA driver of tests/fake_cuda, $FAKE_CUDA, in a new folder, $driver; it is found from then on.
fake_cuda() {
    driver=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-cuda-XXXXXX")
    trap 'rm -rf "$folder" "$driver"' EXIT
    cp "$FAKE_CUDA" "$driver/libcuda.so.1"
    : > "$driver/fake_cuda.settings"
    chmod -R a+rX "$driver" # a worker must be able to read it, whoever it runs as
    export LD_LIBRARY_PATH=$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# There, too: the compiler of tests/fake_nvrtc, $FAKE_NVRTC.
fake_nvrtc() {
    cp "$FAKE_NVRTC" "$driver/libnvrtc.so.12"
    cp "$FAKE_NVRTC_BUILTINS" "$driver/libnvrtc-builtins.so.12.8"
    chmod -R a+rX "$driver"
    export BULKHEAD_NVRTC=$driver/libnvrtc.so.12
}

# ptx ENTRY...: PTX with these entry points, each NAME or NAME(PARAMETERS). The fake driver knows by its name
# what one does.
ptx() {
    local entry
    printf '//\n.version 6.0\n.target sm_60\n.address_size 64\n'
    for entry; do
        [[ $entry == *\) ]] || entry="$entry()"
        printf '.visible .entry %s\n{\nret;\n}\n' "$entry"
    done
}

fingerprint() {
    find . -type f ! -name '.before' ! -name '.stdout' ! -name '.stderr' ! -name .objects -exec cksum {} + | sort
}

expect_status() {
    if [ "$status" -eq "$1" ]; then passed=$((passed + 1)); else fail "exit status is not $1"; fi
}

expect_stderr() {
    if grep -qF -- "$1" .stderr; then passed=$((passed + 1)); else fail "stderr lacks: $1"; fi
}

expect_stdout() {
    if grep -qF -- "$1" .stdout; then passed=$((passed + 1)); else fail "stdout lacks: $1"; fi
}

expect_empty() {
    if [ ! -s "$1" ]; then passed=$((passed + 1)); else fail "$1 is not empty"; fi
}

# Runs a command on one processor: a kernel that does not end takes no more than that from other tests.
on_one_processor() { # COMMAND...
    local all result=0
    all=$(taskset -pc $$ | sed 's/.*: //')
    taskset -pc "${all%%[,-]*}" $$ > /dev/null
    "$@" || result=$?
    taskset -pc "$all" $$ > /dev/null
    return $result
}

# A jq expression that must be true of the JSON on stdout; jq's options may go before it.
expect_json() {
    # jq 1.6 finds everything true of nothing.
    if [ -s .stdout ] && jq -e "$@" .stdout > .jq 2>&1; then passed=$((passed + 1)); else fail "not so: ${*: -1}"; fi
    rm -f .jq
}

# No file appeared, vanished or changed during the last `cli`.
expect_untouched() {
    if fingerprint | cmp -s - .before; then passed=$((passed + 1)); else fail "a file changed"; fi
}

# One refusal: exit 2, exactly one line on stderr that says $1, nothing written, nobody left.
refuses() {
    local reason=$1
    shift
    case_name="refuses: $*"
    cli "$@"
    expect_status 2
    expect_stderr "$reason"
    if [ "$(wc -l < .stderr)" -eq 1 ]; then passed=$((passed + 1)); else fail "not one line"; fi
    expect_empty .stdout
    expect_untouched
}

# The same with --json: the object says REFUSED, $1 as its code, and has all keys.
refuses_json() {
    local code=$1 reason=$2
    shift 2
    case_name="refuses with an object: $*"
    cli "$@" --json
    expect_stderr "$reason"
    expect_object ".status == \"REFUSED\" and .code == \"$code\" and .message != \"\""
    expect_untouched
}

# All keys are there, and a jq expression is true of the object.
keys='["blame","code","device","elapsed_ms","error","event","executed","file","kernel","kernel_hash","line","log",
    "median_ms","message","min_ms","origin","reason","signal","status","subject","submissions",
    "times","worker_pid"]'
expect_object() {
    expect_json "keys == $keys and ($1)"
}

finish() {
    echo "$passed checks passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit $?
}
