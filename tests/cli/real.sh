#!/usr/bin/env bash
# The program on the real library, workers and driver: every kernel that ships computes what is
# computed here; what is hostile is poisoned; what is bad is refused. Nothing is ever left running.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

check() { # KERNEL ARGUMENT...
    if "$NPY" check "$@" > .check; then
        passed=$((passed + 1))
    else
        fail "$(cat .check)"
    fi
    rm -f .check
}

ready() { # what a run that went well looks like
    expect_status 0
    expect_empty .stdout
    expect_empty .stderr
}

# -- kernels that work -----------------------------------------------------------------------------
"$NPY" make x.npy 'f32[100000]' random 1 -10 10
"$NPY" make y.npy 'f32[100000]' random 2 -10 10
case_name=saxpy
cli run "$SHADERS/saxpy.spv" --groups 391 --in 0=x.npy --inout 1=y.npy:out.npy --push f32:2.5,u32:100000
ready
check saxpy 2.5 x.npy y.npy out.npy
case_name="saxpy over y itself, three times"
cp y.npy again.npy
cli run "$SHADERS/saxpy.spv" --groups 391 --in 0=x.npy --inout 1=again.npy --push f32:2.5,u32:100000 \
    --repeat 3 --time --json
expect_status 0
expect_json '.times.device.min_ms > 0 and .times.device.warm_up_ms <= .times.host.warm_up_ms
    and .times.device.p99_ms <= .times.host.p99_ms and .submissions == 3 and .kernel == "saxpy" and (.kernel_hash | test("^[0-9a-f]{64}$"))
    and .worker_pid > 1 and .executed == "yes"'
check saxpy 7.5 x.npy y.npy again.npy

case_name=square
cli run "$SHADERS/square.spv" --groups 1563 --in 0=x.npy --out '1=out.npy:f32[100000]'
ready
check square x.npy out.npy
case_name="square from a pipe to a pipe"
timeout $((60 * slowness)) "$BULKHEAD" run "$SHADERS/square.spv" --groups 1563 --in 0=- --out '1=-:f32[100000]' \
    < <(cat x.npy) 2> .stderr | cat > piped.npy
check square x.npy piped.npy

case_name=add
"$NPY" make a.npy 'i32[1000]' random 3 -2000000000 2000000000
"$NPY" make b.npy 'i32[1000]' random 4 -100000 100000
cli run "$SHADERS/add.spv" --groups 16 --in 0=a.npy --in 1=b.npy --out '2=out.npy:i32[1000]'
ready
check add a.npy b.npy out.npy

case_name="matmul, with every tile"
"$NPY" make a.npy 'f32[50,70]' random 5 -1 1
"$NPY" make b.npy 'f32[70,90]' random 6 -1 1
for tile in 4 8 16; do
    cli run "$SHADERS/matmul.spv" --groups $(((90 + tile - 1) / tile)),$(((50 + tile - 1) / tile)) \
        --in 0=a.npy --in 1=b.npy --out '2=out.npy:f32[50,90]' --push u32:50,90,70 \
        --spec "0=u32:$tile"
    ready
    check matmul a.npy b.npy out.npy
done
case_name="matmul, with the tile that it has by itself"
cli run "$SHADERS/matmul.spv" --groups 6,4 --in 0=a.npy --in 1=b.npy --out '2=out.npy:f32[50,90]' \
    --push u32:50,90,70
ready
check matmul a.npy b.npy out.npy

# -- arrays of buffers -----------------------------------------------------------------------------
case_name="an array of buffers"
cat > rows.comp << 'END'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; } rows[2];
layout(set = 0, binding = 1) buffer Y { float y[]; } squares[2];
void main() {
    uint i = gl_GlobalInvocationID.x, which = gl_WorkGroupID.x % 2;
    if (i < 100000) {
        squares[which].y[i] = rows[which].x[i] * rows[which].x[i];
        squares[1 - which].y[i] = rows[1 - which].x[i] * rows[1 - which].x[i];
    }
}
END
rows=(run rows.comp --groups 1563 --in '0[1]=y.npy' --out '1[1]=y2.npy:f32[100000]')
cli "${rows[@]}" --in '0[0]=x.npy' --out '1=x2.npy:f32[100000]'
ready
check square x.npy x2.npy
check square y.npy y2.npy
rm x2.npy y2.npy
refuses "the kernel binds 0.0[0] ('rows', storage buffer, read), which is missing: give it with --in, --out or --inout" \
    "${rows[@]}" --out '1[0]=x2.npy:f32[100000]'
refuses "0.0[0] ('rows', storage buffer, read), which is missing: give it with --in, --out or --inout; 0.5 is no binding of this kernel" \
    "${rows[@]}" --in 5=x.npy --out '1[0]=x2.npy:f32[100000]'
refuses "--in 0[2]=x.npy: the kernel has no binding 0.0[2]; it has 0.0[] ('rows', 2 storage buffers, read)" \
    "${rows[@]}" --in '0[0]=x.npy' --in '0[2]=x.npy' --out '1[0]=x2.npy:f32[100000]'
refuses "binding 0.0[1] is given twice" "${rows[@]}" --in '0[1]=x.npy'
refuses "--out 1[0]=x2.npy:i32[100000]: the output is i32, the kernel declares f32[] at binding 0.1[0] ('squares')" \
    "${rows[@]}" --in '0[0]=x.npy' --out '1[0]=x2.npy:i32[100000]'
refuses "--in 0[=x.npy: '0[' is not a binding" "${rows[@]}" --in '0[=x.npy'

# -- types -----------------------------------------------------------------------------------------
"$NPY" make wide.npy 'f64[100000]' ramp 0 1
"$NPY" make bytes.npy 'u8[400000]' ramp 0 0
square=(run "$SHADERS/square.spv" --groups 1563)
refuses "--in 0=wide.npy: the array is f64, the kernel declares f32[] at binding 0.0" \
    "${square[@]}" --in 0=wide.npy --out '1=out.npy:f32[100000]'
refuses "convert the array, or bind the bytes as they are with --reinterpret" \
    "${square[@]}" --in 0=bytes.npy --out '1=out.npy:f32[100000]'
refuses "--out 1=out.npy:i32[100000]: the output is i32, the kernel declares f32[] at binding 0.1" \
    "${square[@]}" --in 0=x.npy --out '1=out.npy:i32[100000]'
cp wide.npy again.npy
refuses "--inout 1=again.npy: the array is f64, the kernel declares f32[] at binding 0.1" \
    run "$SHADERS/saxpy.spv" --groups 391 --in 0=x.npy --inout 1=again.npy --push f32:2.5,u32:100000
case_name="standard input is compared, too"
fingerprint > .before
INPUT=wide.npy cli_again "${square[@]}" --in 0=- --out '1=out.npy:f32[100000]'
expect_status 2
expect_stderr "--in 0=-: the array is f64, the kernel declares f32[] at binding 0.0"
expect_untouched
"$NPY" make signed.npy 'i32[50000]' ramp 0 1
"$NPY" make zero.npy 'u32[256]' ramp 0 0
refuses "--in 0=signed.npy: the array is i32, the kernel declares u32[] at binding 0.0" \
    run "$SHADERS/histogram.spv" --groups 196 --in 0=signed.npy --inout 1=zero.npy:out.npy
case_name="bytes as they are"
"$NPY" make half.npy 'u8[400000]' ramp 0 0
cli "${square[@]}" --in 0=half.npy --out '1=out.npy:u32[100000]' --reinterpret
ready
"$NPY" make want.npy 'u32[100000]' ramp 0 0
cmp -s out.npy want.npy || fail "not 100,000 zeros"
case_name="a binding of several types takes each of them, one of a struct takes any"
cat > shared.comp << 'END'
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 0) readonly buffer B { uint b[]; };
layout(set = 0, binding = 1) buffer C { uint n; float c[]; };
void main() { c[0] = a[0]; n = b[1]; }
END
for type in f32 u32; do
    "$NPY" make s.npy "${type}[4]" ramp 0 1
    for out in f32 i64 u8; do
        cli run shared.comp --groups 1 --in 0=s.npy --out "1=out.npy:$out[8]"
        ready
    done
done
"$NPY" make s.npy 'i32[4]' ramp 0 1
refuses "the array is i32, the kernel declares f32[] | u32[] at binding 0.0" \
    run shared.comp --groups 1 --in 0=s.npy --out '1=out.npy:f32[8]'
case_name="a tensor's type counts, and bf16 goes as 16 bits"
header='{"w":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}}   '
while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
{ printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 24 /dev/zero; } > m.safetensors
refuses "--in 0=m.safetensors:w: the array is f64, the kernel declares f32[] at binding 0.0" \
    "${square[@]}" --in 0=m.safetensors:w --out '1=out.npy:f32[2]'
refuses "--in 0=m.safetensors:b: the array is bf16, the kernel declares f32[] at binding 0.0" \
    "${square[@]}" --in 0=m.safetensors:b --out '1=out.npy:f32[2]'
cat > widen.comp << 'END'
#version 450
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { uint16_t a[]; };
layout(set = 0, binding = 1) writeonly buffer B { float b[]; };
void main() { b[gl_WorkGroupID.x] = uintBitsToFloat(uint(a[gl_WorkGroupID.x]) << 16); }
END
cli run widen.comp --groups 4 --in 0=m.safetensors:b --out '1=out.npy:f32[4]'
ready

case_name=reduce_sum
cli run "$SHADERS/reduce_sum.spv" --groups 391 --in 0=x.npy --out '1=out.npy:f32[391]'
ready
check reduce_sum x.npy out.npy

case_name=histogram
"$NPY" make v.npy 'u32[50000]' random 7 0 1000
"$NPY" make zero.npy 'u32[256]' ramp 0 0
cli run "$SHADERS/histogram.spv" --groups 196 --in 0=v.npy --inout 1=zero.npy:out.npy
ready
check histogram v.npy out.npy

case_name=mandelbrot
cli run "$SHADERS/mandelbrot.spv" --groups 16,16 --out '0=out.npy:u32[128,128]' --push u32:128,128,100
ready
check mandelbrot 100 out.npy

case_name=blur
"$NPY" make image.npy 'f32[20,300]' random 8 0 255
cli run "$SHADERS/blur.spv" --groups 20 --in 0=image.npy --out '1=out.npy:f32[20,300]' --push u32:300,4
ready
check blur 4 image.npy out.npy

case_name=empty
cli run "$SHADERS/empty.spv" --groups 3,2,2
ready
case_name="a kernel from standard input"
INPUT=$SHADERS/empty.spv cli run - --groups 1 --json
expect_status 0
expect_json '.kernel == "stdin"'
case_name="the example of README.md"
timeout $((60 * slowness)) "$EXAMPLE" > .stdout 2> .stderr
status=$?
expect_status 0
expect_stdout "y[1023] = 3069"

# -- hostile kernels: poisoned, nothing written ----------------------------------------------------
# Where the hardware or the driver checks shared-memory indexes (lavapipe from Mesa 26 on) the crash does
# not happen: the job is READY. Where the driver is known to crash, it must.
"$NPY" make d.npy 'u32[64]' ramp 0 1
case_name="a crash, were it not for the guard"
cp d.npy kept.npy
cli run "$SHADERS/crash_shared.spv" --groups 16 --inout 0=d.npy --json
expect_status 0
expect_json '.status == "READY"'
cp kept.npy d.npy
crashes=$("$BULKHEAD" devices --json | jq -r '.devices[0]
    | if (.driver_info | test("^Mesa (22|23|24|25)[.]")) then "yes" else "no" end')
case_name="a crash"
cli run "$SHADERS/crash_shared.spv" --groups 16 --inout 0=d.npy --trusted --json
if [ "$crashes" = yes ]; then
  expect_status 1
  expect_json '.status == "POISONED" and .code == "WORKER_SIGNAL" and .signal == 11
      and .kernel == "crash_shared" and .executed == "unknown" and .worker_pid > 1
      and .origin == .event and (.message | test("SIGSEGV"))'
  expect_stderr "crash_shared is poisoned"
  expect_untouched
else
  expect_status 0
  expect_json '.status == "READY"'
  cp kept.npy d.npy
fi
rm kept.npy
case_name="a hang"
cli run "$SHADERS/hang.spv" --groups 4096 --inout 0=d.npy --deadline $((300 * slowness))ms --grace $((20 * slowness))s --json
expect_status 1
expect_json '.code == "DEADLINE" and .elapsed_ms >= 300 and .signal == null'
expect_untouched
case_name="a hang that is trusted"
cli run "$SHADERS/hang.spv" --groups 65535,64 --inout 0=d.npy --deadline $((300 * slowness))ms --trusted --json
expect_status 1
expect_json '.code == "DEADLINE" and .signal == 9'
expect_untouched
case_name="a memory bomb"
refuses "the guard allows" \
    run "$SHADERS/memory_bomb.spv" --groups 1 --inout 0=d.npy --memory-limit 256M
cli run "$SHADERS/memory_bomb.spv" --groups 1 --inout 0=d.npy --memory-limit 256M --trusted --json
expect_status 1
expect_stderr "its memory limit of 256 MiB"
expect_object '.status == "POISONED" and .code == "COMPILE_FAILED" and .executed == "no"'
expect_untouched
case_name="the next run is fine"
cli run "$SHADERS/square.spv" --groups 1563 --in 0=x.npy --out '1=out.npy:f32[100000]'
ready
check square x.npy out.npy

# -- a tensor of a .safetensors, and what is no tensor or no file of ours --------------------------
header='{"w":{"dtype":"F32","shape":[100,1000],"data_offsets":[0,400000]}}'
{
    # shellcheck disable=SC2059 # the length is the format
    printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
    tail -c 400000 x.npy
} > m.safetensors
cli run "$SHADERS/square.spv" --groups 1563 --in 0=m.safetensors:w --out '1=out.npy:f32[100000]'
expect_status 0
check square x.npy out.npy
rm -f out.npy
head -c 1000 m.safetensors > cut.safetensors
head -c 1000 x.npy > cut.npy
mkfifo fifo
out=(--groups 1 --out '1=new.npy:f32[100000]')
for pair in "m.safetensors:v=it has no tensor 'v'; it has 1: w (LOAD_FAILED)" \
    "cut.safetensors:w=its data_offsets, 0 and 400000, are not a range of the" \
    "cut.npy=truncated: the shape needs 400000 bytes" "fifo=it is a FIFO, not a regular file" \
    "x.npy:w=No such file or directory (to bind a tensor use --in with a file name that ends" \
    ".=it is a directory" "/proc/self/maps=its file system generates the content on reading" \
    "/dev/zero=it is a device" "missing=No such file or directory (LOAD_FAILED)"; do
    refuses "--in 0=${pair%%=*}: ${pair#*=}" run "$SHADERS/square.spv" "${out[@]}" --in "0=${pair%%=*}"
done
rm -f m.safetensors cut.safetensors cut.npy fifo

# -- bad kernels: refused, nothing written ---------------------------------------------------------
spv=(--groups 1 --in "0=x.npy" --out "1=new.npy:f32[100000]")
head -c 1000 "$SHADERS/square.spv" > cut.spv
head -c 1001 "$SHADERS/square.spv" > odd.spv
head -c 3 "$SHADERS/square.spv" > three.spv
head -c 4096 /dev/urandom > random.spv
{ head -c 20 "$SHADERS/square.spv"; head -c 2000 /dev/urandom; } > body.spv
{ head -c 20 "$SHADERS/square.spv"; head -c 2000 /dev/zero; } > zeros.spv
: > none.spv
printf '#version 450\nvoid main() {}\n' > text.spv
for file in cut odd three random body zeros none text; do
    refuses "$file.spv" run $file.spv "${spv[@]}"
done
refuses "square.spv" run "$SHADERS/square.spv" "${spv[@]}" --entry nothing
refuses "the kernel binds 0.1" run "$SHADERS/square.spv" --groups 1 --in 0=x.npy
refuses "the kernel has no binding 0.2" run "$SHADERS/square.spv" "${spv[@]}" --in 2=x.npy
refuses "--push: the kernel has no push constants" run "$SHADERS/square.spv" "${spv[@]}" --push u32:1
refuses "--push is missing: the kernel has 8 bytes" \
    run "$SHADERS/saxpy.spv" --groups 1 --in 0=x.npy --inout 1=y.npy
refuses "the kernel does not write 0.0" \
    run "$SHADERS/square.spv" --groups 1 --inout 0=x.npy --out '1=new.npy:f32[100000]'
refuses "bulkhead run: --groups: " run "$SHADERS/square.spv" --groups 1,4000000000 "${spv[@]:2}"
refuses_json NO_DEVICE "no device matches 'no such thing'" \
    run "$SHADERS/square.spv" "${spv[@]}" --device "no such thing"
refuses_json BINDING_MISMATCH "the kernel has no binding 0.2" run "$SHADERS/square.spv" "${spv[@]}" --in 2=x.npy
refuses_json LOAD_FAILED "No such file" run "$SHADERS/square.spv" "${spv[@]:0:2}" --in 0=none.npy
refuses_json INVALID_ARGUMENT "odd.spv" run odd.spv "${spv[@]}"
selectors=$("$BULKHEAD" devices --json | jq -r '[.devices[].selector] | join(" ")')
echo "{\"id\": 1, \"kernel\": \"$SHADERS/empty.spv\", \"groups\": 1}" > one.jsonl
for subcommand in "run $SHADERS/square.spv ${spv[*]}" "eval y=x*2 --in x=x.npy --out y=y.npy" \
    "batch one.jsonl" "chaos --count 1"; do
    case_name="no such device: the environment's fault: $subcommand"
    # shellcheck disable=SC2086 # words
    cli $subcommand --device 'no such thing'
    expect_status 3
    expect_stderr "no device matches 'no such thing'; the devices are: $selectors; see bulkhead devices"
    expect_untouched
done
rm one.jsonl
case_name="a device by selector and by a part of its name"
case_name="the description of a device fits"
longest() { awk '{ if (length > n) n = length } END { print n }' "$1"; }
for width in 80 60 300; do # without a terminal, on one, and as it is asked for
    case $width in
    80) (unset COLUMNS; cli devices) ;;
    60) (unset COLUMNS; script -qec "stty cols 60; '$BULKHEAD' devices" /dev/null < /dev/null | tr -d '\r' > .stdout) ;;
    300) COLUMNS=300 cli devices ;;
    esac
    expect_stdout "  features  "
    if [ "$(longest .stdout)" -le "$width" ]; then passed=$((passed + 1)); else fail "a line is longer than $width"; fi
done
if [ "$(longest .stdout)" -gt 80 ]; then passed=$((passed + 1)); else fail "it is wrapped"; fi
cli devices --json
expect_status 0
selector=$(jq -r '.devices[0].selector' .stdout)
name=$(jq -r '.devices[0].name' .stdout)
for device in "$selector" "${name:0:8}"; do
    cli run "$SHADERS/empty.spv" --groups 1 --device "$device"
    ready
done

refuses "--memory-limit" run "$SHADERS/square.spv" "${spv[@]}" --memory-limit 1K
refuses "--memory-limit" run "$SHADERS/square.spv" "${spv[@]}" --memory-limit 1K --device "$selector"

# -- closed standard streams -----------------------------------------------------------------------
case_name="standard streams that are closed"
status=
for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- >&- 2>&-'; do
    rm -f out.npy
    eval "timeout $((60 * slowness)) \"\$BULKHEAD\" run \"\$SHADERS/square.spv\" --groups 1563 --in 0=x.npy \
        --out '1=out.npy:f32[100000]' $closed"
    status=$?
    expect_status 0
    check square x.npy out.npy
done
timeout $((60 * slowness)) "$BULKHEAD" devices >&- 2> .stderr
status=$?
expect_status 3
expect_stderr "cannot write to standard output"

# -- the worker's executable -----------------------------------------------------------------------
case_name="BULKHEAD_WORKER names a file that is not there"
for subcommand in "run $SHADERS/saxpy.spv --groups 1" "inspect $SHADERS/saxpy.spv" doctor; do
    # shellcheck disable=SC2086 # words
    BULKHEAD_WORKER=$folder/none cli $subcommand
    expect_status 3
    expect_stderr "the worker executable $folder/none cannot be run: No such file or directory; to correct it: set BULKHEAD_WORKER"
    expect_stderr "or unset it (UNAVAILABLE)"
    if grep -q "reset the stream" .stderr; then fail "what cannot help"; else passed=$((passed + 1)); fi
done

# -- the end of the program ------------------------------------------------------------------------
# SIGINT arrives while the kernel runs: the worker's clock tells that it has begun.
case_name="SIGINT while a kernel hangs"
fingerprint > .before
"$LEAVES_NONE" env --default-signal=INT "$BULKHEAD" run "$SHADERS/hang.spv" --groups 65535,64 \
    --inout 0=d.npy --deadline $((60 * slowness))s > .stdout 2> .stderr &
wrapper=$!
deadline=$((SECONDS + 20 * slowness))
until worker=$(pgrep -P "$(pgrep -P $wrapper)" 2> /dev/null) || [ $SECONDS -ge $deadline ]; do :; done
kill -s INT "$(pgrep -P $wrapper)"
wait $wrapper
status=$?
expect_status 130
expect_stderr "cancelled by SIGINT"
expect_untouched

case_name="SIGKILL of the program leaves no process and no file"
"$LEAVES_NONE" "$BULKHEAD" run "$SHADERS/hang.spv" --groups 65535,64 --inout 0=d.npy --deadline $((60 * slowness))s \
    > .stdout 2> .stderr &
wrapper=$!
deadline=$((SECONDS + 20 * slowness))
until worker=$(pgrep -P "$(pgrep -P $wrapper)" 2> /dev/null) || [ $SECONDS -ge $deadline ]; do :; done
[ -n "$worker" ] || fail "no worker was started"
kill -s KILL "$(pgrep -P $wrapper)"
wait $wrapper
status=$?
expect_status 137
expect_untouched

finish
