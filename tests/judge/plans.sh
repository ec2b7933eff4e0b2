#!/usr/bin/env bash
# bulkhead judge: candidates with a plan: several kernels, groups and scratch of their own; and what all
# candidates are made with.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task task.json '.sizes = [{n: 1000}] | .hidden_sizes = 2'
# In two kernels: T = a * X, Z = T + Y.
planned() { # FILE PLAN
    {
        echo "// bulkhead: $2"
        cat << 'END'
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { float a; uint n; };
#ifdef FIRST
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer T { float t[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) t[i] = a * x[i]; }
#else
layout(set = 0, binding = 0) readonly buffer Y { float y[]; };
layout(set = 0, binding = 1) readonly buffer T { float t[]; };
layout(set = 0, binding = 2) buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n + a - a) z[i] = t[i SHIFT] + y[i]; }
#endif
END
    } > "$1"
}
kernels='"kernels": [{"D": {"FIRST": true, "SHIFT": ""}}, {"D": {"SHIFT": ""}}]'
scratch='"scratch": {"T": {"dtype": "f32", "shape": ["n"]}}'

case_name="kernels with scratch between them"
planned right.comp "{$kernels, $scratch}"
planned first.comp "{\"D\": {\"FIRST\": true, \"SHIFT\": \"\"}, $scratch}"
planned second.comp "{\"kernels\": [{\"D\": {\"SHIFT\": \"\"}}, {\"D\": {\"FIRST\": true}}], $scratch}"
planned small.comp "{$kernels, \"scratch\": {\"T\": {\"dtype\": \"f32\", \"shape\": [\"max(n, 2) - 1\"]}}}"
planned behind.comp "{${kernels//\}, \{\"D\": \{\"SHIFT\": \"\"\}/\}, \{\"D\": \{\"SHIFT\": \"+ 1\"\}}, $scratch}"
planned groups.comp "{${kernels/\}, \{/, \"groups\": [70000]\}, \{}, $scratch}"
planned few.comp "{${kernels/\}, \{/, \"groups\": [\"n - n\"]\}, \{}, $scratch}"
planned key.comp "{${kernels/\"D\"/\"E\"}, $scratch}"
LIMIT=120 cli judge task.json right.comp first.comp second.comp small.comp behind.comp groups.comp few.comp \
    key.comp --seed 4 --json
expect_status 1
says right.comp CORRECT
says first.comp BINDING_MISMATCH
says second.comp WRONG
says small.comp STRAY_WRITE '(.message | startswith("it wrote ")) and (.message | contains("past the end of T"))'
says behind.comp WRONG
says groups.comp BINDING_MISMATCH '.message | startswith("groups.comp:1: \"kernels\" [0] \"groups\": 70000 groups along x: the device takes ")'
says few.comp BINDING_MISMATCH '.message | startswith("few.comp:1: \"kernels\" [0] \"groups\": 0 groups along x")'
says key.comp INVALID_ARGUMENT '.message | startswith("key.comp:1: \"kernels\" [0] \"E\": unknown key")'

case_name="what is behind scratch is no content"
# Z is right only where the element behind T is 0.
sed 's/t\[i SHIFT\]/t[i] + (i + 1 == n ? t[n] * 0.001 : 0)/' right.comp > reads.comp
LIMIT=120 cli judge task.json reads.comp --seed 4 --json
says reads.comp STRAY_READ '.message | startswith("it reads past the end of T")'

case_name="a plan in a file of its own"
mkdir -p parts
sed '1d; s/^#version 450/&\n#define FIRST/' right.comp > parts/first.comp
sed '1d; s/SHIFT//' right.comp > parts/second.comp
echo "{\"kernels\": [{\"kernel\": \"first.comp\"}, {\"kernel\": \"second.comp\"}], $scratch}" > parts/plan.json
LIMIT=120 cli judge task.json parts/plan.json --seed 4 --json --state state
expect_status 0
says parts/plan.json CORRECT
# It is the same as long as all of it is.
LIMIT=120 cli judge task.json parts/plan.json --json --state state --resume
says parts/plan.json CORRECT
sed -i 's/a \* x/2 * a * x/' parts/first.comp
LIMIT=120 cli judge task.json parts/plan.json --json --state state --resume
says parts/plan.json WRONG
sed -i 's/2 \* a \* x/FACTOR * x/' parts/first.comp
LIMIT=120 cli judge task.json parts/plan.json --json --state state --resume -D FACTOR=a
says parts/plan.json CORRECT
LIMIT=120 cli judge task.json parts/plan.json --json --state state --resume -D FACTOR=1
says parts/plan.json WRONG
LIMIT=120 cli judge task.json parts/plan.json --json --state state --resume -D FACTOR=a
says parts/plan.json CORRECT
case_name="each of these was judged once"
status=$(grep -c plan.json state/judge.jsonl)
expect_status 4

case_name="what all candidates are made with"
mkdir -p folder
echo '#define IT a * x[i] + y[i]' > folder/it.h
kernel made.comp <<< 'if (i < n) z[i] = STEP == 1 ? IT : 0;'
sed -i 's/^layout(local/layout(constant_id = 3) const int STEP = 0;\n#include "it.h"\n&/' made.comp
LIMIT=120 cli judge task.json made.comp --seed 4 --json -I folder --spec 3=i32:1
says made.comp CORRECT
LIMIT=120 cli judge task.json made.comp --seed 4 --json -I folder
says made.comp WRONG
LIMIT=120 cli judge task.json made.comp --seed 4 --json --spec 3=i32:1
says made.comp COMPILE_FAILED
planned defined.comp "{$kernels, $scratch}"
LIMIT=120 cli judge task.json defined.comp --seed 4 --json -D SHIFT=
says defined.comp LOAD_FAILED '.message | contains("\"D\": the judge defines SHIFT")'
refuses "bulkhead judge: -D 1A: '1A' is not a name" judge task.json made.comp -D 1A
refuses "bulkhead judge: -I none: No such file or directory" judge task.json made.comp -I none
refuses "bulkhead judge: --spec 3: '3' is not ID=TYPE:VALUE" judge task.json made.comp --spec 3

case_name="kernels of a plan are timed together"
task timed.json '.sizes = [{n: 4000}] | del(.check_sizes)'
LIMIT=200 cli judge timed.json right.comp --seed 4 --time --repeat 5 --json
says right.comp CORRECT '.timing[0].runs == 5 and .timing[0].median_ns > 0'

finish
