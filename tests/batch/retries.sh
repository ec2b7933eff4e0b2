#!/usr/bin/env bash
# Who is blamed for what, with workers that fail where they are told to (bulkhead-worker-faulty).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

"$NPY" make x.npy 'f32[1000]' ramp 0 1
mkdir out
for i in $(seq 20); do
    echo "{\"id\":\"j$i\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[16],\"in\":{\"0\":\"x.npy\"},\
\"out\":{\"1\":\"out/$i.npy:f32[1000]\"}}"
done > jobs.jsonl

check_outputs() {
    local i
    for i in $(seq 20); do
        [ -e "out/$i.npy" ] || continue
        "$NPY" check square x.npy "out/$i.npy" > .check || fail "out/$i.npy is wrong"
    done
    rm -rf .check jobs.jsonl.state out/*
}

# The first worker fails in its third job; what it says about itself is a verdict of that job alone.
while read -r action verdict; do
    case_name="$action once, and tried again"
    with_faults "1:submitted:3=$action" cli batch jobs.jsonl --streams 1
    expect_status 0
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 20
    expect_sql "SELECT sum(guilty) FROM attempt" 1
    expect_sql "SELECT status FROM attempt WHERE guilty" "$verdict"
    check_outputs

    case_name="$action once, with no retries: one is quarantined, its neighbours are not"
    with_faults "1:submitted:3=$action" cli batch jobs.jsonl --streams 1 --retry 0
    expect_status 1
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 19
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'quarantined'" 1
    check_outputs
done << EOF_ACTIONS
segv $(sed -n 's/^BH_STATUS(WORKER_SIGNAL, \([0-9]*\),.*/\1/p' "$STATUS_DEF")
exit7 $(sed -n 's/^BH_STATUS(WORKER_EXIT, \([0-9]*\),.*/\1/p' "$STATUS_DEF")
sigsys $(sed -n 's/^BH_STATUS(SECCOMP, \([0-9]*\),.*/\1/p' "$STATUS_DEF")
EOF_ACTIONS

# One at a time: loaders count, too, and which worker is the second differs from run to run.
for fault in after_record:2=kill before_record:4=abort started:3=kill; do
    case_name="a worker that dies before it says what it did ($fault): every job in the end"
    with_faults "1:$fault" cli batch jobs.jsonl --streams 1
    expect_status 0
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 20
    # What was recorded before the death is kept: it need not cost an attempt.
    [ "${fault%%:*}" = after_record ] || expect_sql "SELECT count(*) > 0 FROM attempt WHERE status != 0" 1
    check_outputs
done

# T2. The hostile job ends well, and leaves a worker that says of the next one that it could not be
# compiled, and dies: that kernel was refused for ten minutes, and all of its jobs failed.
case_name="a hostile job that ends well costs the innocent nothing"
sed "1{h;s/j1/hostile/;s/out.1.npy/out\\/h.npy/;s/}\$/,\"trusted\":true}/;p;x}
    s/}\$/,\"depends_on\":[\"hostile\"]}/" jobs.jsonl > hostile.jsonl
with_faults "1:lie_compile:2=fail" cli batch hostile.jsonl --streams 1 --retry 0 \
    --state jobs.jsonl.state
expect_status 0
expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 21
expect_sql "SELECT sum(guilty) FROM attempt" 0
expect_sql "SELECT count(*) FROM attempt WHERE blame = 1" 1
expect_sql "SELECT count(*) FROM attempt WHERE blame = 2" 0
check_outputs

case_name="a worker that a hostile job leaves wedged costs the innocent nothing"
with_faults "1:started:2=hang" cli batch hostile.jsonl --streams 1 --retry 0 \
    --deadline $((2 * slowness))s --state jobs.jsonl.state
expect_status 0
expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 21
expect_sql "SELECT sum(guilty) FROM attempt" 0
check_outputs

# A GPU that is lost after seconds: suspected, however alone it was. The first time is free; then it
# counts, or it would be tried a hundred times.
case_name="a kernel that is too long for a shared GPU is not tried for ever"
echo "{\"id\":\"long\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[4096],\"out\":{\"0\":\"out/l.npy:u32[64]\"}}" \
    > long.jsonl
on_one_processor with_faults "*:poses_as_gpu:*=fail,*:waited:1=fail" cli batch long.jsonl --streams 1 --retry 0 \
    --deadline 3.6s --grace "${slowness}s" --state jobs.jsonl.state
expect_status 1
expect_sql "SELECT count(*) FROM jobs WHERE state = 'quarantined'" 1
expect_sql "SELECT count(*) FROM attempt WHERE blame = 1" 2
expect_sql "SELECT sum(guilty) FROM attempt" 1
check_outputs

# T3: nobody runs on the worker that a hostile job has left.
case_name="--isolate job: a worker for each"
# `submitted` is for workers with a device: the loaders read for all jobs. A worker that had a second
# job would abort; without --isolate, workers do.
with_faults "?*:submitted:2=abort" cli batch hostile.jsonl --isolate job --retry 0 \
    --state jobs.jsonl.state
if [ "${fired[0]}" = 0 ]; then passed=$((passed + 1)); else fail "a worker had two jobs"; fi
expect_status 0
expect_sql "SELECT count(*) FROM attempt WHERE status = 0" 21
expect_sql "SELECT count(*) FROM attempt" 21
expect_sql "SELECT count(DISTINCT worker_pid) FROM attempt" 21
check_outputs

case_name="without --isolate job a worker has several"
head -n 3 hostile.jsonl > few.jsonl
with_faults "*:submitted:2=abort" cli batch few.jsonl --streams 1 --retry 0 --state jobs.jsonl.state
expect_status 0
rm few.jsonl
check_outputs

case_name="--isolate kernel: a worker for each kernel"
cli batch hostile.jsonl --isolate kernel --streams 1 --state jobs.jsonl.state
expect_status 0
expect_sql "SELECT count(DISTINCT worker_pid) FROM attempt" 2
check_outputs

case_name="--isolate knows three words"
cli batch hostile.jsonl --isolate worker --state jobs.jsonl.state
expect_status 2
expect_stderr "--isolate worker: it is stream, kernel or job"

case_name="no worker at all: nothing is made"
BULKHEAD_WORKER=$folder/none cli batch jobs.jsonl
expect_status 3
expect_untouched
if [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "there is a state"; fi

if [ -n "${BULKHEAD_TEST_NIGHTLY:-}" ]; then
    case_name="workers that never start: after a minute it is over, and everything waits"
    LIMIT=300 with_faults "*:connect:1=exit7" cli batch jobs.jsonl
    expect_status 3
    expect_stderr "UNAVAILABLE"
    expect_stderr "--resume continues"
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'waiting'" 20
    cli batch jobs.jsonl --resume
    expect_status 0
    check_outputs

    case_name="the same with many jobs, which are not all tried again and again"
    mkdir many
    for i in $(seq 3000); do
        echo "{\"id\":\"m$i\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[16],\
\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"many/$i.npy:f32[1000]\"}}"
    done > jobs.jsonl
    LIMIT=300 with_faults "*:connect:1=exit7" cli batch jobs.jsonl
    expect_status 3
    expect_stderr "UNAVAILABLE"
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'waiting'" 3000
    expect_sql "SELECT count(*) < 1000 FROM attempt" 1
    rm -rf many jobs.jsonl.state
fi
finish
