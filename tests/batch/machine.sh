#!/usr/bin/env bash
# What the machine does to a batch, and no job can help: too few descriptors, files that go, disks
# that are full or fail. It ends no job that could run, and what ends the batch is told.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

"$NPY" make x.npy 'f32[1000]' ramp 0 1
twice='#version 450
#include "twice.glsl"
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length() && i < y.length())
        y[i] = twice(x[i]);
}'

# -- descriptors -----------------------------------------------------------------------------------
# Kernels and what they include are files, too, and there may be none to open them with.
case_name="few descriptors, and each job has its own kernel and includes"
mkdir -p own
echo 'float twice(float x) { return x * x; }' > own/twice.glsl
echo "$twice" > own/twice.comp
for i in $(seq 150); do
    cp "$SHADERS/square.spv" "own/$i.spv"
    cp x.npy "own/$i.npy"
    kernel="\"own/$i.spv\""
    [ $((i % 3)) -ne 0 ] || kernel="\"own/twice.comp\",\"I\":[\"own/twice.glsl\"]"
    echo "{\"id\":\"$i\",\"kernel\":$kernel,\"groups\":[16],\"in\":{\"0\":\"own/$i.npy\"},\
\"out\":{\"1\":\"own/$i.out.npy:f32[1000]\"}}"
done > jobs.jsonl
(ulimit -n 100; cli batch jobs.jsonl; exit "$status")
status=$?
expect_status 0
expect_stdout "150 jobs: 150 done, 0 failed"
rm -rf own jobs.jsonl.state

# -- files that go ---------------------------------------------------------------------------------
case_name="what is complete needs its files no more"
echo 'float twice(float x) { return x * x; }' > twice.glsl
echo "$twice" > twice.comp
cp x.npy y.npy
echo '{"id":"a","kernel":"twice.comp","I":["twice.glsl"],"groups":[16],"in":{"0":"y.npy"},
"out":{"1":"z.npy:f32[1000]"}}' | tr -d '\n' > jobs.jsonl
BULKHEAD_TEST_STEP=batch_sealed:1 cli batch jobs.jsonl
expect_status 137
rm twice.glsl twice.comp y.npy
cli batch jobs.jsonl --resume
expect_status 0
"$NPY" check square x.npy z.npy > .check && passed=$((passed + 1))
rm -rf jobs.jsonl.state z.npy .check

case_name="an output whose place is taken keeps its own job, and nobody else's"
{ square a x.npy a.npy; square after a.npy after.npy ',"depends_on":["a"]'; } > jobs.jsonl
BULKHEAD_TEST_STEP=batch_sealed:1 cli batch jobs.jsonl
expect_status 137
expect_sql "SELECT sealed FROM progress WHERE job = 1" 1
for i in $(seq 20); do square "o$i" x.npy "o$i.npy"; done >> jobs.jsonl
mkdir a.npy
for _ in 1 2; do
    cli batch jobs.jsonl --resume
    expect_status 3
    expect_stderr "a: complete, but cannot be put in place: out 1=a.npy:f32[1000]: not a regular file"
    expect_stderr "1 job is complete but cannot be put in place; --resume tries again"
    expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 20
    expect_sql "SELECT id, state FROM jobs WHERE state != 'done' ORDER BY id" $'a|running\nafter|submitted'
done
rmdir a.npy
cli batch jobs.jsonl --resume
expect_status 0
expect_sql "SELECT count(*) FROM jobs WHERE state = 'done'" 22
expect_sql "SELECT attempt, started, started_ns < ended_ns, status, executed, exit_code, kernel_name \
FROM attempt WHERE job = 1" "1|1|1|0|2|-1|square"
"$NPY" check square x.npy a.npy > .check && passed=$((passed + 1))
rm -rf jobs.jsonl.state ./a.npy after.npy o*.npy .check

case_name="all outputs whose places are taken are told"
square a x.npy a.npy > jobs.jsonl
BULKHEAD_TEST_STEP=batch_sealed:1 cli batch jobs.jsonl
expect_status 137
square b x.npy b.npy >> jobs.jsonl
mkdir a.npy
BULKHEAD_TEST_STEP=batch_sealed:1 cli batch jobs.jsonl --resume
expect_status 137
mkdir b.npy
cli batch jobs.jsonl --resume --json
expect_status 3
for job in a b; do
    expect_stderr "$job: complete, but cannot be put in place: out 1=$job.npy:f32[1000]: not a regular file"
done
expect_stderr "2 jobs are complete but cannot be put in place; --resume tries again"
told=$(jq -c '[.exit_status, .running, (.stuck | sort_by(.id)[] | .id, .line, .message), .failures]' .stdout)
if [ "$told" = '[3,2,"a",1,"out 1=a.npy:f32[1000]: not a regular file","b",2,"out 1=b.npy:f32[1000]: not a regular file",[]]' ]; then
    passed=$((passed + 1))
else
    fail "--json says $told"
fi
rmdir a.npy b.npy
cli batch jobs.jsonl --resume --json
expect_status 0
expect_stdout '"stuck": []'
rm -rf jobs.jsonl.state ./a.npy b.npy

case_name="a folder that is away when its output is to be put there"
mkdir away
printf '%s\n' '#version 450' 'layout(local_size_x = 1) in;' \
    'layout(set = 0, binding = 0) buffer Counter { uint counter; };' \
    'layout(set = 0, binding = 1) buffer Copy { uint copy; };' \
    'void main() { counter++; copy = counter; }' > count.comp
"$NPY" make count.npy 'u32[1]' ramp 0 0
echo '{"id":"a","kernel":"count.comp","groups":[1],"inout":{"0":"count.npy"},
"out":{"1":"away/copy.npy:u32[1]"}}' | tr -d '\n' > jobs.jsonl
BULKHEAD_TEST_STEP=batch_renamed:1 cli batch jobs.jsonl # the first of the two
expect_status 137
mv away elsewhere
for _ in 1 2; do
    cli batch jobs.jsonl --resume --retry-failed
    expect_status 3
    expect_stderr "a: complete, but cannot be put in place: out 1=away/copy.npy:u32[1]: its folder"
done
mv elsewhere away
cli batch jobs.jsonl --resume
expect_status 0
for file in count.npy away/copy.npy; do
    if [ "$("$NPY" show "$file")" = "u32[1] 1" ]; then passed=$((passed + 1)); else fail "$file: $("$NPY" show "$file")"; fi
done
if [ "$(ls -A away)" = copy.npy ]; then passed=$((passed + 1)); else fail "something is left"; fi
rm -rf jobs.jsonl.state away count.comp count.npy

# -- arguments -------------------------------------------------------------------------------------
square a x.npy a.npy > jobs.jsonl
refuses "--memory-limit 1M: '1M' is too small: use 64M to 1048576T, or none" batch jobs.jsonl --memory-limit 1M
case_name="a file of jobs that is not there is named once"
cli batch none.jsonl
expect_status 2
if [ "$(< .stderr)" = "bulkhead batch: none.jsonl: No such file or directory" ]; then
    passed=$((passed + 1)); else fail "it says more"; fi

case_name="a signal while jobs are read is told"
mkfifo jobs.pipe
exec 9<> jobs.pipe # it has no end
"$BULKHEAD" batch jobs.pipe > .stdout 2> .stderr 9>&- &
pid=$!
head -c 300000 /dev/zero | tr '\0' ' ' >&9 # more than a pipe holds: it is being read
kill -TERM "$pid"
echo >&9 # it may have come just before a read, which waits then
wait "$pid"
status=$?
exec 9>&-
expect_status 143
expect_stderr "bulkhead batch: cancelled by SIGTERM"
if [ ! -e jobs.pipe.state ]; then passed=$((passed + 1)); else fail "there is a state"; fi
rm jobs.pipe

case_name="a summary that cannot be written is not the state's fault"
{ for i in $(seq 200); do
    echo "{\"id\":\"b$i\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[1],\"in\":{\"0\":\"x.npy\"}}"
done; } > bad.jsonl
"$BULKHEAD" batch bad.jsonl --json > /dev/full 2> .stderr
status=$?
: > .stdout
expect_stderr "cannot write to standard output"
if grep -q "cannot be read" .stderr; then fail "it blames the state"; else passed=$((passed + 1)); fi
rm -rf bad.jsonl bad.jsonl.state

case_name="the least memory limit that is accepted is one that the library accepts"
cli batch jobs.jsonl --memory-limit 64M
if [ "$status" -ne 2 ] && [ "$status" -ne 3 ]; then passed=$((passed + 1)); else fail "refused"; fi
rm -rf jobs.jsonl.state a.npy

# -- how large a file may be ------------------------------------------------------------------------
case_name="ulimit -f ends what is larger, and nothing else"
"$NPY" make big.npy 'f32[1000000]' ramp 0 1
{ square a x.npy a.npy; square big big.npy big.out.npy; square after big.out.npy c.npy ',"depends_on":["big"]'
  square b x.npy b.npy; } > jobs.jsonl
(ulimit -f 2000; cli batch jobs.jsonl; exit "$status")
status=$?
expect_stderr "big.npy: 4000000 bytes: File too large; files and shared memory are limited to 2000 KiB: raise that (ulimit -f)"
if "$BULKHEAD" devices --json | jq -es '.[0].devices[0].driver_info | test("^Mesa (2[3-9]|[3-9])")' > /dev/null 2>&1
then # its memory is a file, which has to fit (decision 2): the limit is named, and no job is lost
    expect_status 3
    expect_stderr "this driver needs RLIMIT_FSIZE to be at least"
    expect_stdout "4 jobs: 0 done, 2 failed, 2 waiting"
else
    expect_status 1
    expect_stdout "4 jobs: 2 done, 2 failed"
fi
rm -rf jobs.jsonl.state a.npy b.npy
for limit in 8 1000; do # less than a worker and its host share
    case_name="ulimit -f $limit: nothing begins, and the limit is named"
    (ulimit -f $limit; cli batch jobs.jsonl; exit "$status")
    status=$?
    expect_status 3
    expect_stderr "files and shared memory are limited to $limit KiB: raise that (ulimit -f)"
    expect_empty .stdout
    expect_untouched
done
case_name="ulimit -f, and a record that is larger"
for i in $(seq 6000); do square "$i" x.npy "$i.npy"; done > large.jsonl
(ulimit -f 1100; cli batch large.jsonl; exit "$status")
status=$?
expect_status 3
expect_stderr "large.jsonl.state/batch.db cannot be written: File too large; files and shared memory are limited to 1100 KiB: raise that (ulimit -f)"
if [ "$(find . -name '[0-9]*.npy' | wc -l)" -eq 0 ]; then passed=$((passed + 1)); else fail "a job ran"; fi
rm -r large.jsonl large.jsonl.state
case_name="ulimit -f: what is left runs with a higher one"
cli batch jobs.jsonl --resume
expect_status 0
expect_stdout "4 jobs: 4 done, 0 failed"
rm -rf jobs.jsonl.state ./*.npy
"$NPY" make x.npy 'f32[1000]' ramp 0 1

# -- the disk of the state -------------------------------------------------------------------------
# A small tmpfs in a mount namespace of our own; where that is not to be had, the case is left out.
full_disk() { # SIZE COMMAND: in $folder/small
    unshare --user --map-root-user --mount sh -c \
        "mount -t tmpfs -o size=$1 none small && $2" 2>> .stderr
}
mkdir -p small
if full_disk 64k true; then
    case_name="it is full in mid-run: what to do is told, and where"
    for i in $(seq 1500); do # more than are through before it is
        square "$i" x.npy "o/$i.npy" ",\"depends_on\":[$([ "$i" = 1 ] || echo "\"$((i - 1))\"")]"
    done > jobs.jsonl
    mkdir -p o
    rm -f .stderr
    full_disk 8m "'$BULKHEAD' batch jobs.jsonl --state small/state > .stdout &
        pid=\$!
        until [ \"\$(sqlite3 small/state/batch.db 'SELECT count(*) FROM attempt')\" -gt 0 ]; do
            kill -0 \$pid || break
        done 2> .sql
        head -c 16000000 /dev/zero > small/ballast 2> .sql
        wait \$pid"
    status=$?
    expect_status 3
    expect_stderr "small/state/batch.db: the disk is full: free some space; the record is intact; --resume continues"
    if grep -q -e '--resume.*--resume' .stderr; then fail "it is told twice"; else passed=$((passed + 1)); fi
    rm -rf o
else
    echo "no mount namespace: the full disk is left out"
fi

finish
