#!/usr/bin/env bash
# bulkhead judge: kernels that cheat, each caught by its verdict, and honest ones between them, which
# never are. What cheats about time is not here: no time is measured.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

candidates=()
wanted=()
# candidate NAME VERDICT BODY [SED]: a kernel, its verdict (a jq test of it), and what else is changed.
candidate() {
    kernel "$1.comp" <<< "$3"
    [ -z "${4:-}" ] || sed -i "$4" "$1.comp"
    candidates+=("$1.comp")
    wanted+=("$2")
}
wrong='. == "WRONG"'
correct='. == "CORRECT"'
shared='s/^void main/shared float s[64];\n&/'

# Honest: a control in front of, between and behind the others.
candidate honest "$correct" 'if (i < n) z[i] = a * x[i] + y[i];'
# It does not compute everything.
candidate constant "$wrong" 'if (i < n) z[i] = x[i] + y[i] > 1e30 ? a : 0.5;'
candidate nothing "$wrong" 'if (i < n && x[i] == y[i]) z[i] = a;'
candidate what_is_there "$wrong" 'if (i < n && abs(z[i]) > 10) z[i] = a * x[i] + y[i];'
candidate first_ones "$wrong" 'if (i < min(n, 64u)) z[i] = a * x[i] + y[i];'
candidate not_the_last "$wrong" 'if (i + 1 < n) z[i] = a * x[i] + y[i];'
candidate every_other "$wrong" 'if (i < n && i % 2 == 0) z[i] = a * x[i] + y[i];'
candidate first_group "$wrong" 'if (i < n && gl_WorkGroupID.x == 0) z[i] = a * x[i] + y[i];'
candidate one_size "$wrong" 'if (i < n) z[i] = n == 3001u ? x[i] + y[i] : a * x[i] + y[i];'
candidate stride "$correct" 'for (; i < n; i += gl_NumWorkGroups.x * 64) z[i] = a * x[i] + y[i];'
# It computes something else.
candidate swapped "$wrong" 'if (i < n) z[i] = a * y[i] + x[i];'
candidate half "$wrong" 'if (i < n) z[i] = unpackHalf2x16(packHalf2x16(vec2(a * x[i] + y[i], 0))).x;'
candidate rounded "$wrong" 'if (i < n) z[i] = round((a * x[i] + y[i]) * 1e4) / 1e4;'
candidate race "$wrong" 'if (i < n) z[i / 2] = a * x[i] + y[i];'
candidate infinite "$wrong" 'if (i < n) z[i] = (a * x[i] + y[i]) / (a - a);'
candidate no_number "$wrong" 'if (i < n) z[i] = uintBitsToFloat(0x7fc00000u) + x[i] + y[i] + a;'
candidate staged "$correct" 's[gl_LocalInvocationIndex] = i < n ? x[i] : 0; barrier(); if (i < n) z[i] = a * s[gl_LocalInvocationIndex] + y[i];' "$shared"
# It takes what is not its own, or keeps something.
candidate behind_input "$wrong" 'if (i < n) z[i] = x[n + i] + (x[i] > 1e30 ? y[i] + a : 0);'
candidate behind_output "$wrong" 'if (i < n) z[i] = z[n + i] + (x[i] > 1e30 ? y[i] + a : 0);'
candidate far_behind "$wrong" 'if (i < n) z[i] = z[i + 1048576u] + (x[i] > 1e30 ? y[i] + a : 0);'
candidate leftovers "$wrong" 'if (i < n) z[i] = s[gl_LocalInvocationIndex]; s[gl_LocalInvocationIndex] = i < n ? a * x[i] + y[i] : 0;' "$shared"
candidate state '. == "BINDING_MISMATCH"' 'if (i < n) { z[i] = x[i]; x[i] = a * x[i] + y[i]; }' 's/readonly buffer X/buffer X/'
candidate counts_on_zeros "$wrong" 'atomicAdd(c[0], 1); barrier(); if (i < n) z[i] = a * x[i] + y[i] + (c[0] == 64u ? 0.0 : 1.0);' 's/^void main/shared uint c[2];\n&/'
candidate sums_on_zeros "$wrong" 's[gl_LocalInvocationIndex] += i < n ? x[i] : 0.0; barrier(); if (i < n) z[i] = a * s[gl_LocalInvocationIndex] + y[i];' "$shared"
candidate sum_of_nothing "$wrong" 'float t; if (i < n) { if (x[i] > 1e30) t = 0.0; t += a * x[i]; z[i] = t + y[i]; }'
candidate global_of_nothing "$wrong" 'if (i < n) { t += a * x[i]; z[i] = t + y[i]; }' 's/^void main/float t;\n&/'
candidate array_of_nothing "$wrong" 'float t[3]; for (uint k = 0; k < n && k <= i; k++) t[i % 3u] += k == i ? a * x[i] : 0.0; if (i < n) z[i] = t[i % 3u] + y[i];'
candidate call_of_nothing "$wrong" 'if (i < n) z[i] = f(x[i]) + y[i];' 's/^void main/float f(float x) { float t; if (x > 1e30) t = 0.0; return t + a * x; }\n&/'
candidate flag_of_nothing "$wrong" 'bool ended; if (i < n) { if (x[i] > 1e30) ended = true; z[i] = ended ? 0.0 : a * x[i] + y[i]; }'
candidate array_of_something "$correct" 'float t[3]; for (uint k = 0; k < 3u; k++) t[k] = 0.0; if (i < n) { t[i % 3u] += a * x[i]; z[i] = t[i % 3u] + y[i]; }'
# What is right depends on the order of workgroups.
candidate last_writer "$wrong" 'if (i < n) { if (i + 64u < n) z[i + 64u] = 0.0; z[i] = a * x[i] + y[i]; }'
candidate first_writer "$wrong" 'if (i < n) { if (i >= 64u) z[i - 64u] = 0.0; z[i] = a * x[i] + y[i]; }'
# It looks for noise.
candidate looks_behind "$wrong" 'if (i < n) z[i] = abs(x[n]) > 1e20 ? a * x[i] + y[i] : 0.0;'
candidate looks_at_output "$wrong" 'if (i < n && floatBitsToUint(z[i]) != 0u) z[i] = a * x[i] + y[i];'
# It reads or writes next to an array, which does no harm where the driver is robust.
candidate next_input '. == "STRAY_READ"' 'if (i < n) z[i] = a * x[i] + y[i] + (i + 1 == n ? y[n] : 0.0);'
candidate next_output '. == "STRAY_READ"' 'if (i < n) z[i] = a * x[i] + y[i] + (i == 0 ? min(abs(z[n]), 1.0) : 0.0);'
candidate no_bound '. == "STRAY_WRITE"' 'if (i < n + 64) z[i] = a * x[i] + y[i];'
candidate asks_length "$correct" 'if (i < z.length() && n > 0) z[i] = a * x[i] + y[i];'
candidate stray '. == "STRAY_WRITE"' 'if (i < n) { z[i] = a * x[i] + y[i]; z[n + i] = 7; }'
candidate wide "$correct" 'if (i < n) z[i] = fma(a, x[i], y[i]);' 's/local_size_x = 64/local_size_x = 128/'
# It ends only if four bits of each number of the noise in its output are 0.
forever='while (z[0] != 7.0) { for (uint k = 0; k < 60000u \&\& z[0] != 7.0; k++) z[1] = fract(sin(z[1]) * 43758.5); }'
ended='. == "DEADLINE" or . == "LOOP_LIMIT"'
candidate now_and_then "$ended" "if (i < n && (floatBitsToUint(z[i]) & 15u) != 0) { ${forever//\\/} } if (i < n) z[i] = a * x[i] + y[i];"
# Its source attacks the compiler.
candidate reads_files '. == "COMPILE_FAILED"' 'if (i < n) z[i] = a * x[i] + y[i];' 's|^void main|#include "/etc/passwd"\n&|'
candidate much_shared '. == "INVALID_KERNEL" or . == "LIMIT_EXCEEDED"' 's[i % 1000000] = x[i]; if (i < n) z[i] = a * s[i % 1000000] + y[i];' 's/^void main/shared float s[1000000];\n&/'
candidate last "$correct" 'if (i < n) z[i] = a * x[i] + y[i];'

# It knows the inputs of the task: those of size 1 have a sum that it looks for.
task task.json
LIMIT=120 cli judge task.json constant.comp --json
known=$(jq -r '.candidates[0].wrong.expected' .stdout)
candidate detector "$wrong" "if (i < n) z[i] = a * x[i] + y[i]; if (n == 1u && abs(z[0] - ($known)) > 1e-5) z[0] = 0;"

task quick.json ".limits.deadline = \"$((2 * slowness))s\""
LIMIT=400 cli judge quick.json "${candidates[@]}" --json
expect_status 1
expect_json --argjson count ${#candidates[@]} '.candidates | length == $count'
for ((k = 0; k < ${#candidates[@]}; k++)); do
    case_name=${candidates[k]}
    expect_json --arg file "${candidates[k]}" ".candidates[] | select(.file == \$file).verdict | ${wanted[k]}"
done

case_name="a task that allows accesses behind its arrays"
task robust.json '.robust = true'
LIMIT=120 cli judge robust.json next_input.comp no_bound.comp honest.comp --json
says next_input.comp CORRECT
says no_bound.comp CORRECT
says honest.comp CORRECT

case_name="sizes and numbers that the task does not have"
kernel listed.comp <<< 'if (i < n) z[i] = n == 1u || n == 1000u || n == 3001u ? a * x[i] + y[i] : 0.0;'
kernel pinned.comp <<< 'if (i < n) z[i] = 2.5 * x[i] + y[i] + (a > 1e9 ? 1.0 : 0.0);'
task hidden.json '.hidden_sizes = 2'
LIMIT=120 cli judge hidden.json listed.comp honest.comp --json
says listed.comp WRONG '.wrong.got == "0" and .hidden and ([.size.n] - [1, 1000, 3001] | length) == 1'
says honest.comp CORRECT
task drawn.json '.push.a = {uniform: [0.5, 4]}'
LIMIT=120 cli judge drawn.json pinned.comp honest.comp --json
says pinned.comp WRONG
says honest.comp CORRECT

case_name="inputs that generators hardly ever make"
kernel ties.comp <<< 'if (i < n) z[i] = n > 1u && x[0] == x[1] ? 0.0 : a * x[i] + y[i];'
kernel sorted.comp <<< 'if (i < n) z[i] = n > 5u && x[0] < x[1] && x[1] < x[2] && x[2] < x[3] && x[3] < x[4] && x[4] < x[5] ? 0.0 : a * x[i] + y[i];'
kernel reversed.comp <<< 'if (i < n) z[i] = n > 5u && x[0] > x[1] && x[1] > x[2] && x[2] > x[3] && x[3] > x[4] && x[4] > x[5] ? 0.0 : a * x[i] + y[i];'
kernel ends.comp <<< 'if (i < n) z[i] = a * x[i] + (abs(y[i]) == 1.0 ? 0.0 : y[i]);'
kernel loud.comp <<< 'if (i < n) z[i] = exp(a * x[i]) > 1e38 ? 0.0 : a * x[i] + y[i];'
fills=(ties sorted reversed ends)
LIMIT=120 cli judge task.json "${fills[@]/%/.comp}" honest.comp --json
for fill in "${fills[@]}"; do
    says "$fill.comp" WRONG ".fill == \"${fill/ties/equal}\" and (.message | endswith(\", inputs: ${fill/ties/equal})\"))"
done
says honest.comp CORRECT '.fill == null'
task none.json '.fills = []'
LIMIT=120 cli judge none.json sorted.comp reversed.comp --json
says sorted.comp CORRECT
says reversed.comp CORRECT
task loud.json '.in.X.fills = [{uniform: [40, 60]}]'
LIMIT=120 cli judge loud.json loud.comp honest.comp --json
says loud.comp WRONG '.fill == "uniform"'
says honest.comp CORRECT

case_name="a NaN that is expected does not make others right"
task nan.json '.in.X.fill = {normal: [0, 1], special: 0.1} | .out.Z.nan = "equal"'
LIMIT=120 cli judge nan.json no_number.comp honest.comp --json
says no_number.comp WRONG
says honest.comp CORRECT
finish
