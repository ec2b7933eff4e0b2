#!/usr/bin/env bash
# What is asked of a batch beside running it once: its plan, an end after so many failures, a job and
# what depends on it anew, and whether the outputs are what was written.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

# The pid of who came last is in the lock.
fingerprint() {
    find . -type f ! -name '.before' ! -name '.stdout' ! -name '.stderr' ! -name lock -exec cksum {} + | sort
}

"$NPY" make x.npy 'f32[1000]' ramp 0 1
{
    echo '# squares of squares'
    square third b.npy c.npy ',"depends_on":["second"]'
    square first x.npy a.npy
    square second a.npy b.npy ',"depends_on":["first"]'
    square apart x.npy d.npy ',"priority":5'
} > jobs.jsonl

case_name="a plan: all is looked at, nothing is made"
cli batch jobs.jsonl --dry-run --json
expect_status 0
expect_untouched
expect_json '.dry_run and .total == 4 and [.plan[].id] == ["apart", "first", "second", "third"]'
expect_json '.plan[3] | .line == 2 and (.kernel | endswith("square.spv")) and .depends_on == ["second"]'
cli batch jobs.jsonl --dry-run --device nowhere # no device is asked for
expect_status 0
expect_stdout '4 jobs would run'
if [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "there is a state"; fi
square bad nowhere.npy e.npy > bad.jsonl
refuses_plan() { # WORDS ARGUMENT...
    local words=$1
    shift
    cli batch "$@" --dry-run
    expect_status 2
    expect_stderr "$words"
    expect_untouched
}
refuses_plan 'bad.jsonl:1: input nowhere.npy: No such file' bad.jsonl
{ square a x.npy a.npy ',"depends_on":["b"]'; square b x.npy b.npy ',"depends_on":["a"]'; } > circle.jsonl
refuses_plan 'a -> b -> a' circle.jsonl
refuses_plan 'has no job "first"' jobs.jsonl --resume --redo first
# What is in the files, too, but for those that a job is going to write.
echo 'no kernel' > text.spv
echo '__global__ void k(float *x) {}' > k.cu
echo '__kernel void k() {}' > cl.txt
echo 'no array' > text.npy
head -c 2000 x.npy > short.npy
cp text.npy late.npy
{ printf '\x40\0\0\0\0\0\0\0'
  printf '%-64s' '{"w":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}'; head -c 4000 /dev/zero; } > m.safetensors
{
    square good x.npy late.npy
    square later late.npy l.npy ',"depends_on":["good"]'
    echo '{"id":"cu","kernel":"k.cu","groups":1,"in":{"0":"x.npy"}}'
    echo '{"id":"cl","kernel":"cl.txt","groups":1}'
    echo '{"id":"spv","kernel":"text.spv","groups":1}'
    square text text.npy t.npy
    square short short.npy s.npy
    square tensor m.safetensors:w w.npy
    square none m.safetensors:v v.npy
    echo '{"id":"parse","eval":"z = x +","in":{"x":"x.npy"},"out":{"z":"z1.npy"}}'
    echo '{"id":"name","eval":"z = y","in":{"x":"x.npy"},"out":{"z":"z2.npy"}}'
    echo '{"id":"eval","eval":"z = -x","in":{"x":"x.npy"},"out":{"z":"z3.npy"}}'
} > contents.jsonl
refuses_plan 'contents.jsonl:3: kernel k.cu: "device" cuda is missing' contents.jsonl
expect_stderr 'contents.jsonl:4: kernel cl.txt: it is OpenCL C, '
expect_stderr 'contents.jsonl:5: kernel text.spv: it is not a SPIR-V module'
expect_stderr 'contents.jsonl:6: input text.npy: '
expect_stderr 'contents.jsonl:7: input short.npy: '
expect_stderr 'contents.jsonl:9: input m.safetensors: '
expect_stderr "contents.jsonl:10: \"eval\": 'z = x +': column 8: "
expect_stderr "contents.jsonl:11: \"eval\": 'z = y': column 5: there is no input 'y'"
expect_stderr '8 lines are bad'
cli batch contents.jsonl --dry-run --keep-going --json
expect_status 1
expect_json '[.plan[].id] == ["good", "later", "tensor", "eval"]'
expect_untouched
# A batch that runs begins with neither; what is in files is told of each job when its turn comes.
cli batch contents.jsonl
expect_status 2
expect_stderr ':3: kernel k.cu: "device" cuda is missing'
expect_stderr ':11: "eval": '
expect_stderr '3 lines are bad'
expect_untouched
rm late.npy
cat jobs.jsonl bad.jsonl > some.jsonl
cli batch some.jsonl --dry-run --keep-going
expect_status 1
expect_stdout '4 jobs would run'
expect_untouched

case_name="what goes together"
refuses "--redo needs --resume" batch jobs.jsonl --redo first
refuses "--verify runs nothing: it excludes --resume" batch jobs.jsonl --verify --resume
refuses "--html reports a batch that runs" batch jobs.jsonl --dry-run --html page.html
refuses "has no batch" batch jobs.jsonl --verify
refuses "--halt 0" batch jobs.jsonl --halt 0

case_name="a batch that is unchanged"
cli batch jobs.jsonl
expect_status 0
cli batch jobs.jsonl --verify
expect_status 0
expect_stdout '4 outputs of 4 jobs that are done: 4 unchanged'
expect_untouched
refuses_plan 'has a batch of 4 jobs: continue it (--resume), run some of it again (--resume --redo ID), or' jobs.jsonl
ln -s jobs.jsonl link.jsonl
refuses_plan 'jobs.jsonl.state has a batch of 4 jobs' link.jsonl --state jobs.jsonl.state
rm link.jsonl
cli batch jobs.jsonl --dry-run --resume
expect_status 0
expect_stdout '0 jobs would run'
square late d.npy f.npy ',"depends_on":["apart"]' >> jobs.jsonl
cli batch jobs.jsonl --dry-run --resume --redo second --json
expect_json '[.plan[].id] == ["second", "third", "late"]'
expect_untouched
expect_sql "SELECT count(*), sum(state = 'done') FROM jobs" "4|4"

case_name="a folder of another batch"
square other x.npy g.npy > other.jsonl
refuses_plan "jobs.jsonl.state has another batch, of $PWD/jobs.jsonl (4 jobs): give another folder (--state)" \
    other.jsonl --state jobs.jsonl.state
cli batch other.jsonl --dry-run --resume --state jobs.jsonl.state
expect_status 0
expect_stderr "jobs.jsonl.state has the batch of $PWD/jobs.jsonl; the jobs of other.jsonl are added to it"
square first x.npy g.npy > other.jsonl
refuses_plan "undo the change, or give the job a new id; the state folder has the batch of $PWD/jobs.jsonl" \
    other.jsonl --resume --state jobs.jsonl.state
cp jobs.jsonl other.jsonl # the same jobs in another file are no mixture
cli batch other.jsonl --dry-run --resume --state jobs.jsonl.state
expect_status 0
expect_empty .stderr
rm other.jsonl

case_name="a job anew, and what depends on it"
"$NPY" make x.npy 'f32[1000]' ramp 1 1
cp -p d.npy d.before
cli batch jobs.jsonl --resume --redo nobody
expect_status 2
expect_stderr 'has no job "nobody" to run again'
cli batch jobs.jsonl --resume --redo first --keep-changed # "apart" has read x.npy, too
expect_status 0
expect_sql "SELECT id, state, attempts FROM jobs" "third|done|2
first|done|2
second|done|2
apart|done|1
late|done|1"
if cmp -s d.npy d.before && [ ! d.npy -nt d.before ]; then
    passed=$((passed + 1))
else
    fail "what does not depend on it ran again"
fi
"$NPY" make y.npy 'f32[1000]' ramp 1 1
cli run "$SHADERS/square.spv" --groups 16 --in 0=y.npy --out '1=z.npy:f32[1000]'
if cmp -s a.npy z.npy; then passed=$((passed + 1)); else fail "it is not computed anew"; fi
cli batch jobs.jsonl --resume --redo apart
expect_status 0

case_name="outputs that are not what was written"
rm a.npy
touch -r b.npy .time # one byte is another one, and neither size nor time tells
printf '\377' | dd of=b.npy bs=1 seek=200 conv=notrunc status=none
touch -r .time b.npy
truncate -s -4 c.npy
touch -d '1 hour ago' d.npy # the content is what it was
cli batch jobs.jsonl --verify
expect_status 1
expect_stdout 'first: a.npy is missing'
expect_stdout 'second: b.npy has changed: its content is not the recorded one'
expect_stdout 'third: c.npy has changed: its content is not the recorded one'
expect_stdout '5 outputs of 5 jobs that are done: 2 unchanged, 1 missing, 2 changed'
if grep -q 'by size and time' .stdout; then fail "it did not read them"; else passed=$((passed + 1)); fi
expect_untouched
cli batch jobs.jsonl --verify --json --verbose
expect_json '.exit_status == 1 and .done == 5 and .outputs == 5 and .missing == 1 and .changed == 2 and
    .unchanged == 2 and .unchanged_by_time == 0'
expect_json '[.findings[] | [.id, .output, .finding]] == [["third", "c.npy", "changed"],
    ["first", "a.npy", "missing"], ["second", "b.npy", "changed"], ["apart", "d.npy", "unchanged"],
    ["late", "f.npy", "unchanged"]]'
cli batch jobs.jsonl --resume --redo first
expect_status 0
cli batch jobs.jsonl --verify
expect_status 0

case_name="an output that cannot be read"
if [ "$(id -u)" -ne 0 ]; then
    chmod 0 d.npy
    cli batch jobs.jsonl --verify
    expect_status 1
    expect_stdout 'apart: d.npy cannot be checked'
    expect_stdout '5 outputs of 5 jobs that are done: 4 unchanged, 1 unreadable'
    chmod 600 d.npy
fi

case_name="a state of format 3, which has no hash"
sqlite3 jobs.jsonl.state/batch.db 'PRAGMA user_version = 3' \
    "UPDATE progress SET outputs = substr(outputs, 1, instr(outputs, '#') - 1)
         WHERE job IN (SELECT number FROM job WHERE id IN ('first', 'second', 'third'))"
touch -r b.npy .time
printf '\377' | dd of=b.npy bs=1 seek=200 conv=notrunc status=none
touch -r .time b.npy
touch -d '1 hour ago' c.npy
cli batch jobs.jsonl --verify --verbose
expect_status 1
expect_stdout 'first: a.npy has its size and time; its content was not recorded'
expect_stdout 'second: b.npy has its size and time; its content was not recorded'
expect_stdout 'third: c.npy has changed: its size or time is not the recorded one'
expect_stdout 'apart: d.npy is unchanged'
expect_stdout '5 outputs of 5 jobs that are done: 4 unchanged, 1 changed'
expect_stdout '2 of the unchanged by size and time only: an earlier version of bulkhead wrote them, and did not record the content'
cli batch jobs.jsonl --verify --json
expect_json '.unchanged == 4 and .unchanged_by_time == 2 and .changed == 1'
expect_sql 'PRAGMA user_version' 3
cli batch jobs.jsonl --resume --redo first
expect_status 0
expect_sql 'PRAGMA user_version' 4
cli batch jobs.jsonl --verify
expect_status 0
expect_stdout '5 outputs of 5 jobs that are done: 5 unchanged'
if grep -q 'by size and time' .stdout; then fail "no hash was recorded"; else passed=$((passed + 1)); fi

case_name="what a later job has replaced is its"
printf '%s\n' '#version 450' 'layout(local_size_x = 1) in;' \
    'layout(set = 0, binding = 0) buffer Counter { uint counter; };' 'void main() { counter++; }' > count.comp
"$NPY" make count.npy 'u32[1]' ramp 7 0
{
    echo '{"id":1,"kernel":"count.comp","groups":1,"inout":{"0":"count.npy"}}'
    echo '{"id":2,"kernel":"count.comp","groups":1,"inout":{"0":"./count.npy"},"depends_on":[1]}'
} > count.jsonl
cli batch count.jsonl
expect_status 0
cli batch count.jsonl --verify
expect_status 0
expect_stdout '2 outputs of 2 jobs that are done: 1 unchanged, 1 replaced'
printf '\377' | dd of=count.npy bs=1 seek=128 conv=notrunc status=none
cli batch count.jsonl --verify
expect_status 1
expect_stdout '2: ./count.npy has changed'

case_name="so many failures end it"
echo "no kernel" > bad.spv
"$NPY" make d.npy 'u32[1000]' ramp 0 1
{
    for i in $(seq 200); do
        echo "{\"id\":\"j$i\",\"kernel\":\"bad.spv\",\"groups\":1,\"out\":{\"0\":\"$i.npy:f32[1]\"}}"
    done
    # A worker has it, or nobody: it is not cancelled.
    echo "{\"id\":\"endless\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[65535],\"priority\":9,\
\"inout\":{\"0\":\"d.npy:h.npy\"},\"deadline\":\"500ms\",\"retries\":0}"
} > jobs.jsonl
rm -r jobs.jsonl.state
cli batch jobs.jsonl --halt 3 --streams 1 --json
expect_status 1
expect_stderr 'have failed (--halt 3); --resume runs the others'
expect_stderr ' waiting'
if grep -q ' left$' .stderr; then fail "a time is left although nothing runs"; else passed=$((passed + 1)); fi
expect_json '.halted and .exit_status == 1 and .failed >= 3 and .failed <= 12 and .waiting >= 188'
expect_sql "SELECT count(*) FROM jobs JOIN progress ON job = number WHERE jobs.state = 'waiting' AND
    (tried > 0 OR started_ns > 0 OR progress.ended_ns > 0)" 0
expect_sql "SELECT count(*) FROM attempt WHERE status = 46" 0
failed_before=$(jq .failed .stdout)
cli batch jobs.jsonl --resume --halt 300 --json
expect_status 1
expect_json --argjson before "$failed_before" '(.halted | not) and .failed == 200 and .waiting == 0 and
    .quarantined == 1'

# Under ASan what is dropped of it is freed, too.
case_name="a bad line of a job that is done is told, and counts as none"
rm -r jobs.jsonl.state
square one x.npy one.npy > jobs.jsonl
cli batch jobs.jsonl
expect_status 0
sed 's/"groups"/"grops"/' jobs.jsonl > bad.jsonl
cli batch bad.jsonl --state jobs.jsonl.state --resume --keep-going
expect_stderr 'bad.jsonl:1: unknown key "grops"'
expect_stdout "1 job: 1 done, 0 failed"
expect_status 0
finish
