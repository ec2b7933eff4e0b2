#!/usr/bin/env bash
# A worker's executable that is none: each command says at once which file it is and what is wrong
# with it, and does not start it again and again. And output that nobody reads any more.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$NPY" make x.npy 'f32[16]' ramp 0 1
run=(run "$SHADERS/square.spv" --groups 1 --in '0=x.npy' --out '1=y.npy:f32[16]')

# says COMMAND ADVICE: and no other advice. The words are in .stderr.
says() {
    local arrow='; to correct it:' other
    if [ "$1" = doctor ] && grep -qF ' -> ' .stderr; then arrow=' ->'; fi
    case $2 in
    set*) expect_stderr "$arrow $2" ;;
    *) expect_stderr "$2" ;;
    esac
    for other in "bulkhead doctor;" "reset the stream" "report it"; do
        if grep -qF "$other" .stderr; then fail "it also says: $other"; else passed=$((passed + 1)); fi
    done
}

# wrong FILE WHAT ADVICE [WHAT_OF_RUN]: by devices, run (whose inputs are opened first, by the warden's
# program) and doctor (which says it among its checks). It may be started three times by each part of a
# command, of which doctor has two, and twice to open a file.
wrong() {
    local command starts what
    for command in devices run doctor; do
        case_name="$command: a program that is $2"
        rm -f starts
        local words=("$command")
        [ $command != run ] || words=("${run[@]}")
        BULKHEAD_WORKER=${worker:-$1} cli "${words[@]}"
        [ $command != doctor ] || cat .stdout >> .stderr
        expect_status 3
        tr -s ' \n' '  ' < .stderr > .words
        mv .words .stderr
        what=$2
        [ $command != run ] || what=${4:-$2}
        expect_stderr "$1"
        expect_stderr "$what"
        says $command "$3"
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
to_set="set BULKHEAD_WORKER to this library's bulkhead-worker, or unset it"
for what in "none No such file or directory" "plain Permission denied" "folder Is a directory" \
    "format Exec format error" "interpreter No such file or directory"; do
    wrong "$folder/${what%% *}" "${what#* }" "$to_set"
done
# It runs, and is no worker.
for file in "$folder/ends" "$folder/dies" /bin/true; do
    wrong "$file" "was started 3 times and ended each time without a message" "$to_set"
done
# The warden is the program beside the worker. If that is wrong, what is said of the worker is not.
mkdir pair
worker=$folder/pair/bulkhead-worker
ln -s "$(dirname "$BULKHEAD")/bulkhead-worker" pair/bulkhead-worker
to_install="install this library's bulkhead-warden beside its bulkhead-worker"
cp format pair/bulkhead-warden
wrong pair/bulkhead-warden "Exec format error" "$to_install"
worker=
for command in eval inspect chaos; do
    case_name="$command: a worker that ends"
    case $command in
    eval) words=(eval 'z = 2*x' --in x=x.npy --out z=z.npy) ;;
    inspect) words=(inspect "$SHADERS/square.spv") ;;
    *) words=(chaos) ;;
    esac
    BULKHEAD_WORKER=$folder/ends cli "${words[@]}"
    expect_status 3
    says $command "$to_set"
done
# What the library sends to each process that it has started arrives nowhere: as if it had ended.
case_name="a process that has ended before it is told anything"
cli_of() { BULKHEAD=$DENIED cli "$@"; }
cli_of here messages "$BULKHEAD" devices
expect_status 3
expect_stderr "was started 3 times and ended each time without a message; to correct it: install this library's bulkhead-worker there"
finish
