#!/usr/bin/env bash
# Bad usage and bad files: what is refused before anything runs. Works with any library.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$NPY" make x.npy 'f32[16]' ramp 0 1
cp "$SHADERS/square.spv" k.spv
run=(run k.spv --groups 1)
out=(--out '1=o.npy:f32[16]')

case_name="no arguments"
cli
expect_status 2
expect_stderr "Usage: bulkhead"
refuses "there is no command 'walk'; see bulkhead --help" walk
refuses "unknown option '--walk'; see bulkhead --help" --walk
refuses "there is no command 'walk'" help walk
refuses "there is no command 'isnpect'; did you mean 'inspect'? See bulkhead --help" isnpect
refuses "there is no command 'dev'; did you mean 'devices'? See bulkhead help" help dev

# -- options ---------------------------------------------------------------------------------------
refuses "unknown option '--foo'; see bulkhead run --help" "${run[@]}" --foo
refuses "unknown option '--foo'; see bulkhead run --help" "${run[@]}" --foo=7
refuses "unknown option '-x'" "${run[@]}" -x
refuses "unknown option '--group'; did you mean '--groups'? See bulkhead run --help" run k.spv --group 1
refuses "unknown option '--dealdine'; did you mean '--deadline'?" "${run[@]}" --dealdine=1s
refuses "unknown option '--D'" "${run[@]}" --D X
refuses "option '-D' needs a value: -D NAME[=VALUE]" "${run[@]}" -D
refuses "-D =1: it has no name: write NAME or NAME=VALUE" "${run[@]}" -D =1
refuses "-I nowhere: No such file or directory" "${run[@]}" -I nowhere
refuses "option '--json' takes no value" "${run[@]}" --json=yes
refuses "option '--deadline' needs a value: --deadline TIME" "${run[@]}" --deadline
refuses "option '--deadline' needs a value" "${run[@]}" --deadline --json
refuses "option '--groups' is given twice" "${run[@]}" --groups 2
refuses "--groups X[,Y[,Z]] is missing; see bulkhead run --help" run k.spv
refuses "KERNEL is missing" run --groups 1
refuses "unexpected argument 'two'" "${run[@]}" two
refuses "unexpected argument '--json'" "${run[@]}" -- --json
refuses "unexpected argument 'x'" devices x
refuses "unknown option '--foo'; see bulkhead doctor --help" doctor --foo

refuses "FILE is missing" inspect
refuses "--entry : the name is empty" inspect k.spv --entry ''
refuses "--spec 1: '1' is not ID=TYPE:VALUE" inspect k.spv --spec 1
refuses "FILE nowhere.spv: No such file or directory" inspect nowhere.spv

# -- values ----------------------------------------------------------------------------------------
refuses "--groups 0: there must be at least one group" run k.spv --groups 0
refuses "--groups 4,0" run k.spv --groups 4,0
refuses "--groups 99999999999" run k.spv --groups 99999999999
refuses "--groups many" run k.spv --groups many
refuses "--deadline 500: '500' has no unit: write 500ms or 500s" "${run[@]}" --deadline 500
# What is out of its range names the range: 0, a negative number, and one that is too large.
for value in 0s -1s 99999999999s; do
    for option in --deadline --compile-deadline; do
        refuses "1ns to 1000000000s, or none; see" "${run[@]}" $option $value
        refuses "1ns to 1000000000s, or none; see" eval y=x --in x=x.npy --out y=o.npy $option $value
        refuses "1ns to 1000000000s, or none; see" batch jobs.jsonl $option $value
    done
    refuses "1ns to 1000000000s, or none; see" inspect k.spv --compile-deadline $value
    refuses "1ns to 1000000000s; see" chaos --duration $value
    [ $value = 0s ] || refuses "0s to 1000000000s; see" "${run[@]}" --grace $value
done
for value in 0 -1 99999999999999999999; do
    refuses "from 1 to 4294967295" run k.spv --groups $value
    refuses "is not a number from 1 to 1000000; see" "${run[@]}" --repeat $value
    refuses "64M to 1048576T, or none; see" "${run[@]}" --memory-limit $value
    refuses "1 to 1048576T, or none; see" eval y=x --in x=x.npy --out y=o.npy --piece $value
    refuses "is not a number from 1 to 256; see" batch jobs.jsonl --streams $value
    refuses "is not a number from 1 to 4294967295; see" batch jobs.jsonl --halt $value
    refuses "is not a number from 1 to 12; see" chaos --streams $value
    refuses "is not a number from 1 to 100000000; see" chaos --count $value
    refuses "0.001" chaos --rate $value
    if [ $value != 0 ]; then
        refuses "is not a number from 0 to 1000; see" batch jobs.jsonl --retry $value
        refuses "is not a number from 0 to 18446744073709551615; see" chaos --seed $value
        refuses "1e-07 " chaos --find-rate $value
        refuses "with an ID from 0 to 4294967295; see" "${run[@]}" --spec "$value=u32:1"
        refuses "is out of the range of u8: 0 to 255; see" "${run[@]}" --spec "0=u8:$value"
    fi
done
refuses "is out of the range of i16: -32768 to 32767; see" "${run[@]}" --push i16:32768
refuses "is out of the range of f16: -65504 to 65504; see" "${run[@]}" --push f16:70000
refuses "is out of the range of f32: -3.40282e+38 to 3.40282e+38; see" "${run[@]}" --push f32:1e39
refuses "--compile-deadline 5: '5' has no unit" "${run[@]}" --compile-deadline 5
refuses "--grace none: none is not allowed here: the run must end" "${run[@]}" --grace none
refuses "--tenant : the name is empty" "${run[@]}" --tenant ''
refuses "longer than 63 bytes" "${run[@]}" --tenant "$(printf 'x%.0s' {1..64})"
refuses "--repeat 0" "${run[@]}" --repeat 0
refuses "--memory-limit lots" "${run[@]}" --memory-limit lots
refuses "--entry : the name is empty" "${run[@]}" --entry ''
refuses "--push 1: '1' has no type: write f32:1" "${run[@]}" --push 1
refuses "--push a: 'a' is not a value: write a=VALUE for a push constant by name" "${run[@]}" --push a
refuses "'f32x4x2' is not a type and shape: write f32:4x2 or f32[...]" "${run[@]}" --out 1=o.npy:f32x4x2
refuses "--push u8:256: '256' is out of the range of u8" "${run[@]}" --push u8:256
refuses "--push complex:1: 'complex' is not a type" "${run[@]}" --push complex:1
refuses "--spec 1: '1' is not ID=TYPE:VALUE" "${run[@]}" --spec 1
refuses "constant 1 is given twice" "${run[@]}" --spec 1=u32:1 --spec 1=u32:2
refuses "--in x.npy: no '=': write --in B=FILE" "${run[@]}" --in x.npy
for name in x.npy ./X /tmp/x m.safetensors; do
    refuses "--in $name=0: '$name' is a file, not a binding: the binding comes first, as in 0=FILE" "${run[@]}" --in "$name=0"
done
refuses "'1a' is not a binding: write N (of set 0) or SET.N" "${run[@]}" --in 1a=x.npy
refuses "--in =x.npy: no binding before '='" "${run[@]}" --in =x.npy
refuses "'a[b]' is not a name followed by [ELEMENT]" "${run[@]}" --in 'a[b]=x.npy'
refuses "names have 63 at most" "${run[@]}" --in "$(printf 'x%.0s' {1..64})=x.npy"
refuses "--in a=y.npy: binding a is given twice" "${run[@]}" --in a=x.npy --in a=y.npy
refuses "--push a=1,: 'a=1,' is not NAME=VALUE,..." "${run[@]}" --push a=1,
refuses "--push 1,a=1: the first value has no name" "${run[@]}" --push 1,a=1
refuses "--push f32:1: push constants are given both in order and by name" "${run[@]}" --push a=1 --push f32:1
refuses "--push a=1: push constants are given both in order and by name" "${run[@]}" --push f32:1 --push a=1
refuses "--push f32:1: given twice" "${run[@]}" --push f32:1 --push f32:1
refuses "--out 1=o.npy:like:1: like names the output itself" "${run[@]}" --in 0=x.npy --out 1=o.npy:like:1
refuses "'2' is an output, too: like takes the type and shape of an input" \
    "${run[@]}" --in 0=x.npy --out 1=o.npy:like:2 --out 2=p.npy:f32:4
refuses "no binding is given as 'Z'; the inputs are 0, X[1]" \
    "${run[@]}" --in 0=x.npy --in 'X[1]=x.npy' --out '1=o.npy:like Z'
refuses "--out 1=o.npy:like:: like needs a binding" "${run[@]}" --out 1=o.npy:like:
refuses "the file name is empty" "${run[@]}" --in 0=
refuses "--in 0=m.safetensors: no array: write m.safetensors:NAME" "${run[@]}" --in 0=m.safetensors
refuses "--in 0=m.safetensors:: the array's name is empty" "${run[@]}" --in 0=m.safetensors:
refuses "--in 0.0=x.npy: binding 0.0 is given twice" "${run[@]}" --in 0=x.npy --in 0.0=x.npy
refuses "no dtype and shape: write o.npy:f32:N" "${run[@]}" --out 1=o.npy
refuses "'f31' is not a dtype; it is one of f16 f32 f64" "${run[@]}" --out '1=o.npy:f31[4]'
refuses "'f33' is not a dtype; it is one of f16 f32 f64" "${run[@]}" --out '1=o.npy:f33:4'
refuses "'4' is not a dtype; it is one of f16 f32 f64" "${run[@]}" --out '1=o:x.npy:4'
refuses "has no shape: write f32:N" "${run[@]}" --out 1=o.npy:f32
refuses "'f32:10x' is not DTYPE:N,... or DTYPE[N,...]" "${run[@]}" --out 1=o.npy:f32:10x
refuses "'f32:' has no shape: write f32:N, or f32[] for one element" "${run[@]}" --out 1=o.npy:f32:
refuses "is not DTYPE:N,... or DTYPE[N,...]" "${run[@]}" --out '1=o.npy:f32[-4]'
refuses "more elements than 64 bits" "${run[@]}" --out '1=o.npy:f32[9999999999,9999999999]'
refuses "standard input is already taken by KERNEL" run - --groups 1 --in 0=-
refuses "standard input is already taken by 0=-" "${run[@]}" --in 0=- --in 1=-
refuses_json INVALID_ARGUMENT "standard output is already taken by --json" "${run[@]}" --out '1=-:f32[4]'
expect_status 2
refuses_json INVALID_ARGUMENT "--groups 0: there must be at least one group" run k.spv --groups 0
expect_status 2
expect_object '.kernel == "k" and .kernel_hash == null and .executed == "no"'


# -- files -----------------------------------------------------------------------------------------
refuses "KERNEL missing.spv: No such file" run missing.spv --groups 1
refuses_json LOAD_FAILED "KERNEL missing.spv: No such file" run missing.spv --groups 1
expect_status 2
refuses "KERNEL .: not a regular file" run . --groups 1
refuses "KERNEL /dev/zero: not a regular file" run /dev/zero --groups 1
refuses "--in 0=missing.npy: No such file" "${run[@]}" --in 0=missing.npy "${out[@]}"
refuses "--inout 0=missing.npy: No such file" "${run[@]}" --inout 0=missing.npy "${out[@]}"

npy() { # FILE HEADER: a format 1.0 file with 64 bytes of data
    local length
    length=$(printf '\\x%02x\\x%02x' $((${#2} % 256)) $((${#2} / 256)))
    {
        printf '\x93NUMPY\x01\x00%b%s' "$length" "$2"
        head -c 64 /dev/zero
    } > "$1"
}
npy good.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (16,), }"
npy big.npy "{'descr': '>f4', 'fortran_order': False, 'shape': (16,), }"
npy object.npy "{'descr': '|O', 'fortran_order': False, 'shape': (8,), }"
npy struct.npy "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (16,), }"
npy complex.npy "{'descr': '<c8', 'fortran_order': False, 'shape': (8,), }"
npy longer.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (17,), }"
npy shorter.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (15,), }"
npy overflow.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }"
npy huge.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"
npy negative.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (-16,), }"
npy twice.npy "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (16,), }"
npy evil.npy "__import__('os').system('touch owned')"
printf '\x93NUMPX\x01\x00' > magic.npy
printf '\x93NUMPY\x09\x00\x76\x00{' > version.npy
printf '\x93NUMPY\x01\x00\x76\x00{' > header.npy
printf '\x93NUMPY\x02\x00\xff\xff\xff\x7f{' > claims.npy
: > empty.npy
head -c 100 x.npy > cut.npy
mkfifo fifo
for pair in "big:big-endian" "object:object arrays" "struct:structured" \
    "complex:dtype '<c8' is not supported" "longer:truncated: the shape needs 68 bytes of data, but only 64 follow" \
    "shorter:too long: the shape needs 60 bytes of data, but 64 follow the header" "overflow:the shape has more elements than 64 bits can count" \
    "huge:truncated" "negative:the shape has a negative dimension" "twice:malformed header: key 'descr' twice" \
    "evil:malformed header: not a dictionary" "magic:not a .npy file: it does not begin" "version:.npy format 9.0" "header:truncated header" \
    "claims:the length of the header is given as" "empty:not a .npy file: it is empty" "cut:truncated"; do
    file=${pair%%:*}.npy
    refuses "--in 0=$file: ${pair#*:}" "${run[@]}" --in "0=$file" "${out[@]}"
    [ "$file" = empty.npy ] || [ ! -e owned ] || fail "it evaluated the header"
done
case_name="a good header is not among them"
refuses "not a regular file (use - for a stream)" "${run[@]}" --in 0=fifo "${out[@]}"

# -- outputs ---------------------------------------------------------------------------------------
refuses "--out 1=no/o.npy:f32[16]: its folder cannot be opened: No such file" \
    "${run[@]}" --in 0=x.npy --out '1=no/o.npy:f32[16]'
refuses "--out 1=.:f32[16]: is a directory: name a file in it" \
    "${run[@]}" --in 0=x.npy --out '1=.:f32[16]'
refuses "writes the same file as --out 1=o.npy:f32[16]" \
    "${run[@]}" --in 0=x.npy --out '1=o.npy:f32[16]' --out '2=./o.npy:f32[16]'
# An output is no file that the run reads, whatever it is called.
ln -s x.npy soft.npy
ln x.npy hard.npy
mkdir -p below && ln -s ../x.npy below/far.npy
for name in x.npy ./x.npy soft.npy hard.npy below/far.npy "$PWD/x.npy"; do
    refuses "--out 1=$name:f32[16]: --in 0=x.npy reads that file: to replace it, use --inout" \
        "${run[@]}" --in 0=x.npy --out "1=$name:f32[16]"
done
cp x.npy y.npy
refuses "--inout 1=y.npy:soft.npy: --in 0=x.npy reads that file" \
    "${run[@]}" --in 0=x.npy --inout 1=y.npy:soft.npy
ln -s k.spv kernel
refuses "--out 1=kernel:f32[16]: the kernel is read from that file: name another one" \
    "${run[@]}" --in 0=x.npy --out '1=kernel:f32[16]'
refuses "--out xz=hard.npy: --in x=x.npy reads that file: only an output of that name may replace it" \
    eval 'xz = 2*x' --in x=x.npy --out xz=hard.npy
case_name="an output that is the file behind standard input"
fingerprint > .before
INPUT=x.npy cli_again "${run[@]}" --in 0=- --out '1=soft.npy:f32[16]'
expect_status 2
expect_stderr "--out 1=soft.npy:f32[16]: --in 0=- reads that file"
expect_untouched
# What is written is .npy, or .safetensors of one tensor, so no name may say that it is something else (which: cli_outname_test).
for name in z.npz z.JPEG d.ir/z.f32 z.npy.gz; do
    ending="outputs are .npy files, and a name that ends in .${name##*.} may be taken for another format: end it in .npy"
    refuses "--out z=$name: $ending" eval 'z = 2*x' --in x=x.npy --out "z=$name"
    refuses "--out 1=$name:f32[16]: $ending" "${run[@]}" --in 0=x.npy --out "1=$name:f32[16]"
    refuses "--out 1=$name:like:0: $ending" "${run[@]}" --in 0=x.npy --out "1=$name:like:0"
    refuses "--inout 0=x.npy:$name: $ending" "${run[@]}" --inout "0=x.npy:$name"
done
refuses "--out z=z.npz:name: outputs are .npy files, and a name that ends in .npz may" eval 'z = 2*x' --in x=x.npy --out z=z.npz:name
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    refuses "cannot be written: Permission denied" \
        "${run[@]}" --in 0=x.npy --out '1=locked/o.npy:f32[16]'
fi
case_name="an array larger than the machine"
cli "${run[@]}" --in 0=x.npy --out '1=o.npy:u8[70000000000000]'
[ "$status" -eq 2 ] || [ "$status" -eq 3 ] || fail "exit status"
expect_untouched

unset COLUMNS
# -- help ------------------------------------------------------------------------------------------
for command in run compile inspect eval batch judge chaos devices doctor completion version help; do
    case_name="$command --help"
    cli $command --help
    expect_status 0
    expect_stdout "Usage: bulkhead $command"
    expect_stdout "Examples:"
    expect_stdout "  bulkhead $command"
    if awk 'length > 80 { exit 1 }' .stdout; then passed=$((passed + 1)); else fail "a long line"; fi
    cp .stdout .help
    cli help $command
    cmp -s .stdout .help || fail "help $command differs"
    rm -f .help
done
# A command that fails says so with --json under one key, whatever else it prints.
fails_alike() { # CODE ARGUMENT...
    local code=$1
    shift
    case_name="one shape of failure: $1"
    cli "$@" --json
    expect_json ".error.code == \"$code\" and (.error.message | length) > 0
        and (.error | keys) == [\"code\", \"file\", \"line\", \"log\", \"message\", \"reason\", \"subject\"]"
    if [ "$status" -ne 0 ]; then passed=$((passed + 1)); else fail "it has not failed"; fi
}
echo '{"id":"a","kernel":"nowhere.spv","groups":1}' > a.jsonl
fails_alike LOAD_FAILED run nowhere.spv --groups 1
fails_alike LOAD_FAILED eval 'y = x' --in x=nowhere.npy --out y=y.npy
fails_alike LOAD_FAILED inspect nowhere.spv
fails_alike INVALID_ARGUMENT batch nowhere.jsonl
fails_alike INVALID_ARGUMENT batch a.jsonl
fails_alike INVALID_ARGUMENT batch --status nowhere
fails_alike LOAD_FAILED judge nowhere.json a.spv
fails_alike INVALID_ARGUMENT chaos --check nowhere.jsonl
SCRIPT_DEVICES=NO_DEVICE fails_alike NO_DEVICE devices
SCRIPT_DOCTOR=NO_DEVICE fails_alike NO_DEVICE doctor

case_name="help fits into a terminal, and into 80 columns without one"
cli help
if awk 'length > 80 { exit 1 }' .stdout; then passed=$((passed + 1)); else fail "a long line"; fi
script -qefc "stty cols 60; '$BULKHEAD' help; '$BULKHEAD' run --help" /dev/null < /dev/null | tr -d '\r' > .stdout
expect_stdout "Usage: bulkhead COMMAND"
# The tables of statuses and keys have narrow columns of their own.
if awk 'length > 60 { exit 1 }' .stdout; then passed=$((passed + 1)); else fail "a line is too long"; fi
# A command that is broken at the end of a line is the same command.
cli run --help
eval "set -- $(awk '/^Examples:/ { found = 1 } found && /mandelbrot/ { print; while (/\\$/) { getline; print } exit }' .stdout)"
if [ "$#" -eq 9 ]; then passed=$((passed + 1)); else fail "$# words: $*"; fi

case_name="an option of one letter has one dash, in usage lines, too"
cli help --markdown
expect_status 0
expect_stdout "    bulkhead compile SOURCE -o OUT.spv [OPTION]..."
if grep -E -- '(^|[^-])--[A-Za-z]([^A-Za-z-]|$)' .stdout; then fail "two dashes before one letter"; else passed=$((passed + 1)); fi
case_name="the manual page is sound roff"
cli help --man
expect_status 0
expect_stdout ".TH BULKHEAD 1"
expect_stdout ".SH BULKHEAD run"
case_name="version"
cli version
expect_stdout "bulkhead $VERSION"
cli --version
expect_stdout "bulkhead $VERSION"
cli version --json
expect_json ".version == \"$VERSION\""

finish
