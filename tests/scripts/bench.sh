#!/usr/bin/env bash
# scripts/bench, with programs that print what they are told to. Usage: bench.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$folder/scripts" "$folder/build/bin" "$folder/bench"
cp "$1/scripts/bench" "$folder/scripts/bench"
for name in guard hop streams devices isolation host-death alloc device-pool judged load batch memory cuda; do
    printf '#!/bin/sh\necho "bench-%s $*"\n' $name > "$folder/build/bin/bench-$name"
done
for name in judge python sweep expressions; do
    printf '#!/bin/sh\necho "bench/%s $*"\n' $name > "$folder/bench/$name"
    chmod +x "$folder/bench/$name"
done
# RATIO of the first row, whose target is 1.25, and of the second, which has none.
rows() {
    cat > "$folder/build/bin/bench-dispatch" << END
#!/bin/sh
cat << 'JSON'
{"device": "fake", "driver": "fakedriver 1.2", "processors": 2, "rounds": 3, "rows": [
{"id": "one", "what": "the first row", "in_process_ns": 1000, "polling_ns": null, "bulkhead_ns": 1100, "ratio": $1, "target_ratio": 1.25},
{"id": "two", "what": "the second row", "in_process_ns": 1000, "polling_ns": 900, "bulkhead_ns": 5e6, "ratio": $2, "target_ratio": null},
{"id": "three", "what": "no ratio", "in_process_ns": null, "polling_ns": null, "bulkhead_ns": 7, "ratio": null, "target_ratio": null}]}
JSON
END
    chmod +x "$folder"/build/bin/*
}
devices() { # JSON of each
    printf '#!/bin/sh\n[ "$*" = "devices --json" ] && echo '\''{"devices": [%s]}'\''\n' "$1" > "$folder/build/bin/bulkhead"
    chmod +x "$folder/build/bin/bulkhead"
}
devices '{"selector": "lavapipe:0", "type": "cpu"}'
bench() { # STATUS ARGUMENT...
    ends "$1" "scripts/bench ${*:2}" "$folder/scripts/bench" "${@:2}"
}
says() {
    grep -q -- "$1" "$folder/said" || fail "nothing says: $1"
}

rows 1.0 2.0
bench 1 --check
says 'has no ratios of fakedriver'
bench 0 --update --quick --device gpu
says 'the second row  *1 us  *0.9 us  *5 ms  *2'
says 'bench-hop --quick --device gpu'
says 'bench-devices --quick'
says 'bench/python --quick'
says 'bench/sweep --quick'
says 'bench/expressions --quick --device gpu'
! grep -q 'bench-cuda\|bench-memory' "$folder/said" || fail "it measures a GPU that is not there"
devices '{"selector": "nvidia:0", "type": "discrete"}, {"selector": "cuda:0", "type": "discrete"}'
bench 0 --quick
says 'bench-memory $'
says 'bench-cuda --quick'
devices '{"selector": "lavapipe:0", "type": "cpu"}, {"selector": "cuda:0", "type": "discrete"}'
bench 0
says 'bench-cuda $'
! grep -q 'bench-memory' "$folder/said" || fail "bench-memory has no device"
bench 0 --check
says 'no ratio is worse'
rows 1.2 2.4 # within a fourth
bench 0 --check
rows 1.2 2.6
bench 3 --check
says 'worse: the second row: ratio 2.6, was 2, target none'
! grep -q 'worse: the first row' "$folder/said" || fail "the first row is within its target"
rows 1.26 2.0
bench 3 --check
says 'worse: the first row: ratio 1.26, was 1, target 1.25'
bench 2 --nonsense
says 'unknown argument --nonsense'
printf '#!/bin/sh\nexit 1\n' > "$folder/build/bin/bench-hop"
bench 1
[ $failed -eq 0 ]
