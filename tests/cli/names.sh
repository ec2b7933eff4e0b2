#!/usr/bin/env bash
# Bindings and push constants by name, and outputs that are like an input: of bulkhead run, and of
# the jobs of a batch.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$NPY" make x.npy 'f32[256]' ramp 0 1
cp x.npy y.npy
saxpy=(run "$SHADERS/saxpy.spv" --groups 1)

right() { # FACTOR OUT
    expect_status 0
    expect_empty .stderr
    if "$NPY" check saxpy "$1" x.npy y.npy "$2" > .check; then passed=$((passed + 1)); else fail "$(cat .check)"; fi
    rm -f .check "$2"
}

# -- bindings and push constants -------------------------------------------------------------------
case_name="by name"
cli "${saxpy[@]}" --in X=x.npy --inout Y=y.npy:o.npy --push a=2,n=256
right 2 o.npy
case_name="some by name, in another order, apart, with a type"
cli "${saxpy[@]}" --inout 1=y.npy:o.npy --in 'X[0]=x.npy' --push n=256 --push a=f32:3
right 3 o.npy
case_name="types need not be compared"
cli "${saxpy[@]}" --in X=x.npy --inout Y=y.npy:o.npy --push n=256,a=2 --reinterpret
right 2 o.npy
bound=("${saxpy[@]}" --in X=x.npy --inout Y=y.npy:o.npy)
refuses "--in Z=x.npy: the kernel has no binding 'Z'; it has 'X' (0.0), 'Y' (0.1)" \
    "${saxpy[@]}" --in Z=x.npy --inout Y=y.npy:o.npy --push a=2,n=256
refuses "it has 'X' (0.0), 'Y' (0.1); did you mean 'X'?" \
    "${saxpy[@]}" --in x=x.npy --inout Y=y.npy:o.npy --push a=2,n=256
refuses "--in X=x.npy: binding 0.0 is given twice: as 0=y.npy, too" "${bound[@]}" --in 0=y.npy --push a=2,n=256
refuses "--in X[1]=x.npy: 'X' has 1 buffer: [1] does not exist" "${bound[@]}" --in 'X[1]=x.npy' --push a=2,n=256
refuses "--push a=2,m=256: the kernel has no push constant 'm'; it has 'a' (f32), 'n' (u32)" "${bound[@]}" --push a=2,m=256
refuses "did you mean 'n'?" "${bound[@]}" --push a=2,N=256
refuses "--push: 'n' (u32) is missing" "${bound[@]}" --push a=2
# All that is missing is named at once.
missing="the kernel binds 0.0 ('X', storage buffer, read), 0.1 ('Y', storage buffer, read and written), which are missing: give them with --in, --out or --inout"
refuses "$missing; --push is missing, too: 8 bytes" "${saxpy[@]}"
refuses "$missing; --push is missing, too: 8 bytes; 0.5 is no binding of this kernel" "${saxpy[@]}" --in 5=x.npy
refuses "$missing; 0.5 is no binding of this kernel" "${saxpy[@]}" --in 5=x.npy --push a=2 --reinterpret
refuses "$missing" "${saxpy[@]}" --push f32:2,u32:256 --reinterpret
refuses "the kernel binds 0.1 ('Y', storage buffer, read and written), which is missing: give it with" "${saxpy[@]}" --in X=x.npy --push a=2
refuses "--push a=2: 'a' is given twice" "${bound[@]}" --push n=256,a=2 --push a=2
refuses "--push a=2,3,n=256: 'a' is a single f32, but several values are given" "${bound[@]}" --push a=2,3,n=256
refuses "--push a=u32:2,n=256: 'a' is f32, not u32" "${bound[@]}" --push a=u32:2,n=256
refuses "--push a=2,n=-1: 'n' is u32: '-1' is out of the range of u32" "${bound[@]}" --push a=2,n=-1
refuses_json BINDING_MISMATCH "the kernel has no binding 'Z'" "${saxpy[@]}" --in Z=x.npy --push a=2,n=256
refuses "--in X=x.npy: the kernel has no bindings" run "$SHADERS/empty.spv" --groups 1 --in X=x.npy
refuses "--push a=1: the kernel has no push constants" run "$SHADERS/empty.spv" --groups 1 --push a=1

# -- in order --------------------------------------------------------------------------------------
case_name="in order, with the members' types"
cli "${bound[@]}" --push :2,256
right 2 o.npy
case_name="the sign of an integer is no matter"
cli "${bound[@]}" --push f32:2,i32:256
right 2 o.npy
refuses "--push i32:2,u32:256: 'a' is f32, but the value is i32:2; --reinterpret takes its bytes as they are" \
    "${bound[@]}" --push i32:2,u32:256
refuses "'n' is u32, but the value is f32:256" "${bound[@]}" --push f32:2,256
refuses "'n' is u32, but the value is i32:-1" "${bound[@]}" --push f32:2,i32:-1
refuses "'n' is u32: '-1' is out of the range of u32" "${bound[@]}" --push :2,-1
refuses "'a' is f32, but the value is f64:2" "${bound[@]}" --push f64:2
refuses "--push is missing: the kernel has 8 bytes of push constants, 'a' (f32), 'n' (u32)" "${bound[@]}"
case_name="in order, as bytes"
cli "${bound[@]}" --push u32:1073741824,u32:256 --reinterpret
right 2 o.npy

cat > vectors.comp <<'END'
#version 450
layout(local_size_x = 1) in;
layout(binding = 3) buffer Out { float v[]; } result;
layout(push_constant) uniform Push { vec3 scale; int shift; bool on; mat2 m; } push;
void main() {
    for (int i = 0; i < 3; i++)
        result.v[i] = push.on ? push.scale[i] + float(push.shift) : push.m[0][0];
}
END
sed 's/ mat2 m;//; s/push.m.0..0./0/' vectors.comp > vectors_only.comp
case_name="the variable's name, a vector, a bool"
cli run vectors_only.comp --groups 1 --out result=o.npy:f32:3 --push shift=-1,scale=2,4,8,on=true
expect_status 0
printf '\0\0\200\77\0\0\100\100\0\0\340\100' > wanted # 1, 3, 7
if tail -c 12 o.npy | cmp - wanted; then passed=$((passed + 1)); else fail "other numbers"; fi
rm -f o.npy
case_name="in order, of a vector: where no member lies anything goes"
cli run vectors_only.comp --groups 1 --out result=o.npy:f32:3 --push :2,4,8,-1,1
expect_status 0
if tail -c 12 o.npy | cmp - wanted; then passed=$((passed + 1)); else fail "other numbers"; fi
rm -f o.npy
refuses "'scale' is f32x3, but the value is i32:4" run vectors_only.comp --groups 1 \
    --out result=o.npy:f32:3 --push f32:2,i32:4,f32:8,i32:-1,bool:1
cli run vectors_only.comp --groups 1 --out result=o.npy:f32:3 --push f32:2,4,8,i32:-1,bool:true
expect_status 0
rm -f o.npy
case_name="in order a matrix is not looked at"
cli run vectors.comp --groups 1 --out result=o.npy:f32:3 --push :2,4,8,-1,1,u32:0,0,0,0,0
expect_status 0
rm -f o.npy
refuses "'scale' is f32x3: 2 values given, it has 3" run vectors_only.comp --groups 1 --out result=o.npy:f32:3 \
    --push shift=1,scale=2,4,on=1
refuses "'scale' is f32x3, and is given more than 3 values" run vectors_only.comp --groups 1 \
    --out result=o.npy:f32:3 --push shift=1,scale=2,4,8,16,on=1
refuses "'on' is u32: 'yes' is neither a number nor true or false" run vectors_only.comp \
    --groups 1 --out result=o.npy:f32:3 --push shift=1,scale=2,4,8,on=yes
refuses "'shift' is i32: '1.5' is not an i32" run vectors_only.comp --groups 1 --out result=o.npy:f32:3 \
    --push shift=1.5,scale=2,4,8,on=1
# Members of structs, arrays and matrices, each where its decorations put it: std140 has 16 bytes for
# each element of an array and column of a matrix.
cat > parts.comp <<'END'
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { float v[]; } result;
struct Light { vec2 at; float power; };
layout(push_constant, LAYOUT) uniform Push {
    Light light;
    Light lights[2];
    float list[3];
    mat2 many[1];
} push;
int n = 0;
void put(float x) { result.v[n++] = x; }
void main() {
    put(push.light.at.x); put(push.light.at.y); put(push.light.power);
    for (int i = 0; i < 2; i++) { put(push.lights[i].at.x); put(push.lights[i].at.y); put(push.lights[i].power); }
    for (int i = 0; i < 3; i++) put(push.list[i]);
    for (int i = 0; i < 4; i++) put(push.many[0][i / 2][i % 2]);
}
END
cat > columns.comp <<'END'
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { float v[]; } result;
layout(push_constant, LAYOUT) uniform Push {
    mat2x3 m;
    layout(row_major) mat2x3 rows;
    ivec2 pair[2];
} push;
void main() {
    for (int i = 0; i < 6; i++) result.v[i] = push.m[i / 3][i % 3];
    for (int i = 0; i < 6; i++) result.v[6 + i] = push.rows[i / 3][i % 3];
    for (int i = 0; i < 4; i++) result.v[12 + i] = float(push.pair[i / 2][i % 2]);
}
END
"$NPY" make counted.npy 'f32[16]' ramp 1 1
counted() { # FILE: has 1, 2, ... 16
    expect_status 0
    if cmp -s counted.npy "$1"; then passed=$((passed + 1)); else fail "other numbers"; fi
    rm -f "$1"
}
for layout in std430 std140; do
    parts=(run parts.comp --groups 1 --out 0=o.npy:f32:16 -D "LAYOUT=$layout")
    columns=(run columns.comp --groups 1 --out 0=o.npy:f32:16 -D "LAYOUT=$layout")
    lights=(--push 'light.at=1,2,light.power=3,lights[0].at=4,5,lights[0].power=6,lights[1].at=7,8')
    case_name="parts of structs and arrays, $layout"
    cli "${parts[@]}" "${lights[@]}" --push 'list=10,11,12,lights[1].power=f32:9,many[0]=13,14,15,16'
    counted o.npy
    case_name="elements one by one, $layout"
    cli "${parts[@]}" --push 'list[2]=12,list[0]=10,list[1]=11,many[0]=13,14,15,16' "${lights[@]}" \
        --push 'lights[1].power=9'
    counted o.npy
    case_name="matrices by columns and by rows, arrays of vectors, $layout"
    cli "${columns[@]}" --push m=1,2,3,4,5,6,rows=7,8,9,10,11,12,pair=13,14,15,16
    counted o.npy
    case_name="columns one by one, $layout"
    cli "${columns[@]}" --push 'm[1]=4,5,6,m[0]=1,2,3,rows[1]=10,11,12,rows[0]=7,8,9' \
        --push 'pair[1]=15,16,pair[0]=13,14'
    counted o.npy
done
refuses "'lights[1].power' (f32), 'many[0]' (f32x2x2) are missing" "${parts[@]}" "${lights[@]}" --push list=1,2,3
refuses "'lights[1].power' is f32: 'x' is not an f32" "${parts[@]}" --push 'lights[1].power=x'
refuses "the kernel has no push constant 'lights[1].pover'" "${parts[@]}" --push 'lights[1].pover=9'
refuses "did you mean 'lights[1].power'?" "${parts[@]}" --push 'lights[1].pover=9'
refuses "'light.power' is a single f32: [1] does not exist" "${parts[@]}" --push 'light.power[1]=9'
refuses "'list' is f32[3]: [3] does not exist" "${parts[@]}" --push 'list[3]=9'
refuses "'list' is f32[3]: 2 values given, it has 3" "${parts[@]}" "${lights[@]}" \
    --push 'lights[1].power=9,list[0]=1,list[2]=3,many[0]=1,2,3,4'
refuses "'list[1]' is given twice" "${parts[@]}" --push 'list=1,2,3,list[1]=4'
refuses "'list' is f32[3], and one of it is given more than 1 value" "${parts[@]}" --push 'list[1]=4,5'
refuses "'m' is f32x3x2, and is given more than 6 values" "${columns[@]}" --push 'm=1,2,3,4,5,6,7'
case_name="parts in a job"
{
    echo '{"id": "p", "kernel": "parts.comp", "D": {"LAYOUT": "std140"}, "groups": 1, "out": {"0": "p.npy:f32:16"}, "push": {"light.at": [1, 2], "light.power": 3, "lights[0].at": [4, 5], "lights[0].power": 6, "lights[1].at": [7, 8], "lights[1].power": 9, "list": [10, 11, 12], "many[0]": [[13, 14], [15, 16]]}}'
    echo '{"id": "c", "kernel": "columns.comp", "D": {"LAYOUT": "std140"}, "groups": 1, "out": {"0": "c.npy:f32:16"}, "push": {"m": [[1, 2, 3], [4, 5, 6]], "rows": [7, 8, 9, 10, 11, 12], "pair[0]": [13, 14], "pair[1]": [15, 16]}}'
} > parts.jsonl
cli batch parts.jsonl
counted p.npy
counted c.npy
rm -rf parts.jsonl parts.jsonl.state

refuses "the kernel has no binding 'Out'; it has 'result' (0.3)" run vectors.comp --groups 1 --out Out=o.npy:f32:3

case_name="a module that was stripped has no names"
spirv-opt --strip-debug "$SHADERS/saxpy.spv" -o stripped.spv || fail "spirv-opt"
cli run stripped.spv --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:256
right 2 o.npy
refuses "the push constant at byte 0 is f32, but the value is u32:2" \
    run stripped.spv --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push u32:2,256
refuses "has no names (they were stripped from it): write the number of the binding; it has 0.0, 0.1" \
    run stripped.spv --groups 1 --in X=x.npy --inout 1=y.npy:o.npy --push f32:2,u32:256
refuses "has no names for its push constants (they were stripped from it): give the values in order; they are f32, u32" \
    run stripped.spv --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push a=2,n=256
case_name="a name that two bindings have"
spirv-dis "$SHADERS/saxpy.spv" | sed 's/^\( *OpName %[^ ]* \)"[XY]"/\1"twin"/' > twins.spvasm
spirv-as --target-env vulkan1.1 -o twins.spv twins.spvasm || fail "spirv-as"
refuses "--in twin=x.npy: 'twin' is ambiguous: 0.0 and 0.1 are both called that; write the number" \
    run twins.spv --groups 1 --in twin=x.npy --inout 1=y.npy:o.npy --push a=2,n=256
cli run twins.spv --groups 1 --in 0=x.npy --inout 1=y.npy:o.npy --push a=2,n=256
right 2 o.npy

# -- like ------------------------------------------------------------------------------------------
"$NPY" make plane.npy 'f32[8,32]' ramp 0 1
square() { # INPUT OUTPUT: and what the output then is
    cli run "$SHADERS/square.spv" --groups 4 --in "$1" --out "$2"
    expect_status 0
    cli inspect o.npy --json
    expect_json ".tensors[0].type == \"f32\" and .tensors[0].shape == $3"
    rm -f o.npy
}
case_name="like an input"
square 0=plane.npy 1=o.npy:like:0 '[8, 32]'
square X=x.npy '1=o.npy:like X' '[256]'
for name in like:x ns::x like; do
    case_name="like an input whose name is $name"
    spirv-dis "$SHADERS/square.spv" | sed "s/^\( *OpName %[^ ]* \)\"X\"/\1\"$name\"/" > colons.spvasm
    spirv-as --target-env vulkan1.1 -o colons.spv colons.spvasm || fail "spirv-as"
    for out in "o.npy:like:$name" "o.npy:like $name"; do
        cli run colons.spv --groups 4 --in "$name=plane.npy" --out "Y=$out"
        expect_status 0
        cli inspect o.npy --json
        expect_json '.tensors[0].shape == [8, 32]'
        rm -f o.npy
    done
done
case_name="like standard input"
INPUT=plane.npy cli run "$SHADERS/square.spv" --groups 4 --in 0=- --out Y=o.npy:like:0
expect_status 0
cli inspect o.npy --json
expect_json '.tensors[0].shape == [8, 32]'
rm -f o.npy
printf '\100\0\0\0\0\0\0\0%-64s' '{"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}' > m.safetensors
printf '\0\0\0\0' >> m.safetensors
refuses "--out 1=o.npy:like:0: a .npy file cannot store the type of --in 0=m.safetensors:b: replace like by a type and a shape" \
    run "$SHADERS/square.spv" --groups 1 --in 0=m.safetensors:b --out 1=o.npy:like:0

# -- in a batch ------------------------------------------------------------------------------------
case_name="jobs of a batch"
cat > jobs.jsonl <<END
{"id": "a", "kernel": "$SHADERS/saxpy.spv", "groups": 1, "in": {"X": "x.npy"}, "inout": {"Y": "y.npy:a.npy"}, "push": {"a": 2, "n": 256}}
{"id": "b", "kernel": "$SHADERS/saxpy.spv", "groups": 1, "in": {"X": "x.npy"}, "inout": {"1": "y.npy:b.npy"}, "push": "n=256,a=3", "reinterpret": true}
{"id": "c", "kernel": "$SHADERS/square.spv", "groups": 4, "in": {"0": "plane.npy"}, "out": {"Y": "o.npy:like 0"}}
{"id": "d", "kernel": "$SHADERS/square.spv", "groups": 4, "in": {"Q": "plane.npy"}, "out": {"Y": "d.npy:like:Q"}}
{"id": "e", "kernel": "$SHADERS/saxpy.spv", "groups": 1, "in": {"0": "x.npy"}, "inout": {"1": "y.npy:e.npy"}, "push": [2, 256]}
{"id": "f", "kernel": "$SHADERS/saxpy.spv", "groups": 1, "in": {"0": "x.npy"}, "inout": {"1": "y.npy:f.npy"}, "push": "i32:2,256"}
END
cli batch jobs.jsonl --json
expect_status 1
expect_json '.done == 4 and .failed == 2 and ([.failures[].code] | unique) == ["BINDING_MISMATCH"]
    and any(.failures[]; .id == "d" and (.message | contains("in Q=plane.npy: the kernel has no binding \u0027Q\u0027")))
    and any(.failures[]; .id == "f" and (.message | contains("push i32:2,256: \u0027a\u0027 is f32, but the value is i32:2; \"reinterpret\": true takes")))'
for check in "2 a" "3 b" "2 e"; do
    if "$NPY" check saxpy "${check% *}" x.npy y.npy "${check#* }.npy" > .check; then passed=$((passed + 1)); else fail "$(cat .check)"; fi
done
if "$NPY" check square plane.npy o.npy > .check; then passed=$((passed + 1)); else fail "$(cat .check)"; fi

finish
