#!/usr/bin/env bash
# The program on a scripted library: every status, every refusal that needs a library's answer.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$NPY" make x.npy 'f32[16]' ramp 0 1
"$NPY" make y.npy 'f32[16]' ramp 5 0
printf 'not looked at by the script' > k.spv
export SCRIPT_BINDINGS=0.0:r:x,0.1:rw:y SCRIPT_PUSH=8
good=(run k.spv --groups 1 --in "0=x.npy" --inout "1=y.npy:out.npy" --push "f32:1,u32:2")

case_name="a READY run is silent and writes its output"
cli "${good[@]}"
expect_status 0
expect_empty .stdout
expect_empty .stderr
cmp -s out.npy x.npy || fail "out.npy is not what the kernel wrote"
rm -f out.npy

case_name="the JSON of a READY run"
cli "${good[@]}" --json
expect_status 0
expect_json '.status == "READY" and .code == "OK" and .signal == null and .kernel == "k"
    and .kernel_hash == ("ab" * 32) and .executed == "yes" and .origin == 41 and .event == 41
    and .worker_pid == 4321 and .device == "script:0" and .elapsed_ms == 1.5 and .message == ""
    and .submissions == 1
    and (.min_ms | type) == "number" and (.median_ms | type) == "number" and (keys | length) == 23'
rm -f out.npy

case_name="repeat"
cli "${good[@]}" --repeat 5
expect_status 0
expect_stdout "5 submissions: minimum "
rm -f out.npy
case_name="one submission is no plural"
cli "${good[@]}" --time
expect_status 0
if grep -qx "1 submission" .stdout; then passed=$((passed + 1)); else fail "$(head -n 1 .stdout)"; fi
rm -f out.npy
case_name="repeat"
cli "${good[@]}" --repeat 5 --json
expect_json '.submissions == 5 and .origin == 45 and .min_ms <= .median_ms'
rm -f out.npy
SCRIPT_EVENT=DEADLINE SCRIPT_FAIL_AT=3 cli "${good[@]}" --repeat 5 --json
expect_status 1
expect_json '.status == "POISONED" and .submissions == 3 and (.min_ms | type) == "number"'
expect_untouched

case_name="--time"
cli "${good[@]}" --repeat 5 --time
expect_status 0
expect_stdout "5 submissions"
expect_stdout "           warm-up          min       median          p99"
expect_stdout "  device        100 us       200 us       350 us       500 us"
expect_stdout "  host "
cli "${good[@]}" --repeat 5 --time --json
expect_json '.times.device == {"warm_up_ms": 0.1, "min_ms": 0.2, "median_ms": 0.35, "p99_ms": 0.5}
    and (.times.host | .warm_up_ms >= 0 and .min_ms >= 0 and .min_ms <= .median_ms and .median_ms <= .p99_ms)'
cli "${good[@]}" --repeat 300 --time --json # of 299 at most two are over
expect_json '.times.device.p99_ms == 29.8'
cli "${good[@]}" --time
expect_stdout "  device        100 us"
grep -q min .stdout && fail "there is nothing behind the warm-up"
cli "${good[@]}" --time --json
expect_json '.times.device == {"warm_up_ms": 0.1, "min_ms": null, "median_ms": null, "p99_ms": null}'
SCRIPT_UNTIMED=3 cli "${good[@]}" --repeat 5 --time
expect_stdout "  device  unknown: the device gave no timestamps"
SCRIPT_UNTIMED=3 cli "${good[@]}" --repeat 5 --time --json
expect_json '.times.device == null and (.times.host.p99_ms | type) == "number"'
cli "${good[@]}" --repeat 5 --json
expect_json '.times == null'
rm -f out.npy

# -- every status, wherever it can come from -------------------------------------------------------
statuses=$(sed -n 's/^BH_STATUS(\([A-Z_]*\), \([0-9]*\), \([A-Z]*\),.*/\1 \2 \3/p' "$STATUS_DEF")
[ "$(wc -l <<< "$statuses")" -ge 20 ] || fail "status.def was not read"
while read -r name number class; do
    [ "$name" = OK ] && continue
    case $class in
    GUILTY | VICTIM) want=1 ;;
    CALLER | INPUT) want=2 ;;
    *) want=3 ;;
    esac
    fingerprint > .before
    if [ "$number" -ge 32 ]; then
        case_name="event $name"
        SCRIPT_EVENT=$name cli_again "${good[@]}" --json
        expect_status "$want"
        expect_stderr "$name"
        if [ $want -eq 1 ]; then
            expect_json ".status == \"POISONED\" and .code == \"$name\" and .executed == \"unknown\"
                and .message == \"as scripted\""
            expect_stderr "is poisoned"
            expect_stderr "executed    unknown"
            expect_stderr "what to do"
        else
            expect_json ".status == \"REFUSED\" and .code == \"$name\" and .message != \"\""
        fi
        expect_object ".kernel == \"k\" and .origin == 41 and .submissions == 1"
    fi
    for call in CONTEXT STREAM READY FILE LOAD BUFFER KERNEL PREPARE REFLECT SUBMIT MAP; do
        # Waiting for a worker that is slow to come is another test's business.
        [ "$name" = TIMEOUT ] && [ $call = READY ] && continue
        # No verdict says that a wait has timed out.
        [ "$name" = TIMEOUT ] && [[ $call =~ PREPARE|LOAD ]] && continue
        case_name="$call $name"
        export "SCRIPT_$call=$name"
        cli_again "${good[@]}" --json
        unset "SCRIPT_$call"
        expect_status "$want"
        expect_stderr "$name"
        {
            printf '{"status": "%s", "code": "%s", "object": ' \
                "$([ $want -eq 1 ] && echo POISONED || echo REFUSED)" "$name"
            cat .stdout
            printf '}\n'
        } >> .objects
        if [ $want -eq 1 ] && [ $call = PREPARE ]; then
            expect_json ".executed == \"no\"
                and .kernel == \"k\" and .origin == 40 and .worker_pid == 4321"
            [ "$name" != DEADLINE ] || expect_stderr "raise the deadline: it passed before the kernel began"
        fi
    done
    case_name="no call that ended with $name left a file"
    expect_untouched
done <<< "$statuses"

case_name="every end has its object"
mv .objects .stdout
expect_json -s "length > 200 and all(.[]; (.object | keys) == $keys and .object.status == .status
    and .object.code == .code and .object.kernel == \"k\" and (.object.message | test(\"as scripted\")))"

# -- eval: its own calls; the others are run's -----------------------------------------------------
case_name="eval"
eval_=(eval "z = 2*x" --in x=x.npy --out z=z.npy)
cli "${eval_[@]}"
expect_status 0
expect_empty .stdout
expect_empty .stderr
cmp -s z.npy x.npy || fail "z.npy is not what the kernel wrote"
rm -f z.npy
cli "${eval_[@]}" --print
expect_status 0
expect_stdout "as scripted"
[ ! -e z.npy ] || fail "it ran"
cli "${eval_[@]}" --json
expect_json '.status == "READY" and .kernel == "eval" and (keys | length) == 23'
rm -f z.npy
fingerprint > .before
for call in TEMPLATE OUTPUT SOURCE FILE KERNEL STREAM PREPARE EVENT LOAD MAP; do
    for pair in NO_MEMORY=3 INVALID_ARGUMENT=2 WORKER_SIGNAL=1 COMPILE_FAILED=2; do
        [ $call = SOURCE ] && set -- --print || set --
        case_name="eval $call $pair"
        export "SCRIPT_$call=${pair%=*}"
        cli_again "${eval_[@]}" "$@"
        unset "SCRIPT_$call"
        expect_status "${pair#*=}"
        expect_stderr "as scripted"
    done
done
case_name="no eval that failed left a file"
expect_untouched

case_name="limits reach the library"
export SCRIPT_OPTIONS=1
limits=(--compile-deadline 5s --grace 10ms --tenant kim)
cp k.spv k.comp
cli "${good[@]/k.spv/k.comp}" "${limits[@]}"
expect_stderr "stream: compile 5000000000, grace 10000000, tenant 'kim'"
expect_stderr "source: compile 5000000000"
expect_stderr "file: tenant 'kim'"
cli "${eval_[@]}" "${limits[@]}"
expect_stderr "stream: compile 5000000000, grace 10000000, tenant 'kim'"
expect_stderr "template: compile 5000000000"
expect_stderr "file: tenant 'kim'"
cli "${good[@]}" --compile-deadline none --grace 0s
expect_stderr "stream: compile 18446744073709551615, grace 18446744073709551614, tenant ''" # BH_OFF
cli "${good[@]}"
expect_stderr "stream: compile 0, grace 0, tenant ''"
expect_stderr "file: tenant ''"
# The runner makes its buffers and waits in ways that the script does not have: what it asked for
# before that counts.
echo '{"id":"a","kernel":"k.spv","groups":1,"in":{"0":"x.npy"},"out":{"1":"out.npy:f32[16]"}}' > one.jsonl
cli batch one.jsonl "${limits[@]}"
expect_stderr "stream: compile 5000000000, grace 10000000, tenant 'kim'"
expect_stderr "file: tenant 'kim'"
unset SCRIPT_OPTIONS
rm -rf out.npy z.npy one.jsonl one.jsonl.state

case_name="the signal is in the verdict"
SCRIPT_EVENT=WORKER_SIGNAL cli "${good[@]}" --json
expect_json '.signal == 11'
expect_stderr "SIGSEGV"

case_name="text that a worker wrote cannot drive the terminal or break the JSON"
SCRIPT_MESSAGE=$'evil \e[31m\a\xff\n second' SCRIPT_EVENT=DEADLINE cli "${good[@]}" --json
expect_status 1
expect_json '.message == "evil ?[31m??  second"'
if grep -q $'[\x01-\x09\x0b-\x1f]' .stderr; then fail "a control character on stderr"; fi

case_name="the log goes to stderr, cleaned"
cli "${good[@]}" --verbose
expect_status 0
expect_stderr "scripted?[31m log"
rm -f out.npy

# -- what the kernel binds -------------------------------------------------------------------------
refuses "the kernel binds 0.1 ('y', storage buffer, read and written)" \
    run k.spv --groups 1 --in 0=x.npy --push f32:1,u32:2
refuses "the kernel binds 0.0 ('x', storage buffer, read)" \
    run k.spv --groups 1 --inout 1=y.npy --push f32:1,u32:2
refuses "--in 2.7=x.npy: the kernel has no binding 2.7; it has 0.0" "${good[@]}" --in 2.7=x.npy
refuses "--push is missing: the kernel has 8 bytes" \
    run k.spv --groups 1 --in 0=x.npy --inout 1=y.npy
refuses "--push: 4 bytes given, the kernel has 8" \
    run k.spv --groups 1 --in 0=x.npy --inout 1=y.npy --push f32:1
refuses "--push: 12 bytes given, the kernel has 8" \
    run k.spv --groups 1 --in 0=x.npy --inout 1=y.npy --push f32:1,1,1
SCRIPT_PUSH=0 refuses "--push: the kernel has no push constants" "${good[@]}"
SCRIPT_BINDINGS='' refuses "the kernel has no bindings" "${good[@]}"
refuses "the kernel does not write 0.0" \
    run k.spv --groups 1 --out '0=o.npy:f32[4]' --inout 1=y.npy --push f32:1,u32:2
SCRIPT_BINDINGS=0.0:u:x,0.1:rw:y refuses "'x', uniform buffer, read" \
    run k.spv --groups 1 --inout 0=x.npy --inout 1=y.npy --push f32:1,u32:2
SCRIPT_BINDINGS=0.0:w:x,0.1:rw:y refuses "the kernel does not read 0.0" "${good[@]}"

# -- streams ---------------------------------------------------------------------------------------
case_name="from standard input to standard output"
INPUT=x.npy cli run k.spv --groups 1 --in 0=- --out '1=-:f32[16]' --push f32:1,u32:2
expect_status 0
cmp -s .stdout x.npy || fail "stdout is not the output array"
expect_untouched
case_name="a pipe on both sides"
out=$(timeout $((60 * slowness)) "$BULKHEAD" run k.spv --groups 1 --in 0=- --out '1=-:f32[16]' --push f32:1,u32:2 \
    --repeat 2 < <(cat x.npy) 2> .stderr | cksum)
[ "$out" = "$(cksum < x.npy)" ] || fail "the pipe carried something else"
expect_stderr "2 submissions"
case_name="standard output is closed or full"
timeout $((60 * slowness)) "$BULKHEAD" "${good[@]:0:6}" --out '1=-:f32[16]' --push f32:1,u32:2 > /dev/full 2> .stderr
status=$?
expect_status 3
expect_stderr "No space left"
timeout $((60 * slowness)) "$BULKHEAD" "${good[@]:0:6}" --out '1=-:f32[16]' --push f32:1,u32:2 >&- 2> .stderr
status=$?
expect_status 2
expect_stderr "standard output cannot be written"
case_name="a reader that goes away is an error, not a death by SIGPIPE"
mkfifo pipe
(exec 3< pipe) & # opens it, reads nothing, closes it
timeout $((60 * slowness)) "$BULKHEAD" "${good[@]:0:6}" --out '1=pipe:f32[4000000]' --push f32:1,u32:2 2> .stderr
status=$?
wait
expect_status 3
expect_stderr "Broken pipe"
rm -f pipe

case_name="several outputs: none appears when one cannot be written"
SCRIPT_BINDINGS=0.0:r:x,0.1:w:y,0.2:w:z cli run k.spv --groups 1 --in 0=x.npy \
    --out '1=first.npy:f32[16]' --out '2=no/second.npy:f32[16]' --push f32:1,u32:2
expect_status 2
expect_stderr "--out 2=no/second.npy:f32[16]"
expect_untouched

case_name="inout without OUT replaces the file"
cp y.npy z.npy
cli run k.spv --groups 1 --in 0=x.npy --inout 1=z.npy --push f32:1,u32:2
expect_status 0
cmp -s z.npy x.npy || fail "z.npy was not replaced"
rm -f z.npy

case_name="empty and 0-d arrays"
"$NPY" make none.npy 'f32[0]' ramp 0 0
SCRIPT_PUSH=0 cli run k.spv --groups 1 --in 0=none.npy --out '1=none-out.npy:f32[0]'
expect_status 0
[ "$("$NPY" show none-out.npy)" = "f32[0]" ] || fail "none-out.npy"
SCRIPT_PUSH=0 cli run k.spv --groups 1 --in 0=x.npy --out '1=one.npy:u16[]'
expect_status 0
[ "$("$NPY" show one.npy)" = "u16[] 0" ] || fail "one.npy"
rm -f none.npy none-out.npy one.npy

# -- signals ---------------------------------------------------------------------------------------
# Starts the program in the background with SIGINT as a terminal gives it (a shell's background
# job ignores it), waits until it has begun (its log line), sends signals.
interrupt() { # SIGNAL ARGUMENT...
    local signal=$1
    shift
    fingerprint > .before
    : > .stderr # the log line of the run before must not be taken for this one's
    env --default-signal=INT,TERM "$BULKHEAD" "$@" --verbose > .stdout 2> .stderr \
        < "${INPUT:-/dev/null}" &
    local pid=$! deadline=$((SECONDS + 20 * slowness))
    until grep -q scripted .stderr || [ $SECONDS -ge $deadline ]; do :; done
    kill -s "$signal" $pid
    wait $pid
    status=$?
}
# cancelled STATUS SUBMISSIONS: the object has the same words, and nobody is to blame. Where something
# hangs that can be cancelled, the signal may come before it hangs, or after: REFUSED or POISONED.
cancelled() {
    expect_object "(.status | test(\"^($1)$\")) and .code == \"CANCELLED\" and .submissions <= $2 and
        .message == \"cancelled by SIG$signal\" and .signal == null and
        .blame == \"none\" and .min_ms == null and .file == null"
}
for signal in INT TERM; do
    want=$([ $signal = INT ] && echo 130 || echo 143)
    case_name="SIG$signal cancels a submission"
    export SCRIPT_HANG=1
    interrupt $signal "${good[@]}" --json
    unset SCRIPT_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    cancelled "POISONED|REFUSED" 1
    expect_untouched
    case_name="SIG$signal while a header is read"
    export SCRIPT_FILE_HANG=1
    interrupt $signal "${good[@]}" --json
    unset SCRIPT_FILE_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    cancelled REFUSED 0
    expect_untouched
    for asked in doctor "doctor --trace-driver" devices; do
        case_name="SIG$signal ends $asked"
        export SCRIPT_MACHINE_HANG=1
        # shellcheck disable=SC2086 # two words
        interrupt $signal $asked
        unset SCRIPT_MACHINE_HANG
        expect_status "$want"
    done
    case_name="SIG$signal while GLSL is compiled"
    echo > k.comp
    export SCRIPT_GLSL_HANG=1
    interrupt $signal "${good[@]/k.spv/k.comp}" --json
    unset SCRIPT_GLSL_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    cancelled REFUSED 0
    expect_untouched
    case_name="SIG$signal while a kernel is inspected"
    export SCRIPT_GLSL_HANG=1
    interrupt $signal inspect k.spv
    unset SCRIPT_GLSL_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    expect_untouched
    case_name="SIG$signal ends a load"
    export SCRIPT_LOAD_HANG=1
    interrupt $signal "${good[@]}" --json
    unset SCRIPT_LOAD_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    cancelled "POISONED|REFUSED" 0
    expect_untouched
    case_name="SIG$signal ends a compile"
    export SCRIPT_PREPARE_HANG=1
    interrupt $signal "${good[@]}" --json
    unset SCRIPT_PREPARE_HANG
    expect_status "$want"
    expect_stderr "cancelled by SIG$signal"
    cancelled "POISONED|REFUSED" 0
    expect_untouched
done
case_name="SIGINT while a pipe is read: there is a header, the data never comes"
mkfifo slow
exec 7<> slow
head -c 128 x.npy >&7
INPUT=slow interrupt INT run k.spv --groups 1 --in 0=- --inout 1=y.npy --push f32:1,u32:2
exec 7>&-
rm -f slow
expect_status 130
expect_stderr "cancelled by SIGINT"
expect_untouched

# -- the progress bar ------------------------------------------------------------------------------
# A load that has not ended after a second shows one, on a terminal; what is shown says how far it
# is, and nothing of it stays.
wait_for() { # what has to appear in a file
    local deadline=$((SECONDS + 20 * slowness))
    until grep -qF -- "$1" "$2" || [ $SECONDS -ge $deadline ]; do :; done
}
load_slowly() { # COMMAND...: its output goes to .stdout
    rm -f loaded
    : > .stdout
    : > .stderr
    SCRIPT_LOAD_UNTIL=loaded "$@" < /dev/null > .stdout 2> .stderr &
    running=$!
}
case_name="a bar on a terminal while a load takes its time"
load_slowly script -qefc "'$BULKHEAD' run k.spv --groups 1 --in 0=x.npy \
    --inout 1=y.npy:out.npy --push f32:1,u32:2" /dev/null
wait_for "loading [" .stdout
touch loaded
wait $running
status=$?
expect_status 0
expect_stdout "loading [====================                    ]  50 %"
if tr '\r' '\n' < .stdout | tail -n 1 | grep -q '[^ ]'; then fail "the bar stays"; else passed=$((passed + 1)); fi
case_name="no bar where standard error is no terminal"
load_slowly "$BULKHEAD" "${good[@]}"
began=$EPOCHREALTIME
until [ $((${EPOCHREALTIME/./} - ${began/./})) -gt 1500000 ]; do :; done
touch loaded
wait $running
status=$?
expect_status 0
expect_empty .stderr
rm -f loaded

# -- devices and doctor ----------------------------------------------------------------------------
case_name="a device by a part of its name"
cli "${good[@]}" --device "bad one" --json
expect_status 3
expect_object '.status == "REFUSED" and .code == "NO_DEVICE" and .reason == "SELECTOR"'
expect_stderr "no device matches 'bad one'; the devices are: script:0 script:1 script:2"
case_name="a part of the names of two devices"
cli "${good[@]}" --device "not bad" --json
expect_status 2
expect_object '.status == "REFUSED" and .code == "INVALID_ARGUMENT" and .reason == "SELECTOR_SEVERAL"'
expect_stderr "'not bad' matches more than one device: script:0 script:2; see bulkhead devices"

case_name="a GPU's CUDA device is found by its selector alone"
SCRIPT_CUDA=1 cli "${good[@]}" --device "not bad" --json
expect_status 0
SCRIPT_CUDA=1 cli "${good[@]}" --device cuda:2 --json
expect_status 0
SCRIPT_CUDA=1 cli devices
expect_status 0
expect_stdout "CUDA 1.3.230"

case_name="devices"
cli devices
expect_status 0
expect_stdout "Scripted Two?[31m"
expect_stdout "Vulkan 1.3.230"
expect_stdout "robustBufferAccess2"
expect_stdout "  memory    4.00 GiB, 1.50 GiB free"
case_name="devices, of which one says how much is free"
if [ "$(grep -c "^  memory    4.00 GiB$" .stdout)" -eq 2 ]; then passed=$((passed + 1)); else fail "not two without"; fi
cli devices --json
expect_json '(.devices | length) == 3 and .devices[0].selector == "script:0"
    and .devices[2].type == "cpu" and .devices[0].api_version == "1.3.230"
    and .devices[0].memory_bytes == 3221225472 and (.devices[0].max_groups | length) == 3
    and .devices[0].memory_total == 4294967296 and .devices[0].memory_free == 1610612736
    and .devices[0].pci == "0000:65:00.0" and (.devices[1] | .memory_free == null and .pci == null)
    and .devices[0].features == ["shaderInt64", "robustBufferAccess2"]
    and .devices[0].uuid == "0000000000000000000000000000000f" and (.devices[0] | length) == 24'
SCRIPT_DEVICES=NO_DEVICE cli devices --json
expect_status 3
expect_json '. == {"error": {"code": "NO_DEVICE", "reason": null, "subject": null, "message": "as scripted", "file": null, "line": null, "log": null}}'
SCRIPT_DEVICES=NO_DEVICE cli devices
expect_status 3
expect_empty .stdout

case_name="doctor"
SCRIPT_CHECKS=HHha cli doctor
expect_status 0
expect_stdout "3 of 4 checks hold, 1 optional absent"
expect_stdout "-> enable it"
if grep -q $'\e' .stdout; then fail "colour where there is no terminal"; fi
SCRIPT_CHECKS=HHha cli doctor --json
expect_status 0
expect_json '.holds == true and (.checks | length) == 4 and .checks[3].result == "absent"
    and .checks[3].required == false and .checks[0].required == true'
for checks in HA HB Hb; do
    SCRIPT_CHECKS=$checks cli doctor --json
    expect_status 3
    expect_json '.holds == false'
    SCRIPT_CHECKS=$checks cli doctor
    expect_status 3
    expect_stdout "1 FAILED"
done
SCRIPT_DOCTOR=SYSTEM cli doctor
expect_status 3
expect_stderr "see the message"

case_name="a traced driver"
SCRIPT_TRACE=ae cli doctor --trace-driver
expect_status 0
expect_stdout "driver script, version Script 1.0?[31m"
expect_stdout "this version is not among them"
expect_stdout "SIOCGIFNAME (answered ENOENT)"
expect_stdout "0 calls that the table does not know"
SCRIPT_TRACE=au cli doctor --trace-driver --device one
expect_status 3
expect_stdout "driver one"
expect_stdout "UNKNOWN"
expect_stdout "running (behind filter B)"
expect_stdout "report the output"
SCRIPT_TRACE=aeu cli doctor --trace-driver --json
expect_status 3
expect_json '.unknown == 1 and .known_version == false and .tried == true and
    (.calls | length) == 3 and .calls[0].table == "allowed" and .calls[0].errno == null and
    .calls[1].errno == 2 and .calls[2].table == "unknown" and .calls[2].filter == "B" and
    .calls[2].count == 3 and .calls[0].phase == "device"'
SCRIPT_TRACED=SYSTEM cli doctor --trace-driver
expect_status 3
expect_stderr "see the message"
cli doctor --device script
expect_status 2
expect_stderr "--device needs --trace-driver"

# -- inspect ---------------------------------------------------------------------------------------
case_name="a disassembly that is longer than was thought"
cli inspect k.spv --guarded --json
expect_status 0
expect_json '.guard.disassembly | length == 1048586'

finish
