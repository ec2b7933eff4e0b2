#!/usr/bin/env bash
# Files that finished jobs have read: --resume keeps no result of a kernel or an input that has
# changed without saying so, and --verify names them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

fingerprint() { # SQLite's files are made anew by who looks
    find . -type f ! -name '.*' ! -name lock ! -name 'batch.db-*' -exec cksum {} + | sort
}
attempts() { sqlite3 jobs.jsonl.state/batch.db 'SELECT sum(attempts) FROM jobs'; }
resumes() { # ATTEMPTS ARGUMENT...: the batch goes on, with so many attempts
    local before expected=$1
    before=$(attempts)
    shift
    cli batch jobs.jsonl --resume "$@"
    expect_status 0
    if [ "$(($(attempts) - before))" = "$expected" ]; then
        passed=$((passed + 1))
    else
        fail "$(($(attempts) - before)) attempts, not $expected"
    fi
}
refuses_change() { # WORDS
    cli batch jobs.jsonl --resume
    expect_status 2
    expect_stderr "$1"
    expect_stderr "--redo-changed runs these jobs again, --keep-changed keeps their results"
    expect_untouched
}

cat > scale.comp <<'KERNEL'
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "factor.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length() && i < y.length())
        y[i] = FACTOR * x[i];
}
KERNEL
echo '#define FACTOR 2.0' > factor.glsl
"$NPY" make x.npy 'f32[4]' ramp 1 1
"$NPY" make z.npy 'f32[4]' ramp 9 1
"$NPY" make self.npy 'f32[4]' ramp 3 1
scale() { # ID IN OUT [MORE]
    echo "{\"id\":\"$1\",\"kernel\":\"scale.comp\",\"I\":[\"factor.glsl\"],\"groups\":1,\"in\":{\"X\":\"$2\"},\
\"out\":{\"Y\":\"$3:like X\"}${4:-}}"
}
{
    scale first x.npy a.npy
    scale second a.npy b.npy ',"depends_on":["first"]'
    scale other z.npy c.npy
    square self self.npy d.npy
    echo '{"id":"sum","eval":"y = x + x","in":{"x":"z.npy"},"out":{"y":"e.npy"}}'
    echo "{\"id\":\"turn\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":1,\"reinterpret\":true,\
\"in\":{\"0\":\"x.npy\"},\"inout\":{\"1\":\"own.npy\"}}"
} > jobs.jsonl
cp z.npy own.npy

case_name="nothing has changed"
cli batch jobs.jsonl
expect_status 0
expect_sql "SELECT count(*), count(DISTINCT path) FROM file" "6|6"
expect_sql "SELECT count(*) FROM file WHERE path LIKE '%/own.npy' OR path LIKE '%/a.npy'" 0
expect_sql "SELECT count(*) FROM used WHERE job = 1" 3
resumes 0
cli batch jobs.jsonl --verify
expect_status 0

case_name="other times are no other content"
sleep 0.02 # a file system's clock ticks every few milliseconds
touch scale.comp factor.glsl x.npy
cp -p z.npy z.copy && mv z.copy z.npy
resumes 0

case_name="an input of the same size and the same time"
touch -r x.npy before
cp x.npy x.before
"$NPY" make x.npy 'f32[4]' ramp 5 1
touch -r before x.npy
refuses_change "x.npy has changed since 2 jobs read it (for example \""
cli batch jobs.jsonl --verify
expect_status 1
expect_stdout "x.npy has changed since 2 jobs read it"
cli batch jobs.jsonl --verify --json
expect_status 1
expect_json '.changed_files[0].example as $id | .changed_files == [{"file": "x.npy", "jobs": 2, "example": $id}]
    and ($id == "first" or $id == "turn") and .findings == []'
resumes 0 --keep-changed
refuses_change "x.npy has changed"
cli batch jobs.jsonl --resume --redo-changed --dry-run --json
expect_status 0
expect_json '[.plan[].id] | sort == ["first", "second", "turn"]'
refuses_change "x.npy has changed"
resumes 3 --redo first --redo turn # named ones are no longer stale
resumes 0

case_name="an include of a kernel"
echo '#define FACTOR 3.0' > factor.glsl
refuses_change "factor.glsl has changed since 3 jobs read it (for example "
resumes 3 --redo-changed
if [ "$("$NPY" show c.npy)" = "f32[4] 27 30 33 36" ]; then passed=$((passed + 1)); else fail "an old result"; fi
resumes 0
cli batch jobs.jsonl --verify
expect_status 0

case_name="a kernel"
sed -i 's/FACTOR \* x/FACTOR + x/' scale.comp
refuses_change "scale.comp has changed since 3 jobs read it (for example "
resumes 3 --redo-changed
resumes 0

case_name="a file that is gone, and one that the batch makes"
mv z.npy gone
"$NPY" make a.npy 'f32[4]' ramp 0 0
resumes 0
mv gone z.npy

case_name="a file that cannot be read"
if [ "$(id -u)" != 0 ]; then
    chmod 0 z.npy
    refuses_change 'z.npy cannot be compared with what the job "other" read: Permission denied'
    chmod 644 z.npy
fi

case_name="missing folders"
{ square a x.npy out/deep/a.npy; square b x.npy out/b.npy; square c x.npy out/c.npy; } > folders.jsonl
cli batch folders.jsonl
expect_status 2
expect_stderr "folders.jsonl:1: output out/deep/a.npy: its folder: No such file or directory"
expect_stderr "folders.jsonl:2: output out/b.npy: its folder: No such file or directory"
expect_stderr "make it first (--mkdir does); the same for 1 more line"
if [ "$(wc -l < .stderr)" -eq 3 ]; then passed=$((passed + 1)); else fail "not one line for one cause"; fi
expect_untouched
cli batch folders.jsonl --mkdir --dry-run
expect_status 0
expect_untouched
echo no > taken
{ square a x.npy taken/a.npy; square b x.npy folders.jsonl.state/b.npy; } > wrong.jsonl
cli batch wrong.jsonl --mkdir --state folders.jsonl.state
expect_status 2
expect_stderr "output taken/a.npy: its folder: Not a directory"
expect_untouched
cli batch folders.jsonl --mkdir
expect_status 0
for file in out/deep/a.npy out/b.npy out/c.npy; do
    if [ -s "$file" ]; then passed=$((passed + 1)); else fail "$file is missing"; fi
done
{ square a gone.npy p.npy; square b gone.npy q.npy; square c gone2.npy r.npy; } > gone.jsonl
cli batch gone.jsonl
expect_status 2
expect_stderr "gone.jsonl:1: input gone.npy: No such file or directory"
expect_stderr "; the same for 1 more line"
expect_stderr "gone.jsonl:3: input gone2.npy: No such file or directory"

case_name="what excludes what"
refuses "--redo-changed needs --resume" batch jobs.jsonl --redo-changed
refuses "--keep-changed needs --resume" batch jobs.jsonl --keep-changed
refuses "--redo-changed excludes --keep-changed" batch jobs.jsonl --resume --redo-changed --keep-changed
finish
