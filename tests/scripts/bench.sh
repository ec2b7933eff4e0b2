#!/bin/sh
# scripts/bench, with programs that print what they are told to.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/scripts" "$work/build/bin" "$work/bench"
cp "$source/scripts/bench" "$work/scripts/bench"
for name in guard hop streams isolation host-death alloc load batch; do
    printf '#!/bin/sh\necho "bench-%s $*"\n' $name > "$work/build/bin/bench-$name"
done
fails() {
    echo "FAILED: $*"
    exit 1
}
# RATIO of the first row, whose target is 1.25, and of the second, which has none.
rows() {
    cat > "$work/build/bin/bench-dispatch" << END
#!/bin/sh
cat << 'JSON'
{"device": "fake", "driver": "fakedriver 1.2", "processors": 2, "rounds": 3, "rows": [
{"id": "one", "what": "the first row", "in_process_ns": 1000, "polling_ns": null, "bulkhead_ns": 1100, "ratio": $1, "target_ratio": 1.25},
{"id": "two", "what": "the second row", "in_process_ns": 1000, "polling_ns": 900, "bulkhead_ns": 5e6, "ratio": $2, "target_ratio": null},
{"id": "three", "what": "no ratio", "in_process_ns": null, "polling_ns": null, "bulkhead_ns": 7, "ratio": null, "target_ratio": null}]}
JSON
END
    chmod +x "$work"/build/bin/*
}
# STATUS ARGUMENT...: its output is in $work/out
ends() {
    wanted=$1
    shift
    status=0
    "$work/scripts/bench" "$@" > "$work/out" 2>&1 || status=$?
    [ $status -eq "$wanted" ] || { cat "$work/out" && fails "scripts/bench $*: exit status $status, not $wanted"; }
}
says() {
    grep -q -- "$1" "$work/out" || { cat "$work/out" && fails "nothing says: $1"; }
}

rows 1.0 2.0
ends 1 --check
says 'has no ratios of fakedriver'
ends 0 --update --quick --device gpu
says 'the second row  *1 us  *0.9 us  *5 ms  *2'
says 'bench-hop --quick --device gpu'
ends 0 --check
says 'no ratio is worse'
rows 1.2 2.4 # within a fourth
ends 0 --check
rows 1.2 2.6
ends 3 --check
says 'worse: the second row: ratio 2.6, was 2, target none'
! grep -q 'worse: the first row' "$work/out" || fails "the first row is within its target"
rows 1.26 2.0
ends 3 --check
says 'worse: the first row: ratio 1.26, was 1, target 1.25'
ends 2 --nonsense
says 'unknown argument --nonsense'
printf '#!/bin/sh\nexit 1\n' > "$work/build/bin/bench-hop"
ends 1
echo ok
