#!/usr/bin/env bash
# bulkhead judge: many candidates at once, of which a tenth are broken in each of eight ways, and a fifth
# are right. Each gets its verdict, and the time that all took is printed.
#
# COUNT: how many; 40 if it is not set.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

count=${COUNT:-40}
# What a software driver dies of is harmless on a GPU, where the output is wrong then. A driver may end a
# long loop by itself.
kinds=(right syntax module bindings constant first stray crash endless wide)
wanted=(CORRECT COMPILE_FAILED INVALID_KERNEL BINDING_MISMATCH WRONG WRONG 'CORRECT|STRAY_WRITE' 'WORKER_SIGNAL|WRONG'
    'DEADLINE|LOOP_LIMIT' CORRECT)
far='uint far = 0x0FFFFF00u + i * 0x1001u + n; s[far] = x[min(i, n - 1)]; barrier(); if (i < n) z[i] = s[far + 64] + a + y[i];'
forever='while (z[0] != 7.0) { for (uint k = 0; k < 60000u \&\& z[0] != 7.0; k++) z[1] = fract(sin(z[1]) * 43758.5) + a * x[0] + y[0] + float(n); }'
# The number makes each file another kernel.
body() {
    case $1 in
    right | bindings | wide) echo "if (i < n) z[i] = a * x[i] + y[i] + 0.0 * float($2);" ;;
    syntax) echo "if (i < n) z[i] = a * x[i] + y[i] + $2" ;;
    constant) echo "if (i < n) z[i] = x[i] + y[i] > 1e30 ? a : $2.0 + 1e4;" ;;
    first) echo "if (i < min(n, 64u)) z[i] = a * x[i] + y[i] + 0.0 * float($2);" ;;
    stray) echo "if (i < n) { z[i] = a * x[i] + y[i]; z[n + i] = $2.0; }" ;;
    crash) echo "$far // $2" ;;
    endless) echo "${forever//\\/} // $2" ;;
    esac
}
files=()
for ((k = 0; k < count; k++)); do
    kind=${kinds[k % 10]}
    file=$k-$kind.comp
    case $kind in
    module)
        file=$k-$kind.spv
        head -c $((60 + 4 * (k % 7))) "$SHADERS/hang.spv" > "$file"
        ;;
    *) body "$kind" "$k" | kernel "$file" ;;
    esac
    case $kind in
    bindings) sed -i 's/buffer Z/buffer Out/' "$file" ;;
    crash) sed -i 's/^void main/shared float s[64];\n&/' "$file" ;;
    wide) sed -i 's/local_size_x = 64/local_size_x = 128/' "$file" ;;
    esac
    files+=("$file")
done

task task.json ".limits.deadline = \"$((2 * slowness))s\""
began=$SECONDS
LIMIT=$((30 + 3 * count)) cli judge task.json "${files[@]}" --json
printf '%d candidates in %d s\n' "$count" $((SECONDS - began))
expect_status 1
expect_json --argjson count "$count" '.candidates | length == $count'
for ((k = 0; k < count; k++)); do
    case_name=${files[k]}
    expect_json --argjson k "$k" --arg file "${files[k]}" --arg wanted "^(${wanted[k % 10]})\$" \
        '.candidates[$k] | .file == $file and (.verdict | test($wanted))'
done
finish
