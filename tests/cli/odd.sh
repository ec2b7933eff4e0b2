#!/usr/bin/env bash
# Odd invocations: each ends with a usage error that says what, or with a whole object of --json, and
# with the exit status that belongs to its code. None of them leaves a file but what it has to write.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# odd CODE SAYS ARGUMENT...: CODE is that of the object, or `usage`: there is none. SAYS is in the
# message, or on standard error.
odd() {
    local code=$1 says=$2 want=2
    shift 2
    case_name="$code: $*"
    cli "$@"
    case $code in
    OK) want=0 ;;
    DEADLINE) want=1 ;;
    SYSTEM | NO_DEVICE) want=3 ;;
    esac
    expect_status $want
    if [ "$code" = usage ]; then
        expect_empty .stdout
        expect_stderr "$says"
        expect_stderr "see bulkhead"
        expect_untouched
        return
    fi
    expect_object ".code == \"$code\""
    expect_json --arg says "$says" '.message | contains($says)'
    if [ "$code" = OK ]; then
        expect_json '.status == "READY" and .message == ""'
    else
        expect_untouched
    fi
    rm -f y.npy
}

"$NPY" make x.npy 'f32[16]' ramp 0 1
"$NPY" make u.npy 'u32[16]' ramp 0 1
mkdir dir none
mkfifo pipe
ln -s loop loop
ln -s nowhere dangling
: > empty.npy
: > empty.comp
printf 'no array, and no kernel' > text.npy
cp text.npy text.spv
head -c 40 x.npy > cut.npy
{ cat x.npy; printf junk; } > tail.npy
cp "$SHADERS/square.spv" square.comp
sq=$SHADERS/square.spv
r=(run "$sq" --json --groups 1)
x=(--in '0=x.npy')
y=(--out '1=y.npy:f32[16]')
both=("${x[@]}" "${y[@]}")

# -- what is no kernel -----------------------------------------------------------------------------
k=(--json --groups 1 "${both[@]}")
odd LOAD_FAILED "KERNEL nowhere.spv: No such file" run nowhere.spv "${k[@]}"
odd LOAD_FAILED "KERNEL : No such file" run '' "${k[@]}"
odd LOAD_FAILED "KERNEL dir: not a regular file" run dir "${k[@]}"
odd LOAD_FAILED "KERNEL pipe: not a regular file" run pipe "${k[@]}"
odd LOAD_FAILED "KERNEL loop: Too many levels" run loop "${k[@]}"
odd LOAD_FAILED "KERNEL dangling: No such file" run dangling "${k[@]}"
odd LOAD_FAILED "KERNEL /dev/zero: not a regular file" run /dev/zero "${k[@]}"
odd LOAD_FAILED "KERNEL ??.spv: No such file" run $'\xff\xfe.spv' "${k[@]}"
odd COMPILE_FAILED "empty.comp: it does not compile" run empty.comp "${k[@]}"
odd COMPILE_FAILED "-: it does not compile" run - "${k[@]}"
odd INVALID_ARGUMENT "text.spv" run text.spv "${k[@]}"
odd INVALID_KERNEL "it is a .npy array, not a kernel" run x.npy "${k[@]}"
# A file that was cut names itself, how far it goes, and what it is.
words=$(($(stat -c %s "$sq") / 4))
for size in 4 19 21 101; do
    head -c $size "$sq" > cut.spv
    odd INVALID_ARGUMENT "cut.spv: not a whole SPIR-V module: it has $size bytes, and a module has at least 20, a multiple of 4; it was probably cut short" \
        run cut.spv "${k[@]}"
    if grep -q GLSL .stderr; then fail "it may be GLSL"; else passed=$((passed + 1)); fi
done
head -c 24 "$sq" > cut.spv
odd INVALID_KERNEL "cut.spv: not valid SPIR-V: its 6 words end within instruction 1 (OpCapability), which has 2 words from word 5 on: it was probably cut short" \
    run cut.spv "${k[@]}"
head -c $((words * 4 - 4)) "$sq" > cut.spv
odd INVALID_KERNEL "cut.spv: not valid SPIR-V: its $((words - 1)) words end with instruction " run cut.spv "${k[@]}"
expect_stderr "(OpReturn), and not with OpFunctionEnd: it was probably cut short"
case_name="a cut file, inspected"
cli inspect cut.spv
expect_status 2
expect_stderr "cut.spv: not valid SPIR-V: its $((words - 1)) words end with instruction "
# No source begins as SPIR-V does, whatever it is called.
odd OK "" run square.comp "${k[@]}"
odd OK "" "${r[@]}" "${both[@]}" --language hlsl
INPUT=$sq odd OK "" run - "${k[@]}"
INPUT=$sq odd INVALID_ARGUMENT "standard input is already taken by KERNEL" run - --json --groups 1 --in 0=- "${y[@]}"

# -- what is no input ------------------------------------------------------------------------------
for file in dir:directory pipe:FIFO loop:levels dangling:'No such file' nowhere.npy:'No such file' \
    empty.npy:empty text.npy:x93NUMPY cut.npy:'truncated header' tail.npy:'too long' /dev/zero:device \
    x.npy:tensor:'No such file'; do
    odd LOAD_FAILED "${file##*:}" "${r[@]}" --in "0=${file%:*}" "${y[@]}"
done
for file in /dev/null text.npy cut.npy tail.npy; do
    INPUT=$file odd LOAD_FAILED "--in 0=-: " "${r[@]}" --in 0=- "${y[@]}"
done
INPUT=x.npy odd OK "" "${r[@]}" --in 0=- "${y[@]}"
odd BINDING_MISMATCH "the array is u32" "${r[@]}" --in 0=u.npy "${y[@]}"
odd BINDING_MISMATCH "no binding '?'" "${r[@]}" --in $'\xff=x.npy' "${both[@]}"
odd BINDING_MISMATCH "no binding 0.7" "${r[@]}" --in 7=x.npy "${both[@]}"
odd INVALID_ARGUMENT "'99999999999' is not a binding" "${r[@]}" --in 99999999999=x.npy "${y[@]}"
odd INVALID_ARGUMENT "given twice" "${r[@]}" "${x[@]}" "${both[@]}"

# -- what is no output -----------------------------------------------------------------------------
odd INVALID_ARGUMENT "is a directory: name a file in it" "${r[@]}" "${x[@]}" --out '1=dir:f32[16]'
odd INVALID_ARGUMENT "its folder cannot be opened" "${r[@]}" "${x[@]}" --out '1=no/y.npy:f32[16]'
odd SYSTEM "No space left" "${r[@]}" "${x[@]}" --out '1=/dev/full:f32[16]'
odd INVALID_ARGUMENT "--in 0=x.npy reads that file: to replace it, use --inout" \
    "${r[@]}" "${x[@]}" --out '1=x.npy:f32[16]'
odd LIMIT_EXCEEDED "399999999996 bytes" "${r[@]}" "${x[@]}" --out '1=y.npy:f32[99999999999]'
for shape in '16' '[16' '[-1]' '[4294967296,4294967296]' '[18446744073709551616]' '[16,]' '' '[1 6]'; do
    odd INVALID_ARGUMENT "--out 1=y.npy:f32$shape: " "${r[@]}" "${x[@]}" --out "1=y.npy:f32$shape"
done
odd OK "" "${r[@]}" "${x[@]}" --out '1=y.npy:f32[0]'
# The object goes to standard output, and nothing else with it, under no name.
for name in - /dev/stdout /proc/self/fd/1 .stdout; do
    odd INVALID_ARGUMENT "standard output is already taken by --json" "${r[@]}" "${x[@]}" --out "1=$name:f32[16]"
done
case_name="standard output under its file's name is not replaced"
cli run "$sq" --groups 1 "${both[@]}"
cli run "$sq" --groups 1 "${x[@]}" --out '1=.stdout:f32[16]' --repeat 2
expect_status 0
if cmp -s y.npy .stdout; then passed=$((passed + 1)); else fail "another array"; fi
expect_stderr "2 submissions"
rm -f y.npy

# -- numbers and names -----------------------------------------------------------------------------
for groups in -1 4294967296 1,2,3,4 1, ,1 1,,1 '' 0x10 +1 1.0 '1 '; do
    odd INVALID_ARGUMENT "is not X[,Y[,Z]]" run "$sq" --json --groups "$groups" "${both[@]}"
done
odd INVALID_ARGUMENT "at least one group" run "$sq" --json --groups 1,0 "${both[@]}"
odd LIMIT_EXCEEDED "--groups: 4294967295 workgroups in x" run "$sq" --json --groups 4294967295 "${both[@]}"
for selector in lavapipe:9 nvidia:3 any:3 9 256 -1 a:b:c "$(printf 'x%.0s' {1..500})"; do
    odd NO_DEVICE "--device: no device matches '${selector:0:100}'; the devices are: lavapipe:0" "${r[@]}" "${both[@]}" --device "$selector"
done
odd INVALID_ARGUMENT "the selector is empty" "${r[@]}" "${both[@]}" --device ''
odd INVALID_ARGUMENT "is too small: use 64M to 1048576T, or none" "${r[@]}" "${both[@]}" --memory-limit 1
odd INVALID_ARGUMENT "is too large: use 64M to 1048576T, or none" "${r[@]}" "${both[@]}" --memory-limit 99999999999T
for time in 0s 5 1h infs -1s 1e3ms '5 s' ''; do
    odd INVALID_ARGUMENT "--deadline $time" "${r[@]}" "${both[@]}" --deadline "$time"
done
odd DEADLINE "deadline of 1 ns passed" "${r[@]}" "${both[@]}" --deadline 1ns
odd INVALID_ARGUMENT "from 1 to 1000000" "${r[@]}" "${both[@]}" --repeat 18446744073709551615
odd INVALID_KERNEL 'no entry point "nix"' "${r[@]}" "${both[@]}" --entry nix
odd BINDING_MISMATCH "no push constants" "${r[@]}" "${both[@]}" --push u32:1
odd INVALID_ARGUMENT "-D and -I are for" "${r[@]}" "${both[@]}" -D A=1
odd INVALID_ARGUMENT "-D and -I are for" "${r[@]}" "${both[@]}" -I none # an empty folder
odd INVALID_ARGUMENT "-I nowhere: No such file" "${r[@]}" "${both[@]}" -I nowhere

# -- what cannot be parsed: no object --------------------------------------------------------------
odd usage "option '--json' is given twice" "${r[@]}" "${both[@]}" --json
odd usage "option '--json' takes no value" run "$sq" --groups 1 --json=1
odd usage "--groups X[,Y[,Z]] is missing" run "$sq" --json
odd usage "KERNEL is missing" run --json
odd usage "unknown option '--frobnicate'" "${r[@]}" --frobnicate
odd usage "unexpected argument 'extra'" "${r[@]}" "${both[@]}" extra
odd usage "option '--in' needs a value" run "$sq" --groups 1 --in --json

# -- others ----------------------------------------------------------------------------------------
case_name="a cache is a folder"
for command in "run $sq --groups 1 ${both[*]}" "eval y=x --in x=x.npy --out y=y.npy" "batch jobs.jsonl"; do
    # shellcheck disable=SC2086 # words
    refuses "--cache-dir x.npy: not a folder" $command --cache-dir x.npy
done
case_name="a cache that cannot be read is reported"
for command in "run $sq --groups 1 ${both[*]}" "eval y=x --in x=x.npy --out y=y.npy"; do
    # shellcheck disable=SC2086 # words
    cli $command --cache-dir x.npy/sub
    expect_status 0
    expect_stderr "bulkhead: pipeline cache: "
    expect_stderr "/x.npy/sub cannot be read, so kernels are compiled again: open the folder: Not a directory"
done
rm -f y.npy
case_name="a page is not mixed with the summary"
echo "{\"id\":\"a\",\"kernel\":\"$sq\",\"groups\":1,\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"y.npy:f32[16]\"}}" > jobs.jsonl
for name in - /dev/stdout .stdout; do
    cli batch jobs.jsonl --html $name
    expect_status 2
    expect_stderr "--html $name: a page needs a file: standard output is for the summary"
    expect_empty .stdout
    expect_untouched
done
# The variable that hides the drivers is named, and what is wrong with it; not an argument, and not a
# package that is installed.
echo '{"ICD":{"library_path":"/nowhere/libvulkan_lvp.so"}}' > library.json
names=(/nowhere:' No such file or directory' "$PWD/text.npy: not a driver's manifest, or not readable"
    "$PWD/library.json: its library is missing, or does not fit")
for variable in VK_ICD_FILENAMES VK_DRIVER_FILES; do
    for name in "${names[@]}"; do
        case_name="$variable=$name"
        export $variable="${name%%:*}"
        for command in devices "run $sq --groups 1 ${both[*]}" "inspect $sq" "eval y=x --in x=x.npy --out y=y.npy"; do
            # shellcheck disable=SC2086 # words
            cli $command
            expect_status 3
            expect_stderr "bulkhead ${command%% *}: no known Vulkan driver is present ("
            expect_stderr "lavapipe: $variable names $name"
            expect_stderr "; to correct it: unset $variable, or let it name the manifest (*.json) of a driver (NO_DEVICE)"
            if grep -qE "install|(see|run) bulkhead" .stderr; then fail "other advice"; else passed=$((passed + 1)); fi
            expect_untouched
            [ "$name" = "${names[0]}" ] || break
        done
        unset $variable
    done
done
case_name="doctor names the variable, too"
VK_DRIVER_FILES=/nowhere cli doctor --json
expect_status 3
expect_json '[.checks[] | select(.name == "worker")][0] | (.text | endswith("VK_DRIVER_FILES names /nowhere: No such file or directory)"))
    and .advice == "unset VK_DRIVER_FILES, or let it name the manifest (*.json) of a driver"'
expect_json '[.checks[] | select(.name == "device")][0].advice == "see the check \"worker\""'
expect_json 'all(.checks[]; .text | test("^[[:alnum:]]"))'
# limited FLAG KIB CODE SAYS COMMAND...: with `ulimit FLAG KIB` the command names the limit, and leaves
# no part of an output. A sanitizer needs more address space than that.
limited() {
    local flag=$1 kib=$2 code=$3 says=$4
    shift 4
    case_name="ulimit $flag $kib: $1"
    fingerprint > .before
    (ulimit "$flag" "$kib"; cli_again "$@"; exit "$status")
    status=$?
    expect_status 3
    expect_stderr "$says ($code)"
    for advice in "the call and errno" "release buffers" "run bulkhead" "see bulkhead"; do
        if grep -qF "$advice" .stderr; then fail "it also says: $advice"; else passed=$((passed + 1)); fi
    done
    expect_untouched
}
say() { echo "files and shared memory are limited to $1 KiB: raise that (ulimit -f)"; }
for command in "run $sq --groups 1 ${both[*]}" "eval y=x --in x=x.npy --out y=y.npy" "batch jobs.jsonl" devices "inspect $sq"; do
    # shellcheck disable=SC2086 # words
    limited -f 1 SYSTEM "$(say 1)" $command
done
# What the array takes as memory is allowed, and its file, which has a header, is not.
limited -f 1100 SYSTEM "1126360 bytes: File too large; $(say 1100)" run "$sq" --groups 1 "${x[@]}" --out 1=y.npy:f32:281590
INPUT=/dev/null limited -f 1100 SYSTEM "2000000 bytes: File too large; $(say 1100)" run "$sq" --groups 1 "${x[@]}" --out 1=y.npy:f32:500000
if (ulimit -v 25000; "$BULKHEAD" version) > /dev/null 2>&1; then
    for command in "run $sq --groups 1 ${both[*]}" "batch jobs.jsonl" devices; do
        # shellcheck disable=SC2086 # words
        limited -v 25000 SYSTEM "the address space is limited to 24 MiB: raise that (ulimit -v)" $command
    done
    # Enough for the host, and not for a driver.
    for command in "run $sq --groups 1 ${both[*]}" devices; do
        # shellcheck disable=SC2086 # words
        limited -v 80000 NO_DEVICE "the address space is limited to 78 MiB: raise that (ulimit -v)" $command
    done
else
    echo "no program starts with so little address space: ulimit -v is left out"
fi
case_name="a name is said once"
cli inspect "$sq" --entry nix
expect_status 2
expect_stderr "square.spv: there is no entry point"

finish
