#!/usr/bin/env bash
# Jobs with images for CUDA, on the fake driver: what runs, how a job's end is told and recorded, what
# makes a kernel another one, and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

fake_cuda
fake_nvrtc

ptx "saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)" trap hang \
    "fill(.param .u64 y, .param .u32 value, .param .u32 n)" > several.ptx
cp several.ptx noname # the content decides
echo 'extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {}' > saxpy.cu
"$NPY" make x.npy 'f32[1000]' ramp 0 1
"$NPY" make y.npy 'f32[1000]' ramp 1 0
"$NPY" make want.npy 'f32[1000]' ramp 1 2

job() { # ID ENTRY MORE
    printf '{"id":"%s","kernel":"%s","entry":"%s","device":"cuda",%s}\n' "$1" "${kernel:-several.ptx}" "$2" "$3"
}
saxpy() { # ID LAUNCH [INPUT]
    job "$1" saxpy "$2,\"in\":{\"0\":\"${3:-x.npy}\"},\"inout\":{\"1\":\"y.npy:$1.npy\"},\"push\":[2.0,1000]"
}

# -- what runs, and how it ends ------------------------------------------------------------------------
# A kernel is made once, for all blocks: with another job's, a part would not be computed.
case_name="jobs of one kernel have blocks of their own"
{
    saxpy wide '"grid":32,"block":32'
    saxpy high '"groups":[16],"block":[64,1,1],"shared":64'
    kernel=noname saxpy flat '"grid":"2,1","block":"1000"'
    kernel=saxpy.cu saxpy source '"grid":16,"block":64'
    job part fill '"grid":1,"block":4,"out":{"0":"part.npy:u32[4]"},"push":"u32:7,3"'
    job trapped trap '"grid":1,"block":1,"retries":0'
    job endless hang '"grid":1,"block":1,"retries":0,"deadline":"200ms"'
} > jobs.jsonl
cli batch jobs.jsonl --isolate job --json
expect_status 1
expect_sql "SELECT id, state FROM jobs ORDER BY id" "endless|quarantined
flat|done
high|done
part|done
source|done
trapped|quarantined
wide|done"
for id in wide high flat source; do
    if cmp -s "$id.npy" want.npy; then passed=$((passed + 1)); else fail "$id is wrong"; fi
done
# An image does not say what it writes: what is left of an output is zeros.
if [ "$("$NPY" show part.npy)" = "u32[4] 7 7 7 0" ]; then passed=$((passed + 1)); else fail "part is wrong"; fi

case_name="a job is told by its kernel's entry point"
expect_json '.failures[] | select(.id == "trapped") | .code == "DEVICE_FAULT" and .kernel == "several.ptx" and
    (.message | contains("in kernel \"trap\""))'
expect_json '.failures[] | select(.id == "endless") | .code == "DEADLINE"'
expect_sql "SELECT DISTINCT kernel_name FROM attempt ORDER BY kernel_name" "fill
hang
saxpy
trap"
cli batch --status jobs.jsonl.state
expect_stdout " several.ptx:hang "
# Identity is image and entry point, whatever the file's name and the block (K1).
expect_sql "SELECT count(DISTINCT hex(kernel_hash)) FROM attempt" 5

case_name="a line in another form is the same job"
{
    saxpy wide '"groups":[32],"block":[32,1,1],"shared":0'
    tail -n +2 jobs.jsonl
} > again.jsonl
mv again.jsonl jobs.jsonl
cli batch jobs.jsonl --resume --json
expect_status 1
expect_json '.done == 5 and .attempts == 7'

case_name="another block is another job"
sed 's/"block":\[32,1,1\]/"block":[31,1,1]/' jobs.jsonl > again.jsonl
cli batch again.jsonl --state jobs.jsonl.state --resume
expect_status 2
expect_stderr 'again.jsonl:1: '

case_name="an image that has changed"
echo "// new" >> several.ptx
cli batch jobs.jsonl --resume
expect_status 2
expect_stderr 'several.ptx has changed since 3 jobs read it (for example "wide")'

# -- what is refused before anything starts --------------------------------------------------------------
while IFS='|' read -r words line; do
    case_name=$words
    printf '{"id":"a","kernel":"several.ptx",%s}\n' "$line" > bad.jsonl
    rm -rf bad.jsonl.state
    cli batch bad.jsonl
    expect_status 2
    expect_stderr "bad.jsonl:1: kernel several.ptx: $words"
    [ ! -e bad.jsonl.state ] || fail "it has a state"
done << 'END'
"device" cuda is missing: it is for CUDA, and the default device is not|"entry":"trap","grid":1,"block":1
"entry" is missing: an image for CUDA can have several kernels|"device":"cuda","grid":1,"block":1
"block" X[,Y[,Z]] is missing: a CUDA kernel does not say how many threads|"device":"cuda","entry":"trap","grid":1
"trusted" is not for CUDA kernels|"device":"cuda","entry":"trap","grid":1,"block":1,"trusted":true
"spec" is not for CUDA kernels|"device":"cuda","entry":"trap","grid":1,"block":1,"spec":{"0":"u32:1"}
"push": the parameters of a CUDA kernel have no names|"device":"cuda","entry":"trap","grid":1,"block":1,"push":{"a":1}
in x=x.npy: the parameters of a CUDA kernel have no names|"device":"cuda","entry":"saxpy","grid":1,"block":1,"in":{"x":"x.npy"}
END
case_name="--dry-run reads images"
cli batch jobs.jsonl --dry-run --state fresh.state
expect_status 0
expect_stdout " several.ptx:trap "

# -- what is found when a job's turn comes -----------------------------------------------------------------
case_name="a job that cannot run fails, and others run"
spirv="{\"id\":\"ID\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":16,\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"ID.npy:f32[1000]\"}MORE}"
{
    saxpy good '"grid":16,"block":64'
    kernel=noname job block trap '"grid":1'
    job other nowhere '"grid":1,"block":1'
    saxpy large '"grid":1,"block":4096'
    saxpy vulkan '"grid":16,"block":64' | sed 's/"cuda"/"lavapipe:0"/'
    job few saxpy '"grid":1,"block":64,"in":{"0":"x.npy"},"push":[2.0,1000]'
    job more saxpy '"grid":1,"block":64,"in":{"0":"x.npy"},"inout":{"1":"y.npy:more.npy"},"push":[2.0,1000,1]'
    printf '%s\n' "$spirv" | sed 's/ID/spirv/g;s/MORE/,"device":"cuda"/'
    printf '%s\n' "$spirv" | sed 's/ID/shared/g;s/MORE/,"shared":4/'
} > odd.jsonl
cli batch odd.jsonl --json
expect_status 1
expect_json '.done == 1 and .failed == 8'
told() { # ID CODE WORDS
    expect_json --arg id "$1" --arg code "$2" --arg words "$3" \
        '.failures[] | select(.id == $id) | .code == $code and (.message | contains($words))'
}
told block INVALID_ARGUMENT 'noname: "block" X[,Y[,Z]] is missing'
told other INVALID_KERNEL 'has no entry point "nowhere"'
told large LIMIT_EXCEEDED 'threads'
told vulkan INVALID_ARGUMENT 'lavapipe:0 cannot run it: it is for CUDA, use "device": "cuda"'
told few BINDING_MISMATCH 'kernel "saxpy" takes 16 bytes'
told more BINDING_MISMATCH 'kernel "saxpy" takes 8 bytes'
told spirv INVALID_ARGUMENT 'cuda cannot run it: a CUDA device needs CUDA C++ (.cu), PTX, a cubin or a fatbin'
told shared INVALID_ARGUMENT '"shared" is for CUDA kernels'
finish
