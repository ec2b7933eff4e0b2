#!/usr/bin/env bash
# scripts/check-words: it finds a name that was replaced, says where and what it is called now, in
# code, pages and tests; it passes what reads like one, and old pages. Usage: words.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
expect() { # STATUS WORDS NAME
    ends "$1" "$3" "$folder/scripts/check-words"
    [ "$(cat "$folder/said")" = "$2" ] || fail "$3: it must say '$2'"
}
holds() { # FILE LINE...
    mkdir -p "$folder/$(dirname "$1")"
    printf '%s\n' "${@:2}" > "$folder/$1"
}

mkdir "$folder/scripts"
cp "$1/scripts/check-words" "$folder/scripts"
git init -q "$folder"
holds core/stream.h '/* A stream. */' 'struct bhi_stream {' '    bool cancel_requested;' '};'
holds docs/decisions/0001-slab.md 'The slab is a freelist now.'
holds CHANGELOG.md '- `errand` is internal submit.'
holds docs/ports.md 'It reports a port, supports it, and is slabbed. The host was told.'
expect 0 "" "what may stay"

holds core/stream.c '/* See the Slab. */' 'int x;' 'int bhi_known_add(void);'
expect 1 "core/stream.c:1: 'Slab' is now 'typed freelist'
core/stream.c:3: 'bhi_known_add' is now 'bhi_worker_kernels_'" "code"
rm "$folder/core/stream.c"

holds docs/events.md 'One errand, two errands.'
expect 1 "docs/events.md:1: 'errand' is now 'internal submit'" "a page"
rm "$folder/docs/events.md"

holds tests/core/test.sh 'crew=1'
expect 1 "tests/core/test.sh:1: 'crew' is now 'core worker'" "a test"
rm "$folder/tests/core/test.sh"

holds core/stream.h 'struct bhi_stream {' '    bool ready, told;' '};'
expect 1 "core/stream.h:2: 'bool ready, told;' is now 'a flag that says what it is of: cancel_requested'" "a flag"
holds core/stream.h 'const bool told = true;'
expect 0 "" "a variable"

holds core/stream.c "bool f(const char *m) { return strstr(m, \"worker\"); }"
expect 1 "core/stream.c:1: it decides by words: use a reason (base/reason.def), or say in scripts/check-words whose text this is" "words of ours"
holds core/stream.c "bool f(const char *message) { return !strncmp(message, \"w\", 1); }"
expect 1 "core/stream.c:1: it decides by words: use a reason (base/reason.def), or say in scripts/check-words whose text this is" "a prefix of ours"
rm "$folder/core/stream.c"
holds ipc/refusal.c "int x;"
expect 1 "scripts/check-words: ipc/refusal.c looks into no text any more" "a file that looks no more"
holds ipc/refusal.c "bool f(const char *m) { return strstr(m, \"Seccomp\"); }"
holds tests/core/test.c "bool f(const char *m) { return strstr(m, \"worker\"); }"
expect 0 "" "texts of others, and tests"
ends 2 "an argument" "$folder/scripts/check-words" more
[ $failed -eq 0 ]
