#!/usr/bin/env bash
# bulkhead judge: kernels that are not launched, because they do not fit the task.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task task.json
kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
# Another workgroup: the groups are derived for it.
kernel wide.comp <<< 'if (i < n) z[i] = fma(a, x[i], y[i]);'
sed -i 's/local_size_x = 64/local_size_x = 256/' wide.comp

case_name="other bindings than the task's"
kernel fewer.comp <<< 'if (i < n) z[i] = a * x[i];'
sed 's/buffer Z/buffer Out/' right.comp > name.comp
sed 's/readonly buffer X/buffer X/; s/^}$/x[0] = 1; }/' right.comp > writes_input.comp
sed 's/, uint n/, uint n, m/; s/uint n;/uint n; uint m;/' right.comp > push.comp
kernel more.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + w[0];'
sed -i 's/^layout(push/layout(set = 0, binding = 3) readonly buffer W { float w[]; };\n&/' more.comp
LIMIT=120 cli judge task.json fewer.comp name.comp writes_input.comp push.comp more.comp --json
expect_status 1
expect_json '[.candidates[].verdict == "BINDING_MISMATCH"] | all'
says fewer.comp BINDING_MISMATCH '.message | contains("in Y: the kernel has no binding '"'Y'"'")'
says name.comp BINDING_MISMATCH '.message | contains("out Z: the kernel has no binding '"'Z'"'; it has")'
says writes_input.comp BINDING_MISMATCH '.message == "in X: the kernel may write it; declare it readonly"'
says push.comp BINDING_MISMATCH '.message | contains("push") and contains("'"'m'"'")'
says more.comp BINDING_MISMATCH '.message | startswith("the kernel binds 0.3 ('"'W'"', storage buffer, read), which is missing: give it in \"in\", \"out\" or \"inout\" of the task, or \"scratch\" of a plan")'

case_name="numbers that are read packed, or as another type"
task packed.json '.sizes = [{n: 1000}] | del(.check_sizes) | .out.Z.shape = ["n"]'
sed 's/float x/uint x/; s/x\[i\]/uintBitsToFloat(x[i])/' right.comp > bits.comp
sed 's/float x/vec4 x/; s/x\[i\]/x[i \/ 4][i % 4]/' right.comp > fours.comp
sed 's/float x/uvec4 x/; s/x\[i\]/uintBitsToFloat(x[i \/ 4][i % 4])/' right.comp > ufours.comp
sed 's/float x/int x/' right.comp > type.comp
LIMIT=120 cli judge packed.json bits.comp fours.comp ufours.comp type.comp --json
expect_status 1
says bits.comp CORRECT
says fours.comp CORRECT
says ufours.comp CORRECT
says type.comp WRONG
jq '.sizes = [{n: 1002}]' packed.json > odd.json
LIMIT=120 cli judge odd.json bits.comp ufours.comp --json
says bits.comp CORRECT
says ufours.comp BINDING_MISMATCH '.message == "in X: the kernel declares u32x4[], and 4008 bytes are no whole number of its elements"'

case_name="a kernel that needs some push constants"
sed 's/float a; uint n;/uint n;/; s/a \*/2.5 */' right.comp > some.comp
LIMIT=120 cli judge task.json some.comp --json
expect_status 0
says some.comp CORRECT

case_name="a kernel that needs no push constants"
sed '/push_constant/d; s/i < n/i < z.length()/; s/a \*/2.5 */' right.comp > none.comp
LIMIT=120 cli judge task.json none.comp --json
expect_status 0
says none.comp CORRECT

case_name="a workgroup for which the task has no groups"
task few.json '.sizes = [{n: 100}] | del(.check_sizes) | .groups = ["200 / local_x"]'
LIMIT=120 cli judge few.json right.comp wide.comp --json
expect_status 1
says right.comp CORRECT
says wide.comp BINDING_MISMATCH '.message == "groups: 0 groups along x: from 1 to 4294967295 are possible (with n=100), and a workgroup of 256x1x1"'

finish
