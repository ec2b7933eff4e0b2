#!/usr/bin/env bash
# bulkhead judge: each kind of reference, of generator and of type; and references that cannot judge.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + 0.999 * y[i];'

case_name="a kernel, in the folder of the task"
mkdir tasks
cp right.comp tasks/reference.comp
task tasks/task.json '.reference = {kernel: "reference.comp"}'
LIMIT=120 cli judge tasks/task.json right.comp less.comp --json
expect_status 1
says right.comp CORRECT
says less.comp WRONG

case_name="a kernel with groups of its own"
sed 's/local_size_x = 64/local_size_x = 1/' right.comp > one.comp
task task.json '.reference = {kernel: "one.comp", groups: ["n"]} | .groups = ["ceildiv(n, 64)"]'
cli judge task.json right.comp --json
expect_status 0
task task.json '.reference = {kernel: "one.comp"} | .groups = ["ceildiv(n, 64)"]'
# One element of 64 is written: the noise elsewhere is another each time.
refuses 'the reference of task.json cannot judge: it is not deterministic: Z[' judge task.json right.comp

case_name="files"
"$NPY" make x.npy 'f32[5]' ramp 0 1
"$NPY" make y.npy 'f32[5]' ramp 1 1
"$NPY" make z.npy 'f32[5]' ramp 1 3.5
"$NPY" make short.npy 'f32[4]' ramp 1 3.5
files='.sizes = [{n: 5}] | del(.check_sizes) | .in.X.fill = {file: "x.npy"} | .in.Y.fill = {file: "y.npy"}
    | .reference = {files: {Z: "z.npy"}}'
task files.json "$files"
LIMIT=120 cli judge files.json right.comp less.comp
expect_status 1
expect_stdout 'right.comp  CORRECT     2  -'
expect_stdout 'Z[0] is 0.999000013, expected 1, '
expect_stdout 'all inputs are files: seeds change nothing'
kernel stored.comp <<< 'if (i < n) z[i] = x[i] < y[i] || a > 0.0 ? 1.0 + 3.5 * i : 0.0;'
cli judge files.json stored.comp --html page.html
expect_status 0
same='a kernel that only stores the results is CORRECT, too'
expect_stdout "same inputs in each run: $same"
if grep -qF "the same in each run: $same" page.html; then passed=$((passed + 1)); else fail "the page does not say it"; fi
LIMIT=120 cli judge files.json right.comp --json
expect_json '.fixed_inputs'
task mixed.json '.sizes = [{n: 5}] | del(.check_sizes) | .in.X.fill = {file: "x.npy"}'
cli judge mixed.json right.comp stored.comp --html page.html
expect_status 1
if grep -qF "$same" .stdout page.html; then fail "an input varies"; else passed=$((passed + 1)); fi
cli judge mixed.json right.comp --json
expect_json '.fixed_inputs == false'
task weak.json '.out.Z.abs = 100'
cli judge weak.json right.comp stored.comp --html weak.html
expect_stdout 'weak task: Z: zeros pass (at each size)'
if grep -qF "zeros pass (at each size)" weak.html; then passed=$((passed + 1)); else fail "the page does not say it"; fi
cli judge weak.json right.comp --json
expect_status 0
expect_json '.weak == [{"output": "Z", "passes": "zeros", "input": null, "size": null}]'
refuses "weak.json: the task is weak: Z: zeros pass (at each size)" judge weak.json right.comp --strict
refuses "files.json: the task is weak: the inputs are the same in each run" judge files.json right.comp --strict
cli judge mixed.json right.comp --strict
expect_status 0
task wrong.json "$files | .reference.files.Z = \"short.npy\""
refuses "wrong.json:$(grep -n '"Z": "short.npy"' wrong.json | cut -d: -f1): \"reference\" \"files\" \"Z\": short.npy: its type or shape is not the one in the task" judge wrong.json right.comp
task wrong.json "$files | .in.X.fill.file = \"nowhere.npy\""
refuses "wrong.json:$(grep -n nowhere wrong.json | cut -d: -f1): \"in\" \"X\" \"fill\" \"file\": nowhere.npy: No such file or directory" judge wrong.json right.comp

case_name="references that cannot judge"
task bad.json '.reference = {kernel: "noisy.comp"}'
kernel noisy.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + float(floatBitsToUint(z[i]) & 0xFFFFFFu) * 1e-7;'
refuses 'the reference of bad.json cannot judge: it is not deterministic: Z[' judge bad.json right.comp
task bad.json '.reference = {kernel: "endless.comp"} | .limits.deadline = "1s" | .groups = [65535]'
endless endless.comp
refuses 'the reference of bad.json cannot judge: the deadline of 1000 ms passed' judge bad.json right.comp
task bad.json '.reference = {kernel: "broken.comp"}'
kernel broken.comp <<< 'if (i < n) z[i] = a *'
refuses '"reference" "kernel": it does not compile: broken.comp:10: error' judge bad.json right.comp
task bad.json '.reference = {kernel: "nowhere.comp"}'
line() { grep -n "\"$1\": " bad.json | cut -d: -f1; }
refuses "the reference of bad.json cannot judge: bad.json:$(line kernel): \"reference\" \"kernel\": nowhere.comp: No such file or directory (LOAD_FAILED)" judge bad.json right.comp
task bad.json '.reference = {eval: "Z = a*X +"}'
refuses "the reference of bad.json cannot judge: bad.json:$(line eval): \"reference\" \"eval\": column 10: the expression ends where" judge bad.json right.comp
task bad.json '.reference = {eval: "B = a*X\nZ = B +"}'
refuses "\"reference\" \"eval\": line 2, column 8: the expression ends where" judge bad.json right.comp
task bad.json '.reference = {eval: "Z = X + exp"} | .push.exp = 2'
refuses "\"reference\" \"eval\": input 'Y' is not used by the expression" judge bad.json right.comp
task bad.json '.reference = {eval: "Z = X * f64(Y)"}'
refuses "\"reference\" \"eval\": output 'Z' must be f32" judge bad.json right.comp
task bad.json '.reference = {eval: "Z = W"}'
refuses "the reference of bad.json cannot judge: bad.json:$(line eval): \"reference\" \"eval\": " judge bad.json right.comp
kernel type.comp <<< 'if (i < n) z[i] = a * x[i].x + y[i];'
sed -i 's/float x/uvec4 x/' type.comp
task bad.json '.reference = {kernel: "type.comp"}'
refuses "\"reference\" \"kernel\": in X: the kernel declares u32x4[], and 4 bytes are no whole number of its elements (BINDING_MISMATCH)" judge bad.json right.comp
task bad.json '.inout = {X: .in.X} | del(.in.X) | .reference = {kernel: "right.comp"}'
refuses "\"reference\" \"kernel\": inout X: the kernel does not write it" judge bad.json right.comp

case_name="a NaN that nobody has asked for"
task nan.json '.in.X.fill = "special" | .sizes = [{n: 1000}] | del(.check_sizes)'
refuses 'the reference of nan.json cannot judge: it computes a NaN: Z[' judge nan.json right.comp
task nan.json '.in.X.fill = "special" | .out.Z.nan = "equal" | .sizes = [{n: 1000}]'
kernel no_nan.comp <<< 'if (i < n) { z[i] = a * x[i] + y[i]; if (isnan(z[i])) z[i] = 0; }'
LIMIT=120 cli judge nan.json right.comp no_nan.comp --json
says right.comp CORRECT
says no_nan.comp WRONG '.wrong.expected == "nan" and .wrong.got == "0"'
task nan.json '.in.X.fill = "special" | .out.Z.nan = "any" | .sizes = [{n: 1000}]'
cli judge nan.json no_nan.comp --json
says no_nan.comp CORRECT

# In another order in each run, by what is behind the output: noise. Only where no order counts.
case_name="in any order, and by a norm"
kernel rotated.comp <<< 'if (i < n) z[(i + (floatBitsToUint(z[n]) & 0xffffu)) % n] = x[i];'
sed '/buffer Y/d' rotated.comp > order.comp
sed 's/= x\[i\]/= i == 9u ? 99.0 : x[i]/' order.comp > stray.comp
task order.json 'del(.in.Y) | .push = {a: 1.0, n: "n"} | .out.Z = {dtype: "f32", shape: ["n"], compare: "unordered"}
    | .reference = {kernel: "order.comp"}'
LIMIT=120 cli judge order.json order.comp stray.comp --json
says order.comp CORRECT '.deterministic and .errors[0].absolute == 0'
says stray.comp WRONG '.wrong.output == "Z" and .wrong.got == "99" and .wrong.wrong == 1 and (.message | test("^Z\\[[0-9]+\\] is 99, which is not expected, and -?[0-9.e-]+ is missing; 1 of 1000 are wrong \\(n=1000, seed 1\\)$"))'
task order.json 'del(.in.Y) | .push = {a: 1.0, n: "n"} | .out.Z = {dtype: "f32", shape: ["n"]} | .reference = {kernel: "order.comp"}'
refuses 'the reference of order.json cannot judge: it reads past the end of an array' judge order.json order.comp
kernel off.comp <<< 'if (i < n) z[i] = (a * x[i] + y[i]) * 1.0078125;'
task norm.json '.out.Z = {dtype: "f32", shape: ["n"], compare: "norm", rel: 0.0079} | .check_sizes = []'
cli judge norm.json off.comp --json
says off.comp CORRECT
task norm.json '.out.Z = {dtype: "f32", shape: ["n"], compare: "norm", rel: 0.0078} | .check_sizes = []'
cli judge norm.json off.comp --json
says off.comp WRONG '.wrong.wrong == .wrong.elements and (.message | startswith("the relative error of Z is 0.00781, over 0.0078; Z["))'
task check.json '.out.Z = {dtype: "f32", shape: ["n"], compare: "check"}'
refuses 'check.json: output "Z" is compared by "check", which is a function of a program: there is none' judge check.json right.comp

case_name="each size in an expression"
kernel sized.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] * float(n);'
task sized.json '.reference = {eval: "Z = a*X + Y*f32(n)"}'
cli judge sized.json sized.comp
expect_status 0

# Computed in f32 and rounded once.
case_name="small floats"
cat > bf16.comp << 'EOF'
#version 450
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint16_t x[]; };
layout(set = 0, binding = 2) buffer Z { uint16_t z[]; };
layout(push_constant) uniform Push { float a; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    uint f = floatBitsToUint(a * uintBitsToFloat(uint(x[i]) << 16));
    z[i] = uint16_t(f + 0x7fffu + (f >> 16 & 1u) >> 16);
}
EOF
sed 's/f + 0x7fffu + (f >> 16 & 1u) >> 16/f >> 16/' bf16.comp > cut.comp
task bf16.json 'del(.in.Y) | .sizes = [{n: 1000}] | del(.check_sizes) | .in.X.dtype = "bfloat16" | .out.Z = {dtype: "bf16", shape: ["n"], ulp: 0}
    | .reference = {eval: "Z = a*X"}'
cli judge bf16.json bf16.comp cut.comp --dump small --json
says bf16.comp CORRECT '.errors[0].ulp == "0"'
says cut.comp WRONG '.message | test("^Z\\[[0-9]+\\] is -?[0-9.e-]+, expected -?[0-9.e-]+, 1 ULP; ")'
if head -c 80 small/cut.comp/actual/Z.npy | grep -aqF "'<u2'"; then passed=$((passed + 1)); else fail "no bits of bf16"; fi
# What was dumped is an input again.
jq '.in.X.fill = {file: "small/cut.comp/inputs/X.npy"}' bf16.json > again.json
cli judge again.json bf16.comp cut.comp --json
says bf16.comp CORRECT
says cut.comp WRONG
# Four at once.
cat > packed.comp << 'EOF'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 2) buffer Z { uint z[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n / 4) z[i] = x[i] ^ 0x80808080u;
}
EOF
for type in f8e4m3 float8_e5m2; do
    task f8.json 'del(.in.Y) | .sizes = [{n: 1000}, {n: 64}] | del(.check_sizes) | .push = {n: "n"} | .in.X.dtype = "'$type'"
        | .in.X.fill = "bits" | .out.Z = {dtype: "'$type'", shape: ["n"], nan: "equal"} | .reference = {eval: "Z = -X"}'
    cli judge f8.json packed.comp --json
    says packed.comp CORRECT
done
task weak8.json 'del(.in.Y) | .push = {n: "n"} | .in.X.dtype = "f8e5m2" | .check_sizes = [] | .sizes = [{n: 64}]
    | .out.Z = {dtype: "f8e5m2", shape: ["n"], abs: 8} | .reference = {eval: "Z = -X"}'
cli judge weak8.json packed.comp --json
expect_json '.weak == [{"output": "Z", "passes": "zeros", "input": null, "size": null}]'
task f8.json 'del(.in.Y) | .push = {n: "n"} | .in.X.dtype = "f8_e8m0"'
refuses '"in" "X" "dtype": it must be one of f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool bf16 f8_e4m3 f8_e5m2' judge f8.json packed.comp
task f8.json '.in.Y.dtype = "bf16" | .out.Z.dtype = "bf16" | .reference = {eval: "Z = f64(X) + Y"}'
refuses "output 'Z' must be bf16, but is f64: write f32(...)" judge f8.json packed.comp

case_name="no parameters"
task one.json '.sizes = [{}] | del(.check_sizes) | .in.X.shape = [64] | .in.Y.shape = [64] | .out.Z.shape = [64]
    | .push.n = 64 | .groups = [1]'
cli judge one.json right.comp less.comp --seed 3
expect_status 1
expect_stdout 'right.comp  CORRECT     8  -'
expect_stdout 'of 64 are wrong (the only size, seed 1)'

case_name="an output that is an input, two dimensions, integers"
cat > add.comp << 'END'
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 4) readonly buffer In { int a[]; };
layout(set = 1, binding = 0) buffer Sum { int s[]; };
layout(push_constant) uniform Push { uint rows, columns; };
void main() {
    uvec2 i = gl_GlobalInvocationID.yx;
    if (i.x < rows && i.y < columns) s[i.x * columns + i.y] += a[i.x * columns + i.y];
}
END
sed 's/+=/=/' add.comp > assign.comp
sed 's/rows && i.y/rows \&\& i.x < columns \&\& i.y/' add.comp > square.comp
cat > add.json << 'END'
{"sizes": [{"r": 17, "c": 9}, {"r": 4, "c": 4}],
 "in": {"0.4": {"dtype": "i32", "shape": ["r", "c"], "fill": {"integers": [-100, 100]}}},
 "inout": {"1.0": {"dtype": "i32", "shape": ["r", "c"], "fill": {"integers": [0, 9], "special": 0.1}}},
 "push": {"rows": "r", "columns": "c"},
 "groups": ["ceildiv(c, local_x)", "ceildiv(r, local_y)"],
 "reference": {"kernel": "add.comp"}}
END
LIMIT=120 cli judge add.json add.comp assign.comp square.comp --json
expect_status 1
says add.comp CORRECT
says assign.comp WRONG
says square.comp WRONG '.size == {r: 17, c: 9} and .wrong.output == "1.0" and .wrong.index == [9, 0] and (.message | startswith("1.0[9,0] is "))'
finish
