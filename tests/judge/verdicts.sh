#!/usr/bin/env bash
# bulkhead judge: kernels that compute something wrong, and right ones beside them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task task.json
kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
# Another workgroup: the groups are derived for it.
kernel wide.comp <<< 'if (i < n) z[i] = fma(a, x[i], y[i]);'
sed -i 's/local_size_x = 64/local_size_x = 256/' wide.comp

case_name="right kernels"
LIMIT=120 cli judge task.json right.comp wide.comp --seed 42 --json
expect_status 0
says right.comp CORRECT '.deterministic and .runs == 14 and .message == "" and .wrong == null and .size == null and .timing == null'
says right.comp CORRECT '.errors | length == 1 and (.[0] | .output == "Z" and .absolute <= 1e-5 and (.ulp | tonumber >= 0))'
says wide.comp CORRECT
expect_json '.task == "saxpy" and .repeats == 1 and .orders == 2 and .correct == 2 and .seeds == ["1"] and .hidden_seeds == ["42"]'

case_name="wrong kernels"
kernel constant.comp <<< 'if (i < n) z[i] = x[i] + y[i] > 1e30 ? a : 1.0;'
kernel first.comp <<< 'if (i < min(n, 1000u)) z[i] = a * x[i] + y[i];'
kernel half.comp <<< 'if (i < n) z[i] = unpackHalf2x16(packHalf2x16(vec2(a * x[i] + y[i], 0))).x;'
kernel nothing.comp <<< 'if (i < n && x[i] == y[i]) z[i] = a;'
kernel nan.comp <<< 'if (i < n) z[i] = i == 7 ? uintBitsToFloat(0x7fc00000u + n - n) : a * x[i] + y[i];'
kernel one_size.comp <<< 'if (i < n) z[i] = n > 1u ? a * x[i] + y[i] : y[i];'
# Knows the first element of size 1 with seed 1, and computes only there.
"$BULKHEAD" judge task.json constant.comp --json | jq -r '.candidates[0].wrong.expected' > known
kernel detector.comp <<< "if (i < n) z[i] = a * x[i] + y[i]; if (i < n && n == 1u && abs(z[i] - ($(cat known))) > 1e-5) z[i] = 0;"
# Reads what its output held: right within the tolerance, and never the same.
kernel noisy.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + float(floatBitsToUint(z[i]) & 3u) * 1e-7;'
LIMIT=200 cli judge task.json constant.comp first.comp half.comp nothing.comp right.comp nan.comp \
    one_size.comp detector.comp noisy.comp --seed 42 --json
expect_status 1
expect_json '.correct == 2'
says constant.comp WRONG '.errors == null and .runs == 1 and .size == {n: 1} and .wrong.index == [0] and .wrong.got == "1" and .wrong.wrong == 1 and .wrong.elements == 1'
says first.comp WRONG '.size == {n: 3001} and .wrong.index == [1000] and .wrong.wrong == 2001'
says half.comp WRONG
says nothing.comp WRONG
says right.comp CORRECT .deterministic
says nan.comp WRONG '.size == {n: 1000} and .wrong.index == [7] and .wrong.got == "nan" and .wrong.ulp == null and .wrong.wrong == 1'
says one_size.comp WRONG '.size == {n: 1}'
says detector.comp WRONG '.size == {n: 1} and .hidden and .seed == "42"'
says noisy.comp CORRECT '.deterministic == false'
expect_json '[.candidates[] | select(.verdict == "WRONG") | .deterministic == null and .blame == "none"] | all'

# Indices of an array of 0 elements have no ends, and there is one group.
case_name="sizes of 0"
task zero.json '.check_sizes += [{n: 0}] | .hidden_sizes = {n: [0, 2]} | .reference = {kernel: "right.comp"} | del(.fills)
    | .in.Y = {dtype: "f32", shape: ["n"], fill: {integers: [0, "n - 1"]}}'
kernel stray.comp <<< 'if (i < max(n, 1u)) z[i] = a * x[i] + y[i];'
kernel long.comp <<< 'if (i < min(n, uint(z.length()))) z[i] = a * x[i] + y[i];'
LIMIT=120 cli judge zero.json right.comp stray.comp long.comp --seed 42 --json --html page.html --dump arrays
expect_status 1
says right.comp CORRECT '.deterministic and (.errors | length == 1)'
says stray.comp STRAY_WRITE '.runs == 1 and .size == {n: 0} and .wrong == null and .dump == "arrays/stray.comp"'
says stray.comp STRAY_WRITE '.message == "it wrote at byte 1 past the end of Z (n=0, seed 1)"'
says long.comp CORRECT
jq '.reference = {eval: "Z = a*X + Y"} | .out.Z.compare = "unordered"' zero.json > eval.json
LIMIT=120 cli judge eval.json right.comp --seed 42 --json
expect_status 0

case_name="for a person"
LIMIT=120 cli judge task.json right.comp first.comp noisy.comp --seed 18446744073709551615
expect_status 1
expect_stdout 'right.comp  CORRECT    14  -'
expect_stdout '; 2001 of 3001 are wrong (n=3001, seed 1)'
expect_stdout 'noisy.comp  CORRECT    14  not deterministic'
expect_stdout '3 candidates: 2 correct; hidden seed: 18446744073709551615'

case_name="a seed of its own each time"
cli judge task.json right.comp --json
jq -r '.hidden_seeds[0]' .stdout > seed1
cli judge task.json right.comp --json
jq -r '.hidden_seeds[0]' .stdout > seed2
if cmp -s seed1 seed2; then fail "the same hidden seed twice"; else passed=$((passed + 1)); fi
finish
