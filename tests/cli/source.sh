#!/usr/bin/env bash
# GLSL on the command line: run kernel.comp, -D, -I, and what the compiler says.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ready() {
    expect_status 0
    expect_empty .stderr
}

# A refusal with the compiler's lines before the one of the program. Those are given as $1.
does_not_compile() {
    local line=$1
    shift
    case_name="does not compile: $*"
    cli "$@"
    expect_status 2
    expect_stderr "$line"
    expect_stderr "it does not compile (COMPILE_FAILED)"
    expect_empty .stdout
    expect_untouched
}

"$NPY" make x.npy 'f32[64]' ramp 0 1
square=(--groups 1 --in "0=x.npy" --out "1=y.npy:f32[64]")
cat > square.comp << 'END'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] * x[i]; }
END

case_name="a .comp file"
cli run square.comp "${square[@]}" --json
ready
expect_json '.status == "READY" and .kernel == "square"'
"$NPY" check square x.npy y.npy || fail "wrong result"
case_name="a .glsl file, by a path"
mkdir -p sub
cp square.comp sub/other.glsl
cli run ./sub/other.glsl "${square[@]}" --json
ready
expect_json '.kernel == "other"'
case_name="GLSL on standard input"
INPUT=square.comp cli run - "${square[@]}" --json
ready
expect_json '.kernel == "stdin"'
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy

# -- defines and includes --------------------------------------------------------------------------
mkdir -p include/deep
cat > use.comp << 'END'
#version 450
#include "deep/first.glsl"
#include "single.h"
#ifndef FLAG
#error there is no flag
#endif
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = FIRST(x[i]) SINGLE x[i]; }
END
echo '#include "second.glsl"' > include/deep/first.glsl
echo '#define FIRST(v) (v)' > include/deep/second.glsl
echo 'this is no source' > include/deep/notes.txt
mkdir -p include/.hidden elsewhere
echo 'this is not read' > include/.hidden/x.glsl
echo '#define SINGLE OP' > elsewhere/single.h
mkdir -p only/deep
cp include/deep/first.glsl only/deep
use=("${square[@]}" -I include -I elsewhere/single.h)
case_name="-D and -I"
cli run use.comp "${use[@]}" -D OP='*' -DFLAG
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy
does_not_compile "use.comp:5: error: '#error' : there is no flag" run use.comp "${use[@]}" -D 'OP=*'
# What is not found is named, with its place, where it was looked for, and what there is.
does_not_compile "use.comp:2: error: '#include' : no file named 'deep/first.glsl' was given for #include; none was given" \
    run use.comp "${square[@]}"
does_not_compile "deep/first.glsl:1: error: '#include' : no file named 'second.glsl' was given for #include; looked for 'deep/second.glsl', then for 'second.glsl'; given: 'deep/first.glsl'" \
    run use.comp "${square[@]}" -I only
does_not_compile "use.comp:3: error: '#include' : no file named 'single.h' was given for #include; given: 'deep/first.glsl', 'deep/second.glsl'" \
    run use.comp "${square[@]}" -I include
sed 's/"single.h"/<..\/single.h>/' use.comp > leads.comp
does_not_compile "leads.comp:3: error: '#include' : no file named '../single.h' was given for #include; it leads out of the files that were given; given: 'deep/first.glsl'" \
    run leads.comp "${square[@]}" -I include
rm -r only leads.comp
refuses "k.spv: it is SPIR-V: -D and -I are for sources" run "$(cp "$SHADERS/square.spv" k.spv; echo k.spv)" \
    "${square[@]}" -D A
refuses "-D 1A: '1A' is not a name: write letters, digits and _, and no digit first" run use.comp "${use[@]}" -D 1A
refuses "the value is more than one line" run use.comp "${use[@]}" -D $'A=1\n2'
case_name="-I of a link to a folder"
ln -s include link
cli run use.comp "${square[@]}" -I link -I elsewhere/single.h -D OP='*' -DFLAG
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy link
mkfifo include/pipe.glsl
case_name="what is no file in a folder is passed over"
cli run use.comp "${use[@]}" -D OP='*' -DFLAG
ready
rm y.npy include/pipe.glsl

# -- HLSL ------------------------------------------------------------------------------------------
cat > scale.hlsl << 'END'
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u1);
[[vk::push_constant]] cbuffer Push { float factor; };
// [numthreads(1, 1, 1)] void old(
[numthreads(64, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID) { y[id.x] = factor * x[id.x] * x[id.x]; }
END
case_name="HLSL: a function that is not main"
cli run scale.hlsl "${square[@]}" --push f32:1 --json
ready
expect_object '.status == "READY" and .kernel == "scale"'
"$NPY" check square x.npy y.npy || fail "wrong result"
case_name="HLSL with -D"
rm y.npy
sed 's/factor \* x/FACTOR * factor * x/' scale.hlsl > define.hlsl
cli run define.hlsl "${square[@]}" --push f32:0.5 -D FACTOR=2
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
does_not_compile "FACTOR" run define.hlsl "${square[@]}" --push f32:0.5
case_name="HLSL by what is in it, and by --language"
cp scale.hlsl scale.txt
cli run scale.txt "${square[@]}" --push f32:1
ready
rm y.npy
INPUT=scale.hlsl cli run - "${square[@]}" --push f32:1 --language hlsl
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy
case_name="what --language says counts more than the name, and more than the content"
cp scale.hlsl named.comp
does_not_compile "" run named.comp "${square[@]}" --push f32:1
does_not_compile "" inspect named.comp
does_not_compile "" run scale.txt "${square[@]}" --push f32:1 --language glsl
does_not_compile "" inspect scale.txt --language glsl
cli run named.comp "${square[@]}" --push f32:1 --language hlsl
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy
cli inspect named.comp --language hlsl
expect_status 0
refuses "it is spirv, glsl, hlsl or cuda" inspect named.comp --language HLSL
case_name="--language spirv: what is no module is no source either"
cli run named.comp "${square[@]}" --push f32:1 --language spirv
[ "$status" -ne 0 ] || fail "it was compiled"
expect_stderr "named.comp"
sed 's/register(u1)/register(u0)/' scale.hlsl > clash.hlsl
does_not_compile "are both binding 0 of set 0" run clash.hlsl "${square[@]}" --push f32:1
grep -q "^clash.hlsl:[12]: error: '[xy]' ([tu]0) and '[xy]' ([tu]0) are both" .stderr || fail "no place"
sed 's/register(u1)/register(u65536)/' scale.hlsl > far.hlsl
does_not_compile "binding 65536 is too large: bindings go up to 65534" \
    run far.hlsl "${square[@]}" --push f32:1
sed 's/^RW.*/[[vk::binding(65536)]] RWStructuredBuffer<float> y;/' scale.hlsl > far.hlsl
does_not_compile "binding 65536 is too large" run far.hlsl "${square[@]}" --push f32:1
sed 's/register(u1)/register(u1, space63)/; s/: register/:register/' scale.hlsl > far.hlsl
does_not_compile "set 63 is too large: sets go up to 31" run far.hlsl "${square[@]}" --push f32:1
sed 's/cbuffer Push { float factor; };/struct { float factor; } push;/; s/= factor/= push.factor/' \
    scale.hlsl > struct.hlsl
does_not_compile "[[vk::push_constant]] is for a cbuffer here" \
    run struct.hlsl "${square[@]}" --push f32:1
sed 's/register(u1)/register(u0, space1)/' scale.hlsl > space.hlsl
case_name="HLSL: a space is a set"
cli run space.hlsl --groups 1 --in 0=x.npy --out '1.0=y.npy:f32[64]' --push f32:1
ready
rm y.npy
{ cat scale.hlsl; printf '[numthreads(1,1,1)] void other() { y[0] = 1; }\n'; } > two.hlsl
does_not_compile "two.hlsl: error: several functions have [numthreads], choose the entry point: scale, other" \
    run two.hlsl "${square[@]}" --push f32:1
case_name="HLSL: --entry chooses"
cli run two.hlsl "${square[@]}" --push f32:1 --entry scale
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy
does_not_compile "no function 'none' has [numthreads]; there are: scale, other" \
    run two.hlsl "${square[@]}" --push f32:1 --entry none
sed 's/uint3 id : SV_DispatchThreadID/&, uint n/; s/= factor/= n * factor/' scale.hlsl > given.hlsl
refuses_json INVALID_KERNEL "is an input or output with a location" \
    run given.hlsl "${square[@]}" --push f32:1
printf 'void main() {}\n' > bare.hlsl
does_not_compile "bare.hlsl: error: no function has [numthreads(X, Y, Z)]" run bare.hlsl --groups 1

mkdir results
sed 's/^void scale/float scale/; s/ }$/ return 2; }/' scale.hlsl > results/returns.hlsl
sed 's/uint3 id : SV_DispatchThreadID/&, out float4 c : SV_Target/' scale.hlsl > results/out.hlsl
line=$(grep -n 'scale(' scale.hlsl | cut -d: -f1)
does_not_compile "returns.hlsl:$line: error: 'scale' returns float, but a kernel cannot return values: make it void" \
    run results/returns.hlsl "${square[@]}" --push f32:1
does_not_compile "out.hlsl:$line: error: 'scale' has an out parameter, but a kernel cannot return" \
    run results/out.hlsl "${square[@]}" --push f32:1
{ sed '/^\[numthreads/,$d' scale.hlsl; echo '#include "tail.hlsl"'; } > results/includes.hlsl
sed -n '/^\[numthreads/,$p' results/returns.hlsl > results/tail.hlsl
does_not_compile "tail.hlsl:2: error: 'scale' returns float" \
    run results/includes.hlsl "${square[@]}" --push f32:1 -I results/tail.hlsl
sed 's/^void scale/vector<float, 4> scale/' scale.hlsl > results/vector.hlsl
does_not_compile "error: 'scale' returns vector" run results/vector.hlsl "${square[@]}" --push f32:1
rm -r results

# -- the mark of UTF-8 -----------------------------------------------------------------------------
marked() { { printf '\357\273\277'; cat; } }
case_name="the mark of UTF-8 before GLSL, and before what it includes"
mkdir marked
marked < square.comp > marked/square.comp
cli run marked/square.comp "${square[@]}"
expect_status 0
"$NPY" check square x.npy y.npy || fail "wrong result"
rm -f y.npy
marked < square.comp > marked/none
cli run marked/none "${square[@]}"
expect_status 0
rm -f y.npy
find use.comp include elsewhere -type f | while read -r file; do
    mkdir -p "marked/$(dirname "$file")"
    marked < "$file" > "marked/$file"
done
cli run marked/use.comp "${square[@]}" -I marked/include -I marked/elsewhere/single.h -D OP='*' -DFLAG
expect_status 0
rm -f y.npy
case_name="the mark of UTF-8 before HLSL"
marked < scale.hlsl > marked/scale.hlsl
cli run marked/scale.hlsl "${square[@]}" --push f32:1
expect_status 0
rm -rf y.npy marked

# -- what nothing here compiles --------------------------------------------------------------------
for pair in "wgsl:WGSL:naga" "hip:HIP:chipStar" "cl:OpenCL C:clspv" \
    "metal:Metal:port it" "slang:Slang:slangc" "py:Python:bulkhead eval"; do
    file=k.${pair%%:*}
    rest=${pair#*:}
    : > "$file"
    refuses "KERNEL $file: it is ${rest%%:*}, which is not supported; " run "$file" --groups 1
    expect_stderr "${rest#*:}"
done
while IFS='|' read -r name text; do
    printf '%s\n' "$text" > noname
    refuses_json INVALID_KERNEL "it is $name, which is not supported" run noname --groups 1
done << 'END'
WGSL|@compute @workgroup_size(64) fn main() {}
HIP|#include <hip/hip_runtime.h>
OpenCL C|__kernel void k(__global float *x) { x[get_global_id(0)] = 1; }
Metal|#include <metal_stdlib>
END
refuses_json INVALID_KERNEL "KERNEL x.npy: it is a .npy array, not a kernel" run x.npy --groups 1
cp x.npy k.comp
refuses "KERNEL k.comp: it is a .npy array, not a kernel" run k.comp --groups 1
INPUT=x.npy refuses "FILE -: it is a .npy array, not a kernel" inspect -
printf '\40\0\0\0\0\0\0\0%-32s' '{}' > tensors
INPUT=tensors refuses "FILE -: it is a .safetensors file of arrays, not a kernel" inspect -
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n' > pointer.comp
refuses "KERNEL pointer.comp: it is a Git LFS pointer, not a kernel: git lfs pull fetches the file itself" \
    run pointer.comp --groups 1
INPUT=pointer.comp refuses "--in 0=-: it is a Git LFS pointer, not a .npy file: git lfs pull" \
    run "$SHADERS/square.spv" --groups 1 --in 0=- --out 1=y.npy:f32:4
rm pointer.comp
printf 'what is this?\n' > noname
text='not SPIR-V, but text that begins'
needs='; a source needs a name that ends in .comp, .glsl, .hlsl or .cu, or --language'
refuses "noname: $text \"what is this?\" (14 bytes)$needs (INVALID_ARGUMENT)" run noname --groups 1
cp use.comp use.spv
refuses "use.spv: $text \"$(head -n 1 use.comp)\" ($(wc -c < use.comp) bytes)$needs (INVALID_ARGUMENT)" run use.spv --groups 1
refuses "use.spv: $text \"$(head -n 1 use.comp)\" ($(wc -c < use.comp) bytes)$needs (INVALID_ARGUMENT)" inspect use.spv
printf '\1\2\3' > noname
refuses "noname: not SPIR-V (3 bytes)$needs" run noname --groups 1
case_name="what it was ported from is no matter"
printf '%s\n' '// __global__, once' '/* @workgroup_size(64),' ' * #version 1 */' > ported
cat ported scale.hlsl > noname
cli run noname "${square[@]}" --push f32:1
ready
rm y.npy
{ cat ported; printf '#\tversion 450\n'; grep -v '#version' use.comp; } > noname
cli run noname "${use[@]}" -D OP='*' -DFLAG
ready
"$NPY" check square x.npy y.npy || fail "wrong result"
rm y.npy
refuses "it is WGSL" inspect k.wgsl
refuses "it is spirv, glsl, hlsl or cuda" run k.wgsl --groups 1 --language wgsl

# -- errors ----------------------------------------------------------------------------------------
cat > bad.comp << 'END'
#version 450
layout(local_size_x = 1) in;
void main() {
    int a = nothing;
    float b = "text";
}
END
does_not_compile "bad.comp:4: error: 'nothing' : undeclared identifier" run bad.comp --groups 1
sed 's/#version 450/&\n#extension GL_NO_such : enable/' square.comp > warned.comp
case_name="what does not compile, as an object"
cli run bad.comp --groups 1 --json
expect_status 2
expect_object '.status == "REFUSED" and .code == "COMPILE_FAILED" and .file == "bad.comp" and .line == 4
    and .kernel == "bad" and .kernel_hash == null and .event == null and .executed == "no"
    and (.log | test("^bad.comp:4: error: .*\n")) and (.message | test("does not compile"))'
# first_place NAME FIRST FILE LINE: the log's first line is FIRST..., the object names FILE and LINE.
first_place() {
    case_name="the place in $1"
    cli run "$1" --groups 1 --json
    expect_status 2
    expect_json --arg first "$2" --arg file "$3" --argjson line "$4" \
        '(.log | startswith($first)) and .file == $file and .line == $line'
}
printf '\n\nvoid main() {\n    nothing = 1;\n}\n' > unversioned.comp
first_place unversioned.comp "unversioned.comp:1: error: there is no #version line; " unversioned.comp 1
printf '#version 450\nvoid other() {}\n' > nomain.comp
first_place nomain.comp 'nomain.comp: error: Linking' nomain.comp null
cat > clash.hlsl << 'END'
#define N(x) x##1
StructuredBuffer<float> N(q) : register(t0);
RWStructuredBuffer<float> N(r) : register(u0);
StructuredBuffer<float> c : register(t1);
RWStructuredBuffer<float> d : register(u1);
[numthreads(1, 1, 1)]
void main() {
    N(r)[0] = N(q)[0];
    d[0] = c[0];
}
END
first_place clash.hlsl "clash.hlsl: error: 'q1' and 'r1'" clash.hlsl 4
printf '[numthreads(1, 1, 1)]\nvoid main() { } }\n' > 'a: brace.hlsl'
first_place 'a: brace.hlsl' 'a: brace.hlsl: a: brace.hlsl(2): error at' 'a: brace.hlsl' 2
case_name="a warning is in the object, and names no place"
cli run warned.comp "${square[@]}" --json
expect_status 0
expect_object '.status == "READY" and (.log | test("warned.comp:2: warning: ")) and .file == null'
rm -f y.npy
# An expression that the compiler's stack does not take, and macros that double for ever.
{
    printf '#version 450\nvoid main() { int x = 1; x = x'
    head -c 1000000 /dev/zero | sed 's/\x00/+x/g'
    printf '; }\n'
} > crash.comp
{
    printf '#version 450\n#define M0\n'
    for i in $(seq 60); do printf "#define M$i M$((i - 1)) M$((i - 1))\n"; done
    printf 'M60\nvoid main() {}\n'
} > endless.comp
case_name="a source that crashes its compiler"
cli run crash.comp --groups 1 --json --compile-deadline "$((60 * slowness))s"
expect_status 1
expect_stderr "the compiler crashed (SIGSEGV)"
expect_object '.status == "POISONED" and .code == "COMPILE_FAILED" and .executed == "no" and .line == null'
case_name="a source that takes its compiler too long"
# The deadline is that of the compiler's start, too.
cli run endless.comp --groups 1 --json --compile-deadline "$((3 * slowness))s"
expect_status 1
expect_stderr "endless.comp: the compile deadline of $((3 * slowness))"
expect_stderr "passed before the compiler ended; --compile-deadline raises it"
expect_object '.status == "POISONED" and .code == "COMPILE_FAILED" and .executed == "no" and .file == null'
cli inspect endless.comp --compile-deadline 300ms
expect_status 1
# Escapes do not reach the terminal.
printf '#version 450\n#error \033[31mred\nvoid main() {}\n' > escape.comp
does_not_compile "escape.comp:2: error:" run escape.comp --groups 1
if grep -q $'\033' .stderr; then fail "an escape"; else passed=$((passed + 1)); fi
# Nor do line ends in a file's name, which would make a line of its own there.
forged=$'a\nbulkhead run: all is well.comp'
cp bad.comp "$forged"
does_not_compile "a bulkhead run: all is well.comp:4: error: 'nothing'" run "$forged" --groups 1
if grep -q '^bulkhead run: all is well' .stderr; then fail "a forged line"; else passed=$((passed + 1)); fi
: > empty.comp
does_not_compile "error" run empty.comp --groups 1
head -c 5000 /dev/urandom > noise.comp
does_not_compile "noise.comp" run noise.comp --groups 1
refuses "square.comp: --entry is other: the entry point of GLSL is main; leave --entry out" run square.comp "${square[@]}" --entry other
head -c 5000000 /dev/zero | tr '\0' ' ' > big.comp
refuses "over the limit of 4194304 (TOO_LARGE)" run big.comp --groups 1
# -- compile ---------------------------------------------------------------------------------------
case_name="a compiled source is what run makes of it"
cli compile square.comp -o square.spv
expect_status 0
expect_empty .stdout
expect_empty .stderr
cli inspect square.comp --json
hash=$(jq -r .hash .stdout)
cli inspect square.spv --json
expect_json ".hash == \"$hash\""
case_name="a module to standard output"
INPUT=square.comp cli compile --language glsl - -o -
expect_status 0
if cmp -s .stdout square.spv; then passed=$((passed + 1)); else fail "another module"; fi
case_name="a module to a standard output that is full"
timeout $((60 * slowness)) "$BULKHEAD" compile square.comp -o - > /dev/full 2> .stderr
status=$?
expect_status 3
expect_stderr "No space left"
cp square.spv before.spv
does_not_compile "bad.comp:4: error: 'nothing'" compile bad.comp -o square.spv
case_name="what does not compile leaves the file as it was"
if cmp -s before.spv square.spv; then passed=$((passed + 1)); else fail "it was written"; fi
refuses "-o OUT.spv is missing" compile square.comp
refuses "SOURCE square.spv: it is SPIR-V already" compile square.spv -o other.spv
refuses "-o ./square.comp: it is the source" compile square.comp -o ./square.comp
refuses "-o nowhere/a.spv: " compile square.comp -o nowhere/a.spv
for name in a.npy a.comp a.glsl a.safetensors; do
    refuses "-o $name: outputs are .spv files, and a name that ends in .${name#a.} may be taken for another format: end it in .spv" \
        compile square.comp -o "$name"
done
refuses "SOURCE nowhere.comp: No such file or directory" compile nowhere.comp -o a.spv
refuses "square.comp: --entry is other: the entry point of GLSL is main; leave --entry out" compile square.comp --entry other -o a.spv
case_name="a warning does not stop it"
cli run warned.comp "${square[@]}"
expect_status 0
expect_stderr "warned.comp:2: warning: "

finish
