#!/usr/bin/env bash
# bulkhead batch from outside: what is bad is told with its line, what fails fails for the right
# reason and alone, what is left goes on.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

state_of() { # ID
    sqlite3 jobs.jsonl.state/batch.db "SELECT state FROM jobs WHERE id = '$1'"
}

expect_state() { # ID STATE
    if [ "$(state_of "$1")" = "$2" ]; then passed=$((passed + 1)); else fail "$1 is $(state_of "$1"), not $2"; fi
}

expect_square() { # IN OUT
    if "$NPY" check square "$1" "$2" > .check; then passed=$((passed + 1)); else fail "$(cat .check)"; fi
    rm -f .check
}

expect_lines() { # so many lines on standard error
    if [ "$(wc -l < .stderr)" -eq "$1" ]; then passed=$((passed + 1)); else fail "not $1 lines"; fi
}

"$NPY" make x.npy 'f32[1000]' ramp 0 1

# -- what is bad -----------------------------------------------------------------------------------
case_name="two bad lines, both told, nothing started"
{ square good x.npy y.npy; echo '{"id":'; square b x.npy z.npy ',"dedline":"1s"'; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 3
expect_stderr "jobs.jsonl:2: "
expect_stderr "jobs.jsonl:3: "
expect_stderr "deadline"
expect_stderr "2 lines are bad: nothing was started; --keep-going skips bad lines; duplicate ids, dependencies and shared files were not checked"
expect_untouched

case_name="an output of another format, of a kernel and of an expression"
{ square a x.npy y.jpeg
  echo '{"id":"b","eval":"z = 2*x","in":{"x":"x.npy"},"out":{"z":"z.f32"}}'
  echo '{"id":"c","kernel":"k.spv","groups":[1],"inout":{"0":"x.npy:y.webp"}}'; } > bad.jsonl
cli batch bad.jsonl
expect_status 2
for line in '1: "out" "1": %jpeg' '2: "out" "z": %f32' '3: "inout" "0": %webp'; do
    expect_stderr "bad.jsonl:${line/\%/outputs are .npy files, and a name that ends in .}"
done
expect_stderr "3 lines are bad"
expect_untouched
rm bad.jsonl

case_name="missing files are told with malformed lines"
{ square a nowhere.npy a.npy; echo '{"id":'; square c later.npy c.npy ',"depends_on":["b"]'; } > more.jsonl
cli batch more.jsonl
expect_status 2
expect_lines 3
expect_stderr "more.jsonl:2: "
expect_stderr "more.jsonl:1: input nowhere.npy: No such file or directory"
expect_stderr "2 lines are bad"
rm more.jsonl

case_name="errors are in the order of the lines, the first fifty, and how many more there are"
{ square a nowhere.npy a.npy; echo '{"id":'; square c nowhere.npy no/c.npy
  square d x.npy d.npy ',"depends_on":["e"]'; echo '{"id":"e","dedline":1}'; } > order.jsonl
told() { grep -o '^order.jsonl:[0-9]*' .stderr | cut -d: -f2 | tr '\n' ' '; }
cli batch order.jsonl
expect_status 2
if [ "$(told)" = "1 2 3 5 " ]; then passed=$((passed + 1)); else fail "lines $(told)"; fi
cli batch order.jsonl --keep-going --json
expect_status 1
if [ "$(told)" = "1 2 3 4 5 " ]; then passed=$((passed + 1)); else fail "lines $(told)"; fi
expect_json '[.failures[].line] == [1, 2, 3, 4, 5]'
rm -r order.jsonl.state
{ for ((i = 0; i < 60; i++)); do echo '{"id":"a","dedline":1}'; done; square a nowhere.npy a.npy; } > order.jsonl
cli batch order.jsonl
expect_status 2
expect_lines 52
expect_stderr "order.jsonl:50: unknown key"
expect_stderr "order.jsonl: and 11 more errors"
expect_stderr "61 lines are bad: nothing was started"
rm order.jsonl

case_name="the same with --keep-going"
cli batch jobs.jsonl --keep-going --json --html page.html
expect_status 1
expect_stderr "jobs.jsonl:2: "
expect_stderr "jobs.jsonl:3: "
expect_stderr "1 of 3 done, 2 failed"
expect_json '.total == 3 and .done == 1 and .failed == 2 and (.failures | length) == 2'
expect_json '.failures[0].id == null and .failures[0].line == 2 and .failures[0].code == null'
expect_json '.failures[1].id == "b" and (.failures[1].message | contains("dedline"))'
if grep -q dedline page.html; then passed=$((passed + 1)); else fail "not on the page"; fi
rm -f page.html
expect_state good "done"
expect_square x.npy y.npy
rm -rf jobs.jsonl.state y.npy

case_name="a page that cannot be written in the end: the object knows"
square a x.npy page.npy > jobs.jsonl
cli batch jobs.jsonl --json --html page.npy
expect_status 3
expect_stderr "bulkhead batch: --html page.npy: "
expect_json '.exit_status == 3 and .done == 1'
expect_square x.npy page.npy
rm -rf jobs.jsonl.state page.npy

case_name="what depends on a bad line goes with it"
{ square a x.npy a.npy; square b x.npy b.npy ',"groups":[1]'; square c b.npy c.npy ',"depends_on":["b"]'
  square d c.npy d.npy ',"depends_on":["c","a"]'; } > jobs.jsonl
cli batch jobs.jsonl --keep-going --json
expect_status 1
expect_stderr 'jobs.jsonl:2: '
expect_stderr 'jobs.jsonl:3: it depends on "b", whose line is bad'
expect_stderr 'jobs.jsonl:4: it depends on "c", which cannot run either'
expect_json '.total == 4 and .failed == 3 and ([.failures[].origin] == [null, "b", "b"])'
expect_state a "done"
rm -rf jobs.jsonl.state ./?.npy
"$NPY" make x.npy 'f32[1000]' ramp 0 1

case_name="ids given twice"
{ square a x.npy a.npy; square a x.npy b.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 1
expect_stderr "jobs.jsonl:2"
expect_stderr '"a"'
if [ ! -e a.npy ]; then passed=$((passed + 1)); else fail "it ran"; fi
rm -rf jobs.jsonl.state

case_name="duplicate ids and dependencies are checked after bad lines, and it says so"
{ square a x.npy a.npy; square a x.npy b.npy; square c x.npy c.npy ',"depends_on":["nobody"]'; echo '{'; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 2
expect_stderr "jobs.jsonl:4: not JSON: "
expect_stderr "1 line is bad: nothing was started; --keep-going skips bad lines; duplicate ids, dependencies and shared files were not checked"

case_name="a file that holds no jobs"
for ((i = 0; i < 500; i++)); do echo 'no job'; done > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 12
expect_stderr "jobs.jsonl:10: not JSON: '[' or '{' expected near 'no' (read up to column 2)"
expect_stderr "bulkhead batch: jobs.jsonl: 500 lines are not JSON, the first 10 are listed: is it a file of jobs?"
expect_stderr "500 lines are bad: nothing was started"
{ square a x.npy a.npy; for ((i = 0; i < 11; i++)); do echo 'no job'; done; } > jobs.jsonl
cli batch jobs.jsonl --keep-going --json
expect_status 1
expect_stderr "11 lines are not JSON"
expect_json '.done == 1 and .failed == 11 and (.failures | length) == 11 and .failures[10].line == 12'
rm -rf jobs.jsonl.state a.npy

case_name="a cycle is named"
{ square a c.npy a.npy ',"depends_on":["c"]'; square b a.npy b.npy ',"depends_on":["a"]'
  square c b.npy c.npy ',"depends_on":["b"]'; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 1
if grep -qE 'a -> . -> . -> a|b -> . -> . -> b|c -> . -> . -> c' .stderr; then
    passed=$((passed + 1)); else fail "no cycle in it"; fi
rm -rf jobs.jsonl.state

case_name="a dependency that does not exist"
square a x.npy a.npy ',"depends_on":["nobody"]' > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 1
expect_stderr "nobody"
rm -rf jobs.jsonl.state

case_name="two that write one file"
{ square a x.npy a.npy; square b x.npy ./a.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_lines 1
expect_stderr "a.npy"
rm -rf jobs.jsonl.state

case_name="a file by two names, through links"
mkdir -p d && ln -s d dl && cp x.npy d/l.npy && ln -s d/l.npy link.npy
{ square a x.npy d/y.npy; square b x.npy dl/y.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_stderr '"b" writes d/y.npy, which "a" (line 1) writes, too'
{ square a x.npy d/l.npy; square b x.npy link.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_stderr '"b" writes d/l.npy, which "a" (line 1) writes, too'
{ square a x.npy d/z.npy; square b dl/../d/z.npy zz.npy ',"depends_on":["a"]'; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 0
expect_state b "done"
rm -rf jobs.jsonl.state d dl link.npy zz.npy

case_name="links that lead to a file that is not there yet"
mkdir -p d/e && ln -s a.npy d/l.npy && ln -s "$PWD/d/l.npy" d/e/m.npy && ln -s ../l.npy d/e/n.npy
ln -s nofolder/a.npy d/o.npy
for link in d/l.npy d/e/m.npy d/e/n.npy; do
    { square a x.npy d/a.npy; square b "$link" b.npy; } > jobs.jsonl
    cli batch jobs.jsonl
    expect_status 2
    expect_stderr '"b" reads d/a.npy, which "a" (line 1) writes'
done
for link in d/l.npy d/e/m.npy d/e/n.npy; do
    { square a x.npy d/a.npy; square b x.npy "$link"; } > jobs.jsonl
    cli batch jobs.jsonl
    expect_status 2
    expect_stderr '"b" writes d/a.npy, which "a" (line 1) writes, too'
done
{ square a x.npy d/a.npy; square b d/e/n.npy b.npy ',"depends_on":["a"]'
  square c x.npy d/o.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 1
expect_state b "done"
expect_state c failed
expect_stderr "it is a symbolic link whose target does not exist"
rm -rf jobs.jsonl.state d b.npy

case_name="an output that is an input behind a link fails, and only that job"
cp x.npy kept.npy
cp x.npy held.npy
ln -s kept.npy soft.npy
ln held.npy hard.npy
{ square a kept.npy soft.npy; square b held.npy hard.npy; square c x.npy c.npy; } > jobs.jsonl
cli batch jobs.jsonl --json
expect_status 1
expect_json '.done == 1 and .failed == 2 and ([.failures[].message] | all(contains("reads that file")))'
if cmp -s x.npy kept.npy && cmp -s x.npy hard.npy; then passed=$((passed + 1)); else fail "an input was replaced"; fi
expect_square x.npy c.npy
rm -rf jobs.jsonl jobs.jsonl.state kept.npy held.npy soft.npy hard.npy c.npy

case_name="an array that is not of the kernel's type fails, and only that job"
"$NPY" make wide.npy 'f64[500]' ramp 0 1
{ square a wide.npy a.npy; square b x.npy b.npy; square c wide.npy c.npy ',"reinterpret":true'
  square d x.npy d.npy | sed 's/f32\[/u32[/'; } > jobs.jsonl
cli batch jobs.jsonl --json
expect_status 1
expect_json '.done == 2 and .failed == 2 and ([.failures[].code] | all(. == "BINDING_MISMATCH"))'
expect_json '.failures[0].id == "a" and (.failures[0].message
    | contains("the array is f64, the kernel declares f32[] at binding 0.0") and contains("\"reinterpret\": true"))'
expect_json '.failures[1].id == "d" and (.failures[1].message | contains("the output is u32"))'
expect_square x.npy b.npy
if [ -e c.npy ] && [ ! -e a.npy ]; then passed=$((passed + 1)); else fail "not c.npy alone"; fi
rm -rf jobs.jsonl jobs.jsonl.state [a-d].npy wide.npy

case_name="more than the device binds is told with both numbers, and only of that job"
limit=$("$BULKHEAD" devices --json | jq '.devices[0].max_storage_range')
elements=$((limit / 4 + 1))
# A header, and a hole: nobody loads it.
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': ($elements,), }" > huge.npy
truncate --size +$((4 * elements)) huge.npy
{ square a huge.npy a.npy; square b x.npy b.npy
  square c x.npy c.npy | sed "s/f32\[1000\]/f32[$elements]/"; } > jobs.jsonl
cli batch jobs.jsonl --json
expect_status 1
expect_json ".done == 1 and .failed == 2 and ([.failures[].code] | all(. == \"LIMIT_EXCEEDED\")) and
    ([.failures[].message] | all(contains(\": $((4 * elements)) bytes, \") and contains(\" binds $limit at most\")))"
expect_square x.npy b.npy
if [ -e a.npy ] || [ -e c.npy ]; then fail "outputs of refused jobs"; else passed=$((passed + 1)); fi
rm -rf jobs.jsonl jobs.jsonl.state [a-d].npy huge.npy

case_name="missing files, all of them told"
mkdir -p folder.npy other.npy
{ square a nowhere.npy a.npy; square b x.npy nofolder/b.npy; square c folder.npy c.npy
  square d x.npy other.npy
  echo '{"id":"e","kernel":"none.spv","groups":[1],"in":{"0":"nowhere.npy"}}'; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 2
expect_stderr "jobs.jsonl:1: input nowhere.npy: No such file or directory"
expect_stderr "jobs.jsonl:2: output nofolder/b.npy: its folder: No such file or directory"
expect_stderr "jobs.jsonl:3: input folder.npy: not a regular file"
expect_stderr "jobs.jsonl:4: output other.npy: it exists and is not a regular file"
expect_stderr "jobs.jsonl:5: kernel none.spv: No such file or directory (looked for in $(pwd -P))"
expect_stderr "(looked for in $(pwd -P)); the same for 1 more line" # line 5
expect_stderr "5 lines are bad"
expect_untouched
rm -rf folder.npy other.npy

case_name="what the batch itself lives on is no output"
mkdir -p own.state
cp "$SHADERS/square.spv" own_kernel
ln -s . around
{ square a x.npy own; square b x.npy around/own; square c x.npy own.state/lock
  echo '{"id":"d","kernel":"own_kernel","groups":[1],"out":{"0":"./own_kernel:u32[4]"}}'
  square e x.npy "$PWD/own_kernel"; } > own.lines
mv own.lines own
cli batch own
expect_status 2
expect_stderr "own:1: output own: the jobs are read from that file"
expect_stderr "own:2: output around/own: the jobs are read from that file"
expect_stderr "own:3: output own.state/lock: that folder has the state of the batch"
for line in "4: output ./own_kernel" "5: output $PWD/own_kernel"; do
    expect_stderr "own:$line: a job of the batch reads its kernel from that file"
done
expect_stderr "5 lines are bad"
expect_untouched
rm -rf own* around

case_name="what the batch itself lives on, behind a link"
for file in batch.db batch.db-wal lock new.npy; do
    square a x.npy a.npy > own.jsonl
    cli batch own.jsonl
    expect_status 0
    ln -s "own.jsonl.state/$file" link.npy
    square b x.npy link.npy >> own.jsonl
    cli batch own.jsonl --resume
    expect_status 2
    expect_stderr "own.jsonl:2: output link.npy: that folder has the state of the batch"
    sed -i 2d own.jsonl
    cli batch own.jsonl --resume
    expect_status 0
    rm -rf own.* link.npy a.npy
done

case_name="names that can be no output"
ln -s loop.npy loop.npy
long=$(printf '%0256d' 0).npy
{ square a x.npy own_state; square b x.npy loop.npy; square c x.npy "$long"; } > own.jsonl
cli batch own.jsonl --state own_state
expect_status 2
expect_stderr "own.jsonl:1: output own_state: that folder will have the state of the batch"
expect_stderr "own.jsonl:2: output loop.npy: Too many levels of symbolic links"
expect_stderr "own.jsonl:3: output $long: File name too long"
expect_untouched
rm -rf own.* loop.npy

case_name="standard input that is a file"
square a x.npy own > own
cp own own.before
INPUT=own cli batch - --state own.state
expect_status 2
expect_stderr "standard input:1: output own: the jobs are read from that file"
if cmp -s own own.before; then passed=$((passed + 1)); else fail "own is another"; fi
rm -rf own*

case_name="HLSL, by a file's name and by the job's word"
cat > scale.hlsl << 'END'
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u1);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) { y[id.x] = x[id.x] * x[id.x]; }
END
cp scale.hlsl scale.comp
{
    square a x.npy a.npy | sed "s:$SHADERS/square.spv:scale.hlsl:"
    square b x.npy b.npy ',"language":"hlsl"' | sed "s:$SHADERS/square.spv:scale.comp:"
} > hlsl.jsonl
cli batch hlsl.jsonl
expect_status 0
expect_square x.npy a.npy
expect_square x.npy b.npy
rm -rf hlsl.jsonl* scale.* a.npy b.npy

case_name="kernels of jobs that are done, and what is included"
cp "$SHADERS/square.spv" own_kernel
echo 'void none() {}' > own_part
printf '#version 450\n#include "own_part"\nvoid main() { none(); }\n' > own.comp
echo '{"id":"i","kernel":"own.comp","groups":[1],"I":["./own_part"]}' > own.jsonl
square a x.npy a.npy | sed "s:$SHADERS/square.spv:own_kernel:" >> own.jsonl
cli batch own.jsonl
expect_status 0
{ square b x.npy own_kernel; square c x.npy own_part; } >> own.jsonl
cli batch own.jsonl --resume
expect_status 2
expect_stderr "own.jsonl:3: output own_kernel: a job of the batch reads its kernel from that file"
expect_stderr "own.jsonl:4: output own_part: a job of the batch reads its kernel from that file"
rm -rf own* a.npy

case_name="a long chain from its end to its beginning, and that is bad"
awk 'BEGIN { for (i = 1; i <= 60000; i++)
    printf "{\"id\":\"%d\",\"kernel\":\"k.spv\",\"groups\":[1],\"depends_on\":[\"%d\"]}\n", i, i + 1 }' > jobs.jsonl
cli batch jobs.jsonl --keep-going
expect_status 1
expect_stderr 'jobs.jsonl:60000: it depends on "60001", which is not a job'
expect_stderr 'jobs.jsonl:1: it depends on "2", which cannot run either'
expect_stdout '60,000 jobs: 0 done, 60,000 failed'
rm -rf jobs.jsonl.state

case_name="an input that another job makes need not be there"
{ square a x.npy a.npy; square b a.npy b.npy ',"depends_on":["a"]'; } > jobs.jsonl
cli batch jobs.jsonl --json
expect_status 0
expect_json '.done == 2 and .total == 2 and .failed == 0'
expect_square a.npy b.npy

case_name="a second time is refused, with --resume there is nothing to do"
cli batch jobs.jsonl
expect_status 2
expect_lines 1
expect_stderr -- "--resume"
rm x.npy # what is done needs no input any more
cli batch jobs.jsonl --resume
expect_status 0
"$NPY" make x.npy 'f32[1000]' ramp 0 1
rm -rf jobs.jsonl.state a.npy b.npy

case_name="no file, an empty one, arguments"
refuses "No such file or directory" batch nojobs.jsonl
: > empty.jsonl
refuses "it contains no jobs" batch empty.jsonl
refuses "empty.jsonl: it contains no jobs, and empty.jsonl.state has no batch: there is nothing to resume" \
    batch empty.jsonl --resume
refuses "empty.jsonl: it contains no jobs, and other.state has no batch" \
    batch empty.jsonl --resume --dry-run --state other.state
if [ ! -e empty.jsonl.state ] && [ ! -e other.state ]; then passed=$((passed + 1)); else fail "there is a state"; fi
refuses "need --state" batch -
refuses "--retry-failed needs --resume" batch empty.jsonl --retry-failed
refuses "--streams 0" batch empty.jsonl --streams 0
refuses "--deadline soon" batch empty.jsonl --deadline soon

case_name="from standard input"
square a x.npy a.npy > piped.jsonl
INPUT=piped.jsonl cli batch - --state piped
expect_status 0
rm -rf piped a.npy

case_name="an entry point that is not there, in the words of the line; a file that was cut, by its name"
printf '#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n' > entry.comp
{ echo '{"id":"source","kernel":"entry.comp","groups":1,"entry":"other"}'
  echo "{\"id\":\"named\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":1,\"entry\":\"nix\",\
\"in\":{\"X\":\"x.npy\"},\"out\":{\"Y\":\"y.npy:like X\"}}"
  echo '{"id":"cut","kernel":"cut.spv","groups":1,"in":{"0":"x.npy"},"out":{"1":"z.npy:f32[1000]"}}'; } > entry.jsonl
head -c 100 "$SHADERS/square.spv" > cut.spv
cli batch entry.jsonl --json
expect_status 1
expect_json '[.failures[].code] == ["INVALID_ARGUMENT", "INVALID_KERNEL", "INVALID_KERNEL"]'
expect_json '.failures[0].message | endswith("entry.comp: \"entry\" is other: the entry point of GLSL is main; leave \"entry\" out")'
expect_json '.failures[1].message | endswith("square.spv: there is no entry point \"nix\"; the module has \"main\"")'
expect_json '.failures[2].message | test("^kernel .*/cut.spv: not valid SPIR-V: its 25 words end with.*: it was probably cut short")'
rm -r entry.comp cut.spv entry.jsonl entry.jsonl.state

case_name="all that a job lacks, and an include, in the words of the line"
printf '#version 450\n#include "no.glsl"\nvoid main() {}\n' > include.comp
{ echo "{\"id\":\"bare\",\"kernel\":\"$SHADERS/saxpy.spv\",\"groups\":1}"
  echo "{\"id\":\"named\",\"kernel\":\"$SHADERS/saxpy.spv\",\"groups\":1,\"in\":{\"X\":\"x.npy\"},\"push\":{\"a\":2}}"
  echo '{"id":"include","kernel":"include.comp","groups":1}'; } > lacks.jsonl
cli batch lacks.jsonl --json
expect_status 1
expect_json '[.failures[].attempts] == [0, 0, 0]'
expect_json '.failures[0] | .code == "BINDING_MISMATCH" and (.message | contains("read and written), which are missing: give them in \"in\", \"out\" or \"inout\"; push is missing, too: 8 bytes"))'
expect_json '.failures[1].message | test("binds 0.1 .*, which is missing: give it in ")'
expect_json '.failures[2].message | contains("line 2: error: ") and contains("no file named '"'no.glsl'"' was given for #include; none was given")'
rm -r include.comp lacks.jsonl lacks.jsonl.state

# -- limits of time --------------------------------------------------------------------------------
case_name="a job's own compile deadline, the grace and the tenant of all"
{
    printf '#version 450\n#define M0\n'
    for i in $(seq 60); do printf "#define M$i M$((i - 1)) M$((i - 1))\n"; done
    printf 'M60\nvoid main() {}\n'
} > endless.comp
{ echo '{"id":"source","kernel":"endless.comp","groups":[1],"compile_deadline":"300ms"}'
  echo "{\"id\":\"hang\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[64],\
\"out\":{\"0\":\"hang.npy:u32[64]\"},\"deadline\":\"100ms\",\"retries\":0}"; } > limits.jsonl
cli batch limits.jsonl --json --grace 0s --tenant kim
expect_status 1
expect_stderr "source: failed, COMPILE_FAILED"
expect_stderr 'endless.comp: the compile deadline of 300 ms passed before the compiler ended; "compile_deadline" or --compile-deadline raises it'
expect_json '[.failures[] | select(.id == "hang")][0].message | test("passed; the grace time is 0; worker [0-9]+ was killed")'
refuses "--grace none: none is not allowed here: the run must end" batch limits.jsonl --resume --grace none
refuses "longer than 63 bytes" batch limits.jsonl --resume --tenant "$(printf 'x%.0s' {1..64})"
rm -rf limits.jsonl limits.jsonl.state endless.comp

# -- what fails ------------------------------------------------------------------------------------
# Whatever a driver makes of it: the only trusted kernel takes its worker down with SIGSEGV.
crashing() {
    BULKHEAD_WORKER=$FAULTY_WORKER with_faults "*:trusted:*=segv" cli "$@"
}
case_name="each for its own reason, and what depends on it with the origin"
echo "nonsense" > bad.comp
head -c 100 /dev/zero > bad.npy
{ square good x.npy good.npy
  echo "{\"id\":\"crash\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[4],\
\"out\":{\"0\":\"crash.npy:u32[64]\"},\"trusted\":true,\"retries\":1}"
  square after crash.npy after.npy ',"depends_on":["crash"]'
  square later after.npy later.npy ',"depends_on":["after","good"]'
  echo "{\"id\":\"hang\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[64],\
\"out\":{\"0\":\"hang.npy:u32[64]\"},\"deadline\":\"100ms\",\"retries\":0}"
  echo '{"id":"glsl","kernel":"bad.comp","groups":[1],"out":{"0":"g.npy:u32[64]"}}'
  square load bad.npy load.npy
  echo "{\"id\":\"unbound\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[1],\
\"out\":{\"1\":\"u.npy:f32[8]\"}}"; } > jobs.jsonl
crashing batch jobs.jsonl --json
expect_status 1
expect_json '.done == 1 and .failed == 5 and .quarantined == 2 and .total == 8'
expect_json '[.failures[] | select(.id == "later")][0].origin == "crash"'
expect_json '[.failures[] | select(.id == "after")][0].origin == "crash"'
expect_state good "done"
expect_state crash quarantined
expect_state after failed
expect_state later failed
expect_state hang quarantined
expect_state glsl failed
expect_state load failed
expect_state unbound failed
expect_stderr "crash: quarantined, WORKER_SIGNAL"
expect_stderr "hang: quarantined, DEADLINE"
expect_stderr "glsl: failed, COMPILE_FAILED: kernel $PWD/bad.comp: it does not compile: line 1: error: there is no #version line"
expect_json '.attempts == ([.failures[].attempts] | add) + .done and .refused > 0'
expect_json '[.failures[] | select(.id == "glsl")][0].started == null'
expect_stderr "load: failed, LOAD_FAILED"
expect_stderr "unbound: failed, BINDING_MISMATCH"
if [ "$(sqlite3 jobs.jsonl.state/batch.db "SELECT guilty FROM jobs WHERE id = 'crash'")" = 2 ]; then
    passed=$((passed + 1)); else fail "crash was not tried twice"; fi
# What a worker that had run another job says of this one is no attempt that counts (T2).
for id in hang glsl load unbound; do
    if [ "$(sqlite3 jobs.jsonl.state/batch.db "SELECT count(*) FROM attempt JOIN job ON number = job WHERE id = '$id' AND blame != 1")" = 1 ]; then
        passed=$((passed + 1)); else fail "$id was tried again"; fi
done
for file in crash after later hang g load u; do
    if [ ! -e "$file.npy" ]; then passed=$((passed + 1)); else fail "$file.npy was made"; fi
done

case_name="--resume leaves failures alone, --retry-failed does not"
cli batch jobs.jsonl --resume
expect_status 1
cp x.npy bad.npy
crashing batch jobs.jsonl --resume --retry-failed
expect_status 1
expect_state load "done"
expect_state crash quarantined
rm -rf jobs.jsonl.state

case_name="a refused --retry-failed leaves failures as they are"
{ square a x.npy a.npy; echo '{"id":"bad","kernel":"bad.comp","groups":[1],"out":{"0":"g.npy:u32[64]"}}'
  square after g.npy h.npy ',"depends_on":["bad"]'; cp x.npy gone.npy; head -c 100 /dev/zero > gone.npy
  square gone gone.npy i.npy; } > jobs.jsonl
cli batch jobs.jsonl
expect_status 1
rm gone.npy
cp jobs.jsonl good.jsonl
cli batch jobs.jsonl --resume --retry-failed # an input is missing
expect_status 2
expect_stderr "jobs.jsonl:4: input gone.npy: No such file or directory"
expect_state bad failed
sed -i 's/a\.npy:/b.npy:/' jobs.jsonl # done, and not to be changed
cp x.npy gone.npy
cli batch jobs.jsonl --resume --retry-failed
expect_status 2
expect_stderr "run it again as this line says (--redo "
expect_state bad failed
cp good.jsonl jobs.jsonl
rm gone.npy
case_name="what failed and stays so needs no inputs"
cli batch jobs.jsonl --resume
expect_status 1
expect_state bad failed
expect_state gone failed

case_name="a line that failed is mended"
cp x.npy gone.npy
sed -i "s|^.*\"id\":\"bad\".*|$(square bad x.npy g.npy)|" jobs.jsonl
cli batch jobs.jsonl --resume
expect_status 2
expect_stderr 'jobs.jsonl:2: the job "bad" has failed, and its line has changed since: --retry-failed runs it'
sed 's|"id":"bad"|"id":"bad","depends_on":["a"]|' jobs.jsonl > other.jsonl
cli batch other.jsonl --state jobs.jsonl.state --resume --retry-failed
expect_status 2
expect_stderr 'cannot change'
cli batch jobs.jsonl --resume --retry-failed
expect_status 0
for id in bad after gone; do expect_state "$id" "done"; done
expect_square x.npy g.npy
rm -rf jobs.jsonl.state good.jsonl other.jsonl gone.npy ./[aghi].npy

case_name="an interruption cancels, --resume continues"
{ for i in 1 2 3 4; do echo "{\"id\":\"h$i\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[64],\
\"out\":{\"0\":\"h$i.npy:u32[64]\"},\"deadline\":\"none\"}"; done; square after x.npy after.npy; } > jobs.jsonl
"$BULKHEAD" batch jobs.jsonl --streams 1 > .stdout 2> .stderr &
pid=$!
until [ "$(sqlite3 jobs.jsonl.state/batch.db "SELECT count(*) FROM attempt" 2> .sql)" -gt 0 ] 2> .sql; do
    kill -0 "$pid" 2> .sql || break
done
kill -TERM "$pid" # a shell has its background jobs ignore SIGINT
wait "$pid"
status=$?
rm -f .sql
expect_status 143
expect_stderr "cancelled by SIGTERM; --resume continues"
expect_state h1 cancelled
sed -i 's/"none"/"50ms"/' jobs.jsonl # the text of a job in the batch must not change
cli batch jobs.jsonl --resume
expect_status 2
sed -i 's/"50ms"/"none"/' jobs.jsonl
rm -rf jobs.jsonl.state

case_name="hardly any descriptors: each job gets its turn"
mkdir -p few
for i in $(seq 40); do square "f$i" x.npy "few/$i.npy"; done > jobs.jsonl
(ulimit -n 66 && exec "$BULKHEAD" batch jobs.jsonl > .stdout 2> .stderr)
status=$?
expect_status 0
rm -rf jobs.jsonl.state few

# -- the state folder ------------------------------------------------------------------------------
square a x.npy a.npy > jobs.jsonl
case_name="in use by another process"
echo "{\"id\":\"h\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[64],\
\"out\":{\"0\":\"h.npy:u32[64]\"},\"deadline\":\"none\"}" > hang.jsonl
"$BULKHEAD" batch hang.jsonl --state jobs.jsonl.state > .stdout 2> .stderr &
pid=$!
until [ "$(sqlite3 jobs.jsonl.state/batch.db "SELECT count(*) FROM attempt" 2> .sql)" -gt 0 ] 2> .sql; do
    kill -0 "$pid" 2> .sql || break
done
cli batch jobs.jsonl --resume
expect_status 3
expect_lines 1
expect_stderr "$pid"
kill -TERM "$pid"
wait "$pid"
status=$?
expect_status 143
rm -rf jobs.jsonl.state .sql

case_name="of another version"
cli batch jobs.jsonl
expect_status 0
sqlite3 jobs.jsonl.state/batch.db 'PRAGMA user_version = 99'
cli batch jobs.jsonl --resume
expect_status 3
expect_lines 1
expect_stderr "version"
expect_stderr "jobs.jsonl.state"
rm -rf jobs.jsonl.state

case_name="that is no database"
mkdir jobs.jsonl.state
head -c 8192 /dev/urandom > jobs.jsonl.state/batch.db
cli batch jobs.jsonl --resume
expect_status 3
expect_lines 1
expect_stderr "batch.db"
rm -rf jobs.jsonl.state

case_name="that is a file"
touch taken
cli batch jobs.jsonl --state taken
expect_status 2
expect_lines 1
expect_stderr "taken is not a folder: give another one (--state)"

case_name="that cannot be made"
cli batch jobs.jsonl --state taken/state
expect_status 3
expect_lines 1
expect_stderr "taken/state"
rm -f a.npy

# -- a disk that is full ---------------------------------------------------------------------------
# A small tmpfs in a mount namespace of our own. The workers' sandbox needs user namespaces anyway.
full_disk() { # SIZE COMMAND: in $folder/small
    unshare --user --map-root-user --mount sh -c \
        "mount -t tmpfs -o size=$1 none small && $2" 2>> .stderr
}
case_name="few descriptors: what is kept for later is given back, and nobody fails"
mkdir -p many
for i in $(seq 150); do
    cp x.npy "many/$i.npy"
    square "$i" "many/$i.npy" "many/$i.out.npy"
done > jobs.jsonl
(ulimit -n 128; cli batch jobs.jsonl; exit "$status")
status=$?
expect_status 0
expect_stdout "150 jobs: 150 done, 0 failed"
rm -rf many jobs.jsonl.state

mkdir -p small
case_name="the disk of the state is full"
: > .stdout
: > .stderr
full_disk 64k true
status=$?
if [ "$status" -ne 0 ]; then
    fail "there is no small disk to be had"
    finish
fi
full_disk 192k "i=0; while [ \$i -lt 600 ]; do i=\$((i + 1))
    echo '{\"id\":\"'\$i'\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[1],\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"o/'\$i'.npy:f32[1000]\"}}'
    done > full.jsonl; mkdir -p o; '$BULKHEAD' batch full.jsonl --state small/state > .stdout"
status=$?
expect_status 3
expect_stderr "full"
rm -rf o full.jsonl

case_name="the disk of the outputs is full for a while"
square a x.npy small/a.npy > jobs.jsonl
: > .stderr
full_disk 64k "head -c 63000 /dev/zero > small/ballast
    '$BULKHEAD' batch jobs.jsonl > .stdout &
    pid=\$!
    until grep -q 'No space left on device' .stderr; do kill -0 \$pid || break; done
    rm small/ballast; wait \$pid"
status=$?
expect_status 0
expect_stderr "waiting before the next try: "
expect_stderr "No space left on device"
expect_state a "done"
rm -rf jobs.jsonl.state
finish
