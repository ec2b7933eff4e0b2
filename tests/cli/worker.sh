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
# It runs, and is no worker: what names it is told, and no other advice.
what_to_set="set BULKHEAD_WORKER to this library's bulkhead-worker, or unset it"
for name in ends dies /bin/true; do
    file=$folder/$name
    [ -x "$file" ] || file=$name
    wrong "$file" "ended 3 times without a word when it was started" "the process that opens files"
    for command in devices run eval inspect doctor chaos; do
        case_name="$command: what to set for $name"
        case $command in
        run) words=("${run[@]}") ;;
        eval) words=(eval 'z = 2*x' --in x=x.npy --out z=z.npy) ;;
        inspect) words=(inspect "$SHADERS/square.spv") ;;
        *) words=("$command") ;;
        esac
        BULKHEAD_WORKER=$file cli "${words[@]}"
        [ $command != doctor ] || cat .stdout >> .stderr
        tr -s ' \n' '  ' < .stderr > .words
        mv .words .stderr
        arrow='; to correct it:'
        [ $command != doctor ] || arrow=' ->'
        expect_stderr "$arrow $what_to_set"
        for advice in "bulkhead doctor;" "reset the stream" "report it"; do
            if grep -qF "$advice" .stderr; then fail "it also says: $advice"; else passed=$((passed + 1)); fi
        done
    done
done
rm -f starts
finish
