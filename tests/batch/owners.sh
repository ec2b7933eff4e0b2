#!/usr/bin/env bash
# What other users have planted in a folder that everybody can write: a whole state with a job in it,
# links where outputs go. Nothing of it is run, followed or written. Root plants as user 1000; another
# user, who cannot, has a state that others can write.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

mkdir shared mine
chmod 1777 shared
chmod 755 .
cat > own.comp <<'GLSL'
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
void main() { a[gl_GlobalInvocationID.x] = 3u; }
GLSL
echo '{"id":"a","kernel":"own.comp","groups":[1],"out":{"0":"mine/planted.npy:u32[64]"}}' > shared/jobs.jsonl

case_name="a planted state"
# As if it had been interrupted: its one job waits.
cli batch shared/jobs.jsonl --state planted
expect_status 0
rm -f mine/planted.npy
mv planted shared/jobs.jsonl.state
if [ "$(id -u)" -eq 0 ]; then
    chown -R 1000:1000 shared/jobs.jsonl.state
    words='jobs.jsonl.state belongs to user 1000, but this process is user 0'
else
    chmod 777 shared/jobs.jsonl.state
    words='jobs.jsonl.state can be written by others (mode 0777)'
fi
for more in --resume "--resume --retry-failed" ""; do
    # shellcheck disable=SC2086
    cli batch shared/jobs.jsonl $more
    expect_status 3
    expect_stderr "$words"
    if [ -e mine/planted.npy ]; then fail "its job was run"; else passed=$((passed + 1)); fi
done
rm -rf shared/jobs.jsonl.state

case_name="a link where the state goes"
mkdir -m 700 elsewhere
ln -s "$PWD/elsewhere" shared/jobs.jsonl.state
if [ "$(id -u)" -eq 0 ]; then
    chown -h 1000:1000 shared/jobs.jsonl.state
    cli batch shared/jobs.jsonl
    expect_status 3
    expect_stderr 'is a link of user 1000 in a folder that everybody can write'
    if [ -n "$(ls -A elsewhere)" ]; then fail "something was put there"; else passed=$((passed + 1)); fi
fi
rm shared/jobs.jsonl.state

case_name="links where outputs go"
"$NPY" make x.npy 'f32[64]' ramp 0 1
echo precious > mine/victim
ln -s "$PWD/mine/victim" shared/out.npy
if [ "$(id -u)" -eq 0 ]; then
    chown -h 1000:1000 shared/out.npy
    cli run own.comp --groups 1 --out '0=shared/out.npy:u32[64]'
    expect_status 2
    expect_stderr 'shared/out.npy is a link of user 1000'
    : > mine/report.html
    ln -s "$PWD/mine/report.html" shared/report.html
    chown -h 1000:1000 shared/report.html
    cli batch shared/jobs.jsonl --state st --html shared/report.html
    expect_status 2
    expect_stderr 'shared/report.html is a link'
    rm shared/report.html
    cli chaos --count 1 --streams 1 --faults kill --history shared/out.npy
    expect_status 2
    expect_stderr 'shared/out.npy is a link of user 1000'
    cli eval 'y = x + 1' --in x=x.npy --out y=shared/out.npy
    expect_stderr 'shared/out.npy is a link of user 1000'
fi
[ "$(cat mine/victim)" = precious ] || fail "it was written"
rm shared/out.npy

case_name="a link on the way to a quarantine that is to be made"
ln -s "$PWD/mine" shared/way
if [ "$(id -u)" -eq 0 ]; then
    chown -h 1000:1000 shared/way
    cli batch shared/jobs.jsonl --state st2 --quarantine shared/way/quarantine
    expect_status 3
    expect_stderr 'way/quarantine is a link of another user'
    if [ -e mine/quarantine ]; then fail "it was made"; else passed=$((passed + 1)); fi
fi
rm -rf shared/way st2

case_name="a link of our own"
mkdir -m 700 st
ln -s ../mine/new shared/out.npy
cli run own.comp --groups 1 --out '0=shared/out.npy:u32[64]'
case $status in
0 | 2) passed=$((passed + 1)) ;; # it leads nowhere yet, as ever
*) fail "another status" ;;
esac
finish
