#!/usr/bin/env bash
# bulkhead inspect: what it says of a module, of GLSL, of the guarded one, and of what is none.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ready() {
    expect_status 0
    expect_empty .stderr
    expect_untouched
}

# -- SPIR-V ----------------------------------------------------------------------------------------
case_name="matmul, for a person"
cli inspect "$SHADERS/matmul.spv"
ready
expect_stdout "workgroup      16 x 16 x 1, 2048 bytes of shared memory"
expect_stdout "0.2    storage write      f32[]        C"
expect_stdout "0      u32  = 16         TILE"
expect_stdout "capabilities   Shader"
case_name="matmul, specialized"
cli inspect "$SHADERS/matmul.spv" --spec 0=u32:8 --json
ready
expect_json '.local_size == [8, 8, 1] and .shared_bytes == 512 and .constants[0].default == 16'
case_name="saxpy, as JSON: all that is documented"
cli inspect "$SHADERS/saxpy.spv" --json
ready
expect_json 'keys == ["bindings", "capabilities", "constants", "entry", "entry_points", "guard", "hash",
    "local_size", "name", "push", "shared_bytes", "source_entry", "spirv_version"]'
expect_json '.name == "saxpy" and .entry == "main" and .entry_points == ["main"] and .guard == null
    and (.hash | test("^[0-9a-f]{64}$")) and .spirv_version == "1.3" and .push.size == 8
    and .push.members == [{"offset": 0, "type": "f32", "name": "a"},
                          {"offset": 4, "type": "u32", "name": "n"}]
    and (.bindings | map(.access)) == ["read", "read_write"]
    and .bindings[0] == {"set": 0, "binding": 0, "count": 1, "kind": "storage", "access": "read",
                         "type": "f32[]", "name": "X"}'
hash=$(jq -r .hash .stdout)
"$NPY" make x.npy 'f32[256]' ramp 0 1
cp x.npy y.npy
cli run "$SHADERS/saxpy.spv" --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:256 --json
expect_json ".kernel_hash == \"$hash\""
case_name="standard input"
INPUT="$SHADERS/saxpy.spv" cli inspect - --json
ready
expect_json ".name == \"stdin\" and .hash == \"$hash\""

# -- GLSL ------------------------------------------------------------------------------------------
cat > arrays.comp << 'END'
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint N = 2;
layout(set = 0, binding = 1) buffer D { uint n; float v[]; } data[N];
layout(set = 0, binding = 12) buffer E { float v[]; } many[16];
void main() { data[1].v[0] = many[3].v[0]; }
END
case_name="arrays of buffers"
cli inspect arrays.comp
ready
expect_stdout "0.1[2]   storage write      {u32, f32[]} data"
expect_stdout "0.12[16] storage read       f32[]        many"
cli inspect arrays.comp --spec 0=u32:7 --json
ready
expect_json '[.bindings[] | [.binding, .count, .type]] == [[1, 7, "{u32, f32[]}"], [12, 16, "f32[]"]]'
cat > k.comp << 'END'
#version 450
#include "common.h"
layout(local_size_x_id = 7) in;
layout(constant_id = 1) const bool on = true;
layout(constant_id = 2) const float f = -0.25;
layout(constant_id = 3) const int i = -3;
layout(set = 2, binding = 5) buffer B { uint n; vec4 v[]; } b;
void main() { if (on) b.v[0] *= f * float(i + int(b.n)) * float(WIDTH); }
END
echo '#define WIDTH (W + 1)' > common.h
case_name="GLSL"
cli inspect k.comp -I common.h -D W=3 --json
ready
expect_json '.constants == [{"id": 1, "type": "bool", "default": true, "name": "on"},
    {"id": 2, "type": "f32", "default": -0.25, "name": "f"},
    {"id": 3, "type": "i32", "default": -3, "name": "i"},
    {"id": 7, "type": "u32", "default": 1, "name": "local_size_x"}]'
expect_json '.bindings == [{"set": 2, "binding": 5, "count": 1, "kind": "storage", "access": "read_write",
    "type": "{u32, f32x4[]}", "name": "b"}]'
case_name="a binding that variables of several types share"
cat > shared.comp << 'END'
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 0) buffer B { uvec4 b[]; };
layout(set = 0, binding = 0) buffer C { float c[]; };
layout(set = 0, binding = 1) buffer D { uint n; float d[]; };
void main() { a[0] = c[1] + float(b[2].x) + d[n]; }
END
cli inspect shared.comp --json
ready
expect_json '[.bindings[].type] == ["f32[] | u32x4[]", "{u32, f32[]}"]'
case_name="GLSL that does not compile"
cli inspect k.comp
expect_status 2
expect_stderr "k.comp:2: error: "
expect_stderr "it does not compile (COMPILE_FAILED)"

# -- guarded ---------------------------------------------------------------------------------------
for kernel in saxpy matmul hang blur reduce_sum; do
    case_name="$kernel, guarded"
    cli inspect "$SHADERS/$kernel.spv" --guarded
    ready
    expect_stdout "OpEntryPoint GLCompute"
    # What is printed is a module.
    if spirv-as --target-env vulkan1.1 -o guarded.spv .stdout && spirv-val --target-env vulkan1.2 guarded.spv; then
        passed=$((passed + 1))
    else
        fail "it does not assemble, or is not valid"
    fi
    rm -f guarded.spv
done
# Where the words are (docs/decisions/0023-drivers-limits.md): sets of a kernel, and what is said.
kernel_of_sets() {
    echo '#version 450'
    echo 'layout(local_size_x = 1) in;'
    for ((i = 0; i < $1; i++)); do
        echo "layout(set = $i, binding = 0) buffer B$i { uint v; } b$i;"
    done
    echo 'void main() {'
    for ((i = 0; i < $1; i++)); do echo "b$i.v = 1u;"; done
    echo '}'
}
for expected in 7:7:0 8:7:1 9:9:0 32:31:1; do
    IFS=: read -r sets set binding <<< "$expected"
    kernel_of_sets "$sets" > sets.comp
    case_name="$sets sets, guarded"
    cli inspect sets.comp --guarded
    ready
    expect_stdout "guarded: the guard's buffer is set $set, binding $binding"
    expect_stdout "OpDecorate %bulkhead_guard DescriptorSet $set"
    expect_stdout "OpDecorate %bulkhead_guard Binding $binding"
    [ "$sets" != 8 ] || expect_stdout "(on a device with more than 8 descriptor sets: set 8, binding 0)"
    cli inspect sets.comp --guarded --json
    ready
    expect_json ".guard.set == $set and .guard.binding == $binding"
done
rm -f sets.comp

case_name="a hang, guarded"
cli inspect "$SHADERS/hang.spv" --guarded --json
ready
expect_json '.guard.loops >= 1 and .guard.lowered + .guard.polled >= 1
    and .guard.loops == .guard.left_alone + .guard.covered + .guard.lowered + .guard.polled
    and (.guard | keys) == ["binding", "clamps", "covered", "disassembly", "left_alone", "loops", "lowered",
        "polled", "set", "zeroed"]
    and (.guard.disassembly | test("Volatile"))'

# -- several entry points --------------------------------------------------------------------------
cat > two.spvasm << 'END'
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %first "first"
OpEntryPoint GLCompute %second "second"
OpExecutionMode %first LocalSize 1 1 1
OpExecutionMode %second LocalSize 2 1 1
%void = OpTypeVoid
%type = OpTypeFunction %void
%first = OpFunction %void None %type
%a = OpLabel
OpReturn
OpFunctionEnd
%second = OpFunction %void None %type
%b = OpLabel
OpReturn
OpFunctionEnd
END
spirv-as --target-env vulkan1.1 -o two.spv two.spvasm
refuses 'there is no entry point "main"; the module has "first", "second"; --entry NAME chooses' inspect two.spv
refuses 'there is no entry point "main"; the module has "first", "second"; --entry NAME chooses' \
    run two.spv --groups 1
case_name="an entry point that was chosen"
cli inspect two.spv --entry second --json
ready
expect_json '.entry == "second" and .entry_points == ["first", "second"] and .local_size == [2, 1, 1]'
expect_json '.source_entry == null'
cli run two.spv --entry first --groups 1
expect_status 0
cat > two.hlsl << 'END'
[numthreads(3, 1, 1)] void first() {}
[numthreads(4, 1, 1)] void second() {}
END
case_name="a function of HLSL that was chosen: main in the module, by its name for run"
cli inspect two.hlsl --entry second
ready
expect_stdout "entry          main (in the source: second)"
cli inspect two.hlsl --entry second --json
ready
expect_json '.entry == "main" and .entry_points == ["main"] and .source_entry == "second"
    and .local_size == [4, 1, 1]'
cli run two.hlsl --entry "$(jq -r .source_entry .stdout)" --groups 1
expect_status 0

# -- what is no kernel -----------------------------------------------------------------------------
head -c 1000 "$SHADERS/matmul.spv" > cut.spv
head -c 1001 "$SHADERS/matmul.spv" > odd.spv
{ head -c 20 "$SHADERS/square.spv"; head -c 2000 /dev/urandom; } > body.spv
: > none.spv
for file in cut odd body none; do
    refuses "$file.spv" inspect $file.spv
done
refuses "specialization constant 0 has 4 bytes in the module; 8 were given" \
    inspect "$SHADERS/matmul.spv" --spec 0=u64:8
refuses "-D and -I are for sources" inspect "$SHADERS/matmul.spv" -D A

# -- files of arrays -------------------------------------------------------------------------------
# safetensors FILE HEADER BYTES: the length in 8 bytes, the header, zeros.
safetensors() {
    local length=${#2} bytes
    bytes=$(printf '\\%03o' $((length % 256)) $((length / 256 % 256)) $((length / 65536)))
    printf '%b' "${bytes//\\/\\0}\\0\\0\\0\\0\\0" > "$1"
    printf '%s' "$2" >> "$1"
    head -c "$3" /dev/zero >> "$1"
}
tensors='{"embed.weight":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},'
tensors+='"b":{"dtype":"BF16","shape":[2],"data_offsets":[48,52]},'
tensors+='"\u001b[31mred\u200b":{"dtype":"F4_X","shape":[3],"data_offsets":[52,54]}}'
safetensors m.safetensors "$tensors" 54
case_name="tensors of a .safetensors, as docs/buffers.md shows them"
cli inspect m.safetensors
ready
cat > expected <<'END'
m.safetensors
  3 tensors, 54 bytes of data
  type  shape  bytes  offset  name
  f32   [4,3]     48     206  embed.weight
  bf16  [2]        4     254  b
  F4_X  [3]        2     258  ?[31mred?
END
if diff expected .stdout; then passed=$((passed + 1)); else fail "another list"; fi
case_name="tensors as JSON"
cli inspect m.safetensors --json
ready
expect_json 'keys == ["file", "format", "tensors"] and .file == "m.safetensors"
    and .format == "safetensors" and (.tensors | map(.type)) == ["f32", "bf16", "F4_X"]
    and .tensors[0] == {"name": "embed.weight", "type": "f32", "shape": [4, 3], "bytes": 48, "offset": 206}
    and .tensors[2].name == "?[31mred?"'
case_name="a .npy has one, without a name"
cli inspect x.npy --json
ready
expect_json '.format == "npy" and .tensors == [{"name": null, "type": "f32", "shape": [256], "bytes": 1024,
    "offset": 128}]'
cli inspect x.npy
ready
expect_stdout "f32   [256]   1024     128"
case_name="more than the first look has room for, each on one whole row"
many=
for ((i = 0; i < 300; i++)); do
    many+="${many:+,}\"$(printf 'block.%0180d' $i)\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[$i,$((i + 1))]}"
done
safetensors many.safetensors "{$many}" 300
cli inspect many.safetensors
ready
if [ "$(wc -l < .stdout)" -eq 303 ]; then passed=$((passed + 1)); else fail "not 303 lines"; fi
expect_stdout "block.$(printf '%0180d' 299)"
safetensors bad.safetensors '{"t":{"dtype":"F32","shape":[4,3],"data_offsets":[0,40]}}' 40
refuses "bad.safetensors: tensor 't': its dtype and shape need 48 bytes, but its data_offsets, 0 and 40, hold 40 (LOAD_FAILED)" \
    inspect bad.safetensors
refuses "nowhere.npy: No such file or directory" inspect nowhere.npy
refuses "--entry is for kernels; x.npy is a file of arrays" inspect x.npy --entry main

# -- --json of what fails --------------------------------------------------------------------------
expect_error() { # CODE MESSAGE
    expect_json --arg message "$2" "keys == [\"error\"] and .error.code == \"$1\"
        and (.error.message | contains(\$message))
        and (.error | keys == [\"code\", \"file\", \"line\", \"log\", \"message\", \"reason\", \"subject\"])"
}
case_name="a file that is missing, as JSON"
cli inspect nowhere.spv --json
expect_status 2
expect_error LOAD_FAILED "nowhere.spv: No such file or directory"
cli inspect nowhere.npy --json
expect_status 2
expect_error LOAD_FAILED "nowhere.npy: No such file or directory"
case_name="a language that nothing here compiles, as JSON"
echo '#include <hip/hip_runtime.h>' > kernel.hip
cli inspect kernel.hip --json
expect_status 2
expect_error INVALID_KERNEL "FILE kernel.hip: it is HIP"
case_name="a source that does not compile, as JSON"
printf '#version 450\nvoid main( {}\n' > broken.comp
cli inspect broken.comp --json
expect_status 2
expect_error COMPILE_FAILED "broken.comp"
expect_json '.error.file == "broken.comp" and .error.line == 2 and (.error.log | contains("syntax error"))'
case_name="devices and doctor without a worker, as JSON"
for command in devices doctor; do
    BULKHEAD_WORKER=/nowhere cli $command --json
    expect_status 3
    expect_error UNAVAILABLE "/nowhere"
done
case_name="a command line that cannot be parsed has no object"
refuses "unknown option '--jason'" inspect k.spv --json --jason

# -- a reader that goes away -----------------------------------------------------------------------
mkfifo pipe
exec 7<> pipe 8> pipe 7<&- # descriptor 8 writes to a pipe that nobody reads
to_nobody() { # ACTION-signal ARGUMENT...
    local action=$1
    shift
    timeout $((60 * slowness)) env "--$action=PIPE" "$BULKHEAD" "$@" >&8 2> .stderr
    status=$?
    : > .stdout
}
for ((i = 0; i < 2; i++)); do
    case_name="a success whose reader goes away ends by SIGPIPE, in silence"
    arguments=(version)
    [ $i -eq 0 ] || arguments=(inspect "$SHADERS/saxpy.spv" --guarded) # more than one buffer
    to_nobody default-signal "${arguments[@]}"
    expect_status $((128 + 13))
    expect_empty .stderr
    case_name="where the parent ignores SIGPIPE it is an error"
    to_nobody ignore-signal "${arguments[@]}"
    expect_status 3
    expect_stderr "cannot write to standard output: Broken pipe"
done
case_name="a failure keeps its status"
to_nobody default-signal inspect nowhere.spv --json
expect_status 2
expect_stderr "nowhere.spv: No such file or directory"
if [ "$(wc -l < .stderr)" -eq 1 ]; then passed=$((passed + 1)); else fail "not one line"; fi
exec 8>&-
rm pipe

finish
