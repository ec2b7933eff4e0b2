#!/usr/bin/env bash
# bulkhead run, inspect and compile with images and sources for CUDA, on the fake driver and the fake NVRTC:
# what runs, how a kernel's end is told, and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fake_cuda
fake_nvrtc

ptx "saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)" > saxpy.ptx
ptx trap hang "null_read(.param .u64 y)" > several.ptx
ptx "fill(.param .u64 y, .param .u32 value, .param .u32 n)" > fill.ptx
cp saxpy.ptx noname # the content decides
cp "$CUBINS/saxpy.cubin" saxpy.cubin
cp saxpy.cubin misnamed.comp
"$NPY" make x.npy 'f32[1000]' ramp 0 1
"$NPY" make y.npy 'f32[1000]' ramp 1 0
"$NPY" make want.npy 'f32[1000]' ramp 1 2
saxpy=(--entry saxpy --in 0=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:1000)
cuda=(--device cuda --block 64 --grid 16)

# -- what runs ---------------------------------------------------------------------------------------
for kernel in saxpy.ptx saxpy.cubin noname misnamed.comp; do
    case_name="saxpy of $kernel"
    cli run $kernel "${saxpy[@]}" "${cuda[@]}" --json
    expect_status 0
    expect_empty .stderr
    expect_object '.status == "READY" and .submissions == 1 and .error == null'
    if cmp -s o.npy want.npy; then passed=$((passed + 1)); else fail "wrong results"; fi
    rm -f o.npy
done
case_name="standard input, three dimensions"
INPUT=saxpy.ptx cli run - "${saxpy[@]}" --device cuda:0 --block 32,1,1 --groups 32,1 --shared 64
expect_status 0
if cmp -s o.npy want.npy; then passed=$((passed + 1)); else fail "wrong results"; fi
rm -f o.npy
# An image does not say what it writes: what it leaves of an output is what was there before, zeros.
case_name="an output of which the kernel writes a part"
cli run fill.ptx --entry fill --out 0=part.npy:u32[64] --push u32:7,3 "${cuda[@]}"
expect_status 0
"$NPY" make want.npy 'u32[64]' ramp 0 0
for at in 0 4 8; do printf '\7' | dd of=want.npy bs=1 seek=$(($(stat -c %s want.npy) - 256 + at)) conv=notrunc status=none; done
if cmp -s part.npy want.npy; then passed=$((passed + 1)); else fail "wrong results"; fi
rm -f part.npy

# -- how it ends otherwise -----------------------------------------------------------------------------
# A file can have several kernels: the entry point says which of them it was.
while IFS='|' read -r name entry code message arguments; do
    case_name=$name
    # shellcheck disable=SC2086
    cli run several.ptx --entry $entry "${cuda[@]}" $arguments --json
    expect_status 1
    expect_stderr "bulkhead run: $entry is poisoned: "
    expect_stderr "$message"
    expect_object ".status == \"POISONED\" and .code == \"$code\" and .kernel == \"$entry\""
    expect_untouched
done << 'END'
a trap|trap|DEVICE_FAULT|CUDA_ERROR|
a wild address|null_read|DEVICE_FAULT|CUDA_ERROR_ILLEGAL_ADDRESS|--out 0=o.npy:u32:1
a kernel that does not end|hang|DEADLINE||--deadline 100ms
END

# -- what is refused ---------------------------------------------------------------------------------
bad() { # REASON ARGUMENT…: instead of the last of saxpy's
    local reason=$1
    shift
    refuses "$reason" run saxpy.ptx "$@"
}
bad "saxpy.ptx: --block X[,Y[,Z]] is missing" "${saxpy[@]}" --device cuda --grid 1
bad "saxpy.ptx: --entry is missing" "${cuda[@]}"
bad "saxpy.ptx: --device cuda is missing: it is for CUDA" "${saxpy[@]}" --block 1 --grid 1
bad "--trusted is not for CUDA" "${saxpy[@]}" "${cuda[@]}" --trusted
bad "--spec is not for CUDA" "${saxpy[@]}" "${cuda[@]}" --spec 0=u32:1
bad "of a CUDA kernel have no names" "${saxpy[@]:0:6}" "${cuda[@]}" --push a=2
bad "--in x=x.npy: the parameters of a CUDA kernel have no names" --entry saxpy "${cuda[@]}" --in x=x.npy
bad "-D and -I are for sources" "${saxpy[@]}" "${cuda[@]}" -D A=1
bad "--block 0: there must be at least one thread in each dimension" "${saxpy[@]}" --device cuda --grid 1 --block 0
bad "'--groups' is given twice" "${saxpy[@]}" "${cuda[@]}" --groups 1
bad 'has no entry point "other"' --entry other "${saxpy[@]:2}" "${cuda[@]}"
bad "--push: 4 bytes given, these parameters are not bound and take 8: 2 (4 bytes), 3 (4 bytes)" \
    "${saxpy[@]:0:6}" "${cuda[@]}" --push f32:2
bad "--push: 8 bytes given, these parameters are not bound and take 16: 1 (8 bytes), 2 (4 bytes), 3 (4 bytes)" \
    --entry saxpy --in 0=x.npy --push f32:2,u32:1000 "${cuda[@]}"
bad "--in 2=x.npy: parameter 2 has 4 bytes and is no pointer" "${saxpy[@]}" "${cuda[@]}" --in 2=x.npy
bad "--in 1.0=x.npy: the kernel has no parameter 1.0; it has 4, from 0 on" "${saxpy[@]}" "${cuda[@]}" --in 1.0=x.npy
bad "threads of a block" "${saxpy[@]}" --device cuda --grid 1 --block 4096
bad "lavapipe:0 cannot run it: it is for CUDA, use --device cuda" "${saxpy[@]}" "${cuda[@]:2}" --device lavapipe:0
refuses "cuda:0 cannot run it: a CUDA device needs CUDA C++ (.cu), PTX, a cubin or a fatbin" \
    run "$SHADERS/saxpy.spv" --device cuda --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:1000
refuses "--block is for CUDA kernels" run "$SHADERS/saxpy.spv" --block 1 --groups 1
refuses "--shared is for CUDA kernels" run "$SHADERS/saxpy.spv" --shared 0 --groups 1

# -- files that are odd, and launches that the device does not make ------------------------------------
# What the driver knows itself (vprintf, __assertfail) a kernel may call; what launches kernels it may not.
with_extern() { # ENTRY DECLARATION
    ptx "$1" | sed "s/^\.visible/.extern .func $2;\n&/"
}
with_extern "fill(.param .u64 y, .param .u32 value, .param .u32 n)" \
    '(.param .b32 r) vprintf (.param .b64 f, .param .b64 v)' > prints.ptx
with_extern assert '__assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s)' > asserts.ptx
with_extern trap '(.param .b32 r) cudaLaunchDeviceV2 (.param .b64 p, .param .b64 s)' > launches.ptx
echo "no PTX at all" > text.ptx
head -c 40 several.ptx > cut.ptx
head -c 3000 saxpy.cubin > cut.cubin
printf '\120\355\125\272\1\0\20\0\377\0\0\0\0\0\0\0' > cut.fatbin
cp "$NPY" host.cubin # an ELF file of this machine's
: > empty.ptx
while IFS='|' read -r expected message arguments; do
    case_name="run $arguments"
    # shellcheck disable=SC2086
    cli run $arguments --device cuda
    expect_status "$expected"
    if [ -z "$message" ]; then expect_empty .stderr; else expect_stderr "bulkhead run: $message"; fi
    [ "$expected" = 0 ] || expect_untouched
done << 'END'
0||prints.ptx --entry fill --out 0=o.npy:u32[4] --push u32:7,4 --grid 1 --block 64
1|assert is poisoned: |asserts.ptx --entry assert --grid 1 --block 64
2|launches.ptx: kernel "trap": its PTX is not valid (CUDA_ERROR_INVALID_PTX): ptxas fatal   : Unresolved extern function 'cudaLaunchDeviceV2'|launches.ptx --entry trap --grid 1 --block 1
2|text.ptx: no image for CUDA: neither PTX, a cubin nor a fatbin, but text that begins|text.ptx --entry trap --grid 1 --block 1
2|empty.ptx: no image for CUDA|empty.ptx --entry trap --grid 1 --block 1
2|cut.ptx: kernel "trap": its PTX is not valid|cut.ptx --entry trap --grid 1 --block 1
2|cut.cubin: kernel "saxpy": its ELF file is cut short|cut.cubin --entry saxpy --grid 1 --block 1
2|cut.fatbin: kernel "trap": its fat binary is cut short|cut.fatbin --entry trap --grid 1 --block 1
2|host.cubin: kernel "trap": it is no image that this driver reads|host.cubin --entry trap --grid 1 --block 1
2|--groups 0: there must be at least one group in each dimension|several.ptx --entry trap --grid 0 --block 1
2|--groups: 65536 workgroups in y, the device allows 65535|several.ptx --entry trap --grid 1,65536 --block 1
2|several.ptx: threads of a block: 2048, the device allows 1024|several.ptx --entry trap --grid 1 --block 64,32
2|several.ptx: threads of a block in z: 65, the device allows 64|several.ptx --entry trap --grid 1 --block 1,1,65
2|several.ptx: bytes of shared memory: 232449, the device allows 232448|several.ptx --entry trap --grid 1 --block 1 --shared 232449
2|--shared 1k: '1k' is not a number from 0 to 4294967295|several.ptx --entry trap --grid 1 --block 1 --shared 1k
2|--push: the kernel has no parameters that are not bound|several.ptx --entry trap --grid 1 --block 1 --push u32:1
2|--in 0=x.npy: the kernel has no parameters|several.ptx --entry trap --grid 1 --block 1 --in 0=x.npy
END
refuses "SOURCE saxpy.cubin: it is compiled already" compile saxpy.cubin -o o.spv

# -- sources -----------------------------------------------------------------------------------------
cat > saxpy.cu << 'END'
#include "factor.cuh"
#pragma needs -DTWO=2
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {}
END
mkdir include
: > include/factor.cuh
source=(-I include -D TWO=2 --in 0=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:1000)
cp saxpy.cu text # the content decides
"$NPY" make want.npy 'f32[1000]' ramp 1 2
for kernel in saxpy.cu text "- --language cuda" "saxpy.cu --entry saxpy"; do
    case_name="saxpy of $kernel"
    # shellcheck disable=SC2086
    INPUT=saxpy.cu cli run $kernel "${source[@]}" "${cuda[@]}"
    expect_status 0
    expect_empty .stderr
    if cmp -s o.npy want.npy; then passed=$((passed + 1)); else fail "wrong results"; fi
    rm -f o.npy
done
case_name="compile"
cli compile saxpy.cu -I include -D TWO=2 -o made.ptx "--compile-options=--std=c++20 --gpu-architecture=compute_90"
expect_status 0
expect_empty .stderr
cli run made.ptx "${saxpy[@]}" "${cuda[@]}"
expect_status 0
if cmp -s o.npy want.npy && grep -q "target sm_90" made.ptx; then passed=$((passed + 1)); else fail "wrong results"; fi
rm -f o.npy
case_name="inspect a source"
cli inspect saxpy.cu -I include -D TWO=2 --json
expect_json '.name == "saxpy" and .kind == "PTX" and .bytes > 60'
case_name="an error in a source"
printf 'int x;\n#error so it is\n' > typo.cu
cli run typo.cu "${cuda[@]}" --json
expect_status 2
expect_stderr "typo.cu:2: error: #error directive: so it is"
expect_object '.code == "COMPILE_FAILED" and .file == "typo.cu" and .line == 2 and (.log | contains("so it is"))'
case_name="a file that was not given"
cli run saxpy.cu "${source[@]:2}" "${cuda[@]}" --json
expect_status 2
expect_object '.code == "COMPILE_FAILED" and .file == "saxpy.cu" and .line == 1'
expect_stderr 'could not open source file "factor.cuh"'
printf '#pragma crash\n' > crash.cu
case_name="a compiler that crashes"
cli run crash.cu "${cuda[@]}"
expect_status 1
expect_stderr "crash.cu: the compiler crashed (SIGSEGV)"
printf '#pragma hang\n' > hang.cu
# The deadline is that of NVRTC's loading, too.
case_name="a compiler that does not end"
cli run hang.cu "${cuda[@]}" --compile-deadline "$((4 * slowness))s"
expect_status 1
expect_stderr "hang.cu: the compile deadline of $((4 * slowness))"
expect_stderr "passed before the compiler ended; --compile-deadline raises it"
echo '__global__ void a() {}' > two.cu
echo '__global__ void b() {}' >> two.cu
for pair in "two.cu:there are 2 kernels, choose the entry point: _Z1av, _Z1bv" "two.cu --entry c:there is no kernel 'c'"; do
    case_name=$pair
    # shellcheck disable=SC2086
    cli run ${pair%%:*} "${cuda[@]}"
    expect_status 2
    expect_stderr "two.cu: error: ${pair#*:}"
done
refuses "saxpy.cu: --block X[,Y[,Z]] is missing" run saxpy.cu "${source[@]}" --device cuda --grid 1
refuses "saxpy.cu: --device cuda is missing: it is for CUDA, and the default device is not" run saxpy.cu "${source[@]}" --block 1 --grid 1
refuses "lavapipe:0 cannot run it: it is for CUDA" run saxpy.cu "${source[@]}" "${cuda[@]:2}" --device lavapipe:0
printf '#version 450\nvoid main() {}\n' > k.comp
refuses "--compile-options are NVRTC's, for CUDA C++" compile k.comp -o o.spv --compile-options=--std=c++20
refuses "outputs are .ptx files" compile saxpy.cu -o o.spv
case_name="an expression on a CUDA device"
cli eval 'y = 2*x' --in x=x.npy --out y=e.npy --device cuda --json
expect_status 2
expect_object '.reason == "NEEDS_VULKAN"'
expect_stderr "use a stream on a Vulkan device, as templates and expressions need it"
export BULKHEAD_NVRTC=/nowhere/libnvrtc.so
case_name="without NVRTC"
cli run saxpy.cu "${source[@]}" "${cuda[@]}" --json
expect_status 3
expect_stderr "NVRTC does not load (/nowhere/libnvrtc.so"
expect_stderr "install NVIDIA's package cuda-nvrtc (Debian: libnvrtc11.2"
expect_object '.code == "UNSUPPORTED" and .reason == "NO_NVRTC"'
expect_untouched

# -- what it is --------------------------------------------------------------------------------------
printf '\120\355\125\272\1\0\20\0' > k.bin
while read -r file kind; do
    case_name="inspect $file"
    cli inspect $file
    expect_status 0
    expect_stdout "$kind for CUDA, $(stat -c %s $file) bytes"
    cli inspect $file --json
    expect_json ". == {\"name\": \"${file%.*}\", \"kind\": \"$kind\", \"bytes\": $(stat -c %s $file)}"
done << 'END'
saxpy.ptx PTX
noname PTX
saxpy.cubin cubin
END
case_name="inspect a fatbin"
cli inspect k.bin
expect_stdout "fatbin for CUDA, 8 bytes"
refuses "--guarded: k.bin is for CUDA, whose kernels have no guard" inspect k.bin --guarded
finish
