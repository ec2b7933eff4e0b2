#!/usr/bin/env bash
# scripts/warnings: it passes what compiles, and finds a warning in one file, in one of a file's two
# sets of macros, and a file that does not compile; it has what is included generated; it leaves no
# object; where there is ccache, it compiles once what has not changed; what a target consists of, or what
# scripts/tidy has read, it leaves out. Usage: warnings.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
warnings=$1/scripts/warnings
export CCACHE_DIR=$folder/cache
unset CCACHE_DISABLE CCACHE_READONLY CCACHE_RECACHE CCACHE_CONFIGPATH
expect() { # STATUS WORDS NAME [ARGUMENT...]
    ends "$1" "$3" "$warnings" "${@:4}"
    grep -q -- "$2" "$folder/said" || fail "$3: it does not say '$2'"
}

cat > "$folder/CMakeLists.txt" << 'EOF'
cmake_minimum_required(VERSION 3.25)
project(two C)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Werror)
add_custom_command(OUTPUT made.h COMMAND ${CMAKE_COMMAND} -E touch made.h)
add_library(plain STATIC one.c two.c ${CMAKE_CURRENT_BINARY_DIR}/made.h)
target_include_directories(plain PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
target_compile_definitions(plain PRIVATE "TEXT=\"a b\"")
add_library(other STATIC two.c)
target_compile_definitions(other PRIVATE OTHER=1)
add_library(shared SHARED two.c) # the same once more
EOF
printf '#include "made.h"\nint one(void) { return (int)sizeof TEXT; }\n' > "$folder/one.c"
printf 'int two(void) { return 2; }\n' > "$folder/two.c"
cmake -G Ninja -S "$folder" -B "$folder/build" > "$folder/said" 2>&1 || fail "cmake"

build=$folder/build
expect 0 '^3 files' "all is well" "$build"
if command -v ccache > /dev/null; then
    expect 0 '^3 files' "once more" "$build"
    hits=$(ccache --print-stats | sed -n 's/^direct_cache_hit\t//p')
    [ "$hits" -eq 3 ] || fail "of three files ccache knew $hits"
fi
[ -z "$(find "$folder/build" -name '*.c.o' -o -path '*/warnings/*.[od]')" ] || fail "it left objects"
printf 'int two(void)\n{\n#ifdef OTHER\n    int unused;\n#endif\n    return 2;\n}\n' > "$folder/two.c"
expect 1 "two.c.*unused" "a warning with one set of macros" "$build"
expect 1 "two.c.*unused" "the same, with a target that has it not" "$build" plain
expect 1 "two.c.*unused" "the same, with the target that has it" "$build" other
printf 'int two(void) { return 2; }\n' > "$folder/two.c"
printf 'int one(void) { return nothing; }\n' > "$folder/one.c"
expect 1 "one.c.*nothing" "a file that does not compile" "$build"
printf '#include "made.h"\nint one(void) { return (int)sizeof TEXT; }\n' > "$folder/one.c"

expect 0 '^1 files' "a target is not compiled again" "$build" plain
expect 0 '^2 files' "another" "$build" other
expect 0 '^0 files' "everything" "$build" plain other
expect 2 "Usage: scripts/warnings" "scripts/tidy has not run" --tidied "$build"
mkdir "$build/tidy"
jq 'map(select(.file | endswith("/one.c")))' "$build/compile_commands.json" > "$build/tidy/compile_commands.json"
expect 0 '^2 files' "scripts/tidy has read one" --tidied "$build"
expect 0 '^1 files' "and a target is built" --tidied "$build" other
rm "$build/compile_commands.json"
expect 2 "Usage: scripts/warnings" "no build" "$build"

[ $failed -eq 0 ] && echo "all passed"
