#!/usr/bin/env bash
# What the machines of a cluster do not see: a state folder that is not shared, outputs that nobody
# would find, and kernels, includes and inputs that are staged. The node has a mount namespace of its
# own, in which the folder `local` is another one; where that is not to be had, all is left out.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

if ! unshare --mount true 2> /dev/null; then
    echo "no mount namespaces here: left out"
    exit 0
fi
mkdir -p local/inc/deep shared
node_start() { # as that of cluster.sh
    daemon "$1" unshare --mount sh -c "mount -t tmpfs none '$folder/local' &&
        exec slurmd -D -f '$SLURM_CONF' -N $1"
}
cluster_start 1 || finish
slurm=(--executor slurm --shards 2 --poll 1s --streams 1)

cat > local/scale.comp << 'KERNEL'
#version 450
#extension GL_GOOGLE_include_directive : require
#include "deep/factor.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length() && i < y.length())
        y[i] = FACTOR * x[i];
}
KERNEL
echo '#define FACTOR 3' > local/inc/deep/factor.glsl
echo 'nothing' > local/inc/README
"$NPY" make local/x.npy 'f32[4]' ramp 1 1
"$NPY" make shared/z.npy 'f32[4]' ramp 10 0
line() { # ID IN OUT
    echo "{\"id\":\"$1\",\"kernel\":\"local/scale.comp\",\"I\":[\"local/inc\"],\"groups\":1,\"in\":{\"X\":\"$2\"},\"out\":{\"Y\":\"$3:like X\"}}"
}
{
    line a local/x.npy shared/a.npy
    line b "$folder/local/x.npy" shared/b.npy
    line c shared/z.npy shared/c.npy
} > jobs.jsonl
{
    line d shared/c.npy shared/d.npy
} | sed 's/}$/,"depends_on":["c"]}/' >> jobs.jsonl
submitted() { squeue --me --noheader --states=all -o '%k' | grep -c ':[0-9]*$'; }

case_name="a state folder that is not shared"
cli batch jobs.jsonl "${slurm[@]}" --state local/state
expect_status 2
expect_stderr "local/state is not shared: a probe ran on n1"

case_name="an output where nobody would find it"
line a local/x.npy local/a.npy > lost.jsonl
cli batch lost.jsonl "${slurm[@]}"
expect_status 2
expect_stderr "job \"a\": the folder $folder/local of its output is not on n1"

case_name="a job that replaces a file that is not there"
echo "{\"id\":\"r\",\"eval\":\"y = x + 1\",\"in\":{\"x\":\"shared/z.npy\"},\"out\":{\"y\":\"local/x.npy\"}}" > replaced.jsonl
cli batch replaced.jsonl "${slurm[@]}"
expect_status 2
expect_stderr "of its output is not on n1"
if [ "$(submitted)" -eq 0 ]; then passed=$((passed + 1)); else fail "$(submitted) arrays were submitted"; fi

case_name="kernels, includes and inputs are staged"
cli batch jobs.jsonl "${slurm[@]}"
expect_status 0
expect_stdout "4 jobs: 4 done, 0 failed"
expect_stderr "4 files (542 bytes) are copied"
for out in "a 3 6 9 12" "b 3 6 9 12" "c 30 30 30 30" "d 90 90 90 90"; do
    if [ "$(numbers "shared/${out%% *}.npy")" = "${out#* }" ]; then
        passed=$((passed + 1))
    else
        fail "${out%% *} is $(numbers "shared/${out%% *}.npy")"
    fi
done
staged=$(cd jobs.jsonl.state/staged && find . -type f | sed 's,./[0-9a-f]*/,,' | sort | tr '\n' ' ')
if [ "$staged" = "README deep/factor.glsl scale.comp x.npy " ]; then passed=$((passed + 1)); else fail "staged: $staged"; fi

case_name="--resume probes nothing and keeps the copies"
cli batch jobs.jsonl "${slurm[@]}" --resume
expect_status 0
if [ "$(squeue --me --noheader --states=all -o %k | grep -c probe)" -eq 4 ]; then
    passed=$((passed + 1))
else
    fail "probes: $(squeue --me --noheader --states=all -o %k)"
fi
finish
