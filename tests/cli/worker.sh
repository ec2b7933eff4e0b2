#!/usr/bin/env bash
# A worker's executable that is none: each command says at once which file it is and what is wrong
# with it, and does not start it again and again. And output that nobody reads any more.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$NPY" make x.npy 'f32[16]' ramp 0 1
run=(run "$SHADERS/square.spv" --groups 1 --in '0=x.npy' --out '1=y.npy:f32[16]')

# wrong FILE WHAT WHAT_OF_RUN: by devices, run (whose inputs are opened first, by a process that is
# made of the same file) and doctor (which says it among its checks). It may be started three times by
# each part of a command, of which doctor has two, and twice to open a file.
wrong() {
    local command starts what
    for command in devices run doctor; do
        case_name="$command: a worker that is $2"
        rm -f starts
        local words=("$command")
        [ $command != run ] || words=("${run[@]}")
        BULKHEAD_WORKER=$1 cli "${words[@]}"
        [ $command != doctor ] || cat .stdout >> .stderr
        expect_status 3
        tr -s ' \n' '  ' < .stderr > .words
        mv .words .stderr
        what=$2
        [ $command != run ] || what=$3
        expect_stderr "$1"
        expect_stderr "$what"
        starts=0
        [ ! -e starts ] || starts=$(wc -l < starts)
        [ "$starts" -le 9 ] || fail "it was started $starts times"
    done
    rm -f starts
}

mkdir folder
touch plain
printf 'no program' > format
printf '#!/bin/sh\necho >> %s\n' "$folder/starts" > ends
printf '#!/bin/sh\necho >> %s\nkill -SEGV $$\n' "$folder/starts" > dies
printf '#!/no/such/interpreter\n' > interpreter
chmod +x format ends dies interpreter
for what in "none No such file or directory" "plain Permission denied" "folder Is a directory" \
    "format Exec format error" "interpreter No such file or directory"; do
    wrong "$folder/${what%% *}" "${what#* }" "${what#* }"
done
wrong "$folder/ends" "ended 3 times without a word when it was started" "the process that opens files"
wrong "$folder/dies" "ended 3 times without a word when it was started" "the process that opens files"
finish
