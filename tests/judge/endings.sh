#!/usr/bin/env bash
# bulkhead judge: kernels that do not run to their end.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'

case_name="kernels that do not run to their end"
kernel broken.comp <<< 'if (i < n) z[i] = a * x[i] + y[i]'
endless endless.comp
head -c 100 "$SHADERS/hang.spv" > cut.spv
cp right.comp text.spv
task task.json
LIMIT=120 cli judge task.json broken.comp cut.spv text.spv missing.comp right.comp --json
expect_status 1
says broken.comp COMPILE_FAILED '.runs == 0 and (.message | contains("broken.comp:10: error"))'
says cut.spv INVALID_KERNEL
says text.spv INVALID_KERNEL '(.message | startswith("not SPIR-V, but text that begins \"#version 450\"") and endswith("; a source needs a name that ends in .comp, .glsl or .hlsl"))'
says missing.comp LOAD_FAILED '.message == "missing.comp: No such file or directory"'
says right.comp CORRECT
task short.json '.limits.deadline = "1s" | .groups = [65535]'
LIMIT=120 cli judge short.json endless.comp --json
expect_status 1
says endless.comp DEADLINE '.runs == 0 and .blame == "certain" and .size == {n: 1}'

case_name="candidates whose zygote somebody has killed are tried again, one by one"
task long.json ".limits.deadline = \"$((3 * slowness))s\" | .groups = [65535]"
cp endless.comp second.comp
"$BULKHEAD" judge long.json endless.comp second.comp --workers 2 --json --verbose > .stdout 2> .stderr &
judge=$!
for ((tries = 0; tries < 600 * slowness; tries++)); do
    if [ "$(grep -Ec 'kernel (endless|second): compiled' .stderr)" -eq 2 ] || ! kill -0 "$judge" 2> /dev/null; then break; fi
    sleep 0.1
done
kill -KILL "$(pgrep -x bh-zygote -P "$(pgrep -x bh-warden -P "$judge")")"
wait "$judge"
status=$?
expect_status 1
says endless.comp DEADLINE
says second.comp DEADLINE
order=$(sed '1,/zygote .* is lost/d' .stderr | grep -Eo 'stream compiler|: compiled' | paste -sd,)
if [ "$order" = 'stream compiler,: compiled,stream compiler,: compiled' ]; then
    passed=$((passed + 1))
else
    fail "they were not tried again one by one: $order"
fi

finish
