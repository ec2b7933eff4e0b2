#!/usr/bin/env bash
# scripts/tidy: it reads a file once, with the most macros that a target gives it; with each set of them
# where the file has conditions; never as tests/fault redirects its calls, where there is another; no
# file of other folders; and where there is ccache, again only if the file, what it includes, the checks
# or clang-tidy have changed. clang-tidy is a fake here; the last case runs the real one, where it is
# installed, with this tree's checks. Usage: tidy.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mkdir "$folder/bin" "$folder/scripts" "$folder/tests"
for room in base core ipc formats templates tool request cli batch chaos judge supervisor worker python; do
    mkdir "$folder/$room"
done
cp "$1/scripts/tidy" "$folder/scripts"
printf '#!/bin/sh\necho clang-tidy-19\n' > "$folder/scripts/install-deps"
chmod +x "$folder/scripts/install-deps"
cat > "$folder/bin/clang-tidy-19" << EOF
#!/bin/sh
case \$1 in
--version) echo "version \$(cat "$folder/version")" && exit 0 ;;
esac
echo "\$2" >> "$folder/read"
grep -q bad "\$2" && echo 'plain.c: error: bad' >&2 && exit 1
exit 0
EOF
chmod +x "$folder/bin/clang-tidy-19"
real=$("$1/scripts/install-deps" --program clang-tidy) && real=$(command -v "$real")
PATH=$folder/bin:$PATH
echo 1 > "$folder/version"
export CCACHE_DIR=$folder/cache
unset CCACHE_DISABLE CCACHE_READONLY CCACHE_RECACHE CCACHE_CONFIGPATH
echo 'Checks: bugprone-*' > "$folder/.clang-tidy"

echo 'int plain(void); /* plainly */' > "$folder/base/plain.h"
printf '#include "plain.h"\nint plain(void) { return 0; }\n' > "$folder/base/plain.c"
printf 'int own(void);\n#if BHI_FAULTS\nint own(void) { return 1; }\n#endif\n' > "$folder/base/own.c"
printf 'int broken(void);\n' > "$folder/base/broken.c"
printf 'int test(void);\n' > "$folder/tests/test.c"
cat > "$folder/CMakeLists.txt" << 'EOF'
cmake_minimum_required(VERSION 3.25)
project(tidy C)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Werror)
add_library(room OBJECT base/plain.c base/own.c)
add_library(room_faulty OBJECT base/plain.c base/own.c)
target_compile_definitions(room_faulty PRIVATE BHI_FAULTS=1)
add_library(abi_newer SHARED base/plain.c base/own.c)
add_library(breakable OBJECT base/plain.c base/own.c base/broken.c)
target_compile_options(breakable PRIVATE -include stddef.h -DMORE=1 -DAND_MORE=1)
add_library(tests OBJECT tests/test.c)
EOF
cmake -G Ninja -S "$folder" -B "$folder/build" > "$folder/said" 2>&1 || fail "cmake"

# read_as FILE MACROS...: one word for each time
read_as() {
    local file=$1 macros
    shift
    macros=$(jq -r --arg file "$file" '.[] | select(.file | endswith($file))
        | [.command | scan("-D(\\w+)")[]] | join("+") | if . == "" then "-" else . end' \
        "$folder/build/tidy/compile_commands.json" | sort | tr '\n' ' ')
    [ "$macros" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || fail "$file is read as $macros, not $*"
}
ends 0 "all is well" "$folder/scripts/tidy" "$folder/build"
grep -q '^3 files' "$folder/said" || fail "it does not say how many"
has_read() { # FILE...: and forgets it
    local read
    read=$(sed 's@.*/base/@base/@' "$folder/read" | sort | tr '\n' ' ')
    [ "${read% }" = "$*" ] || fail "it read '$read', not '$*'"
    : > "$folder/read"
}
all="base/broken.c base/own.c base/own.c base/own.c base/plain.c"
has_read "$all"
read_as base/plain.c BHI_FAULTS
read_as base/own.c - BHI_FAULTS MORE+AND_MORE
read_as base/broken.c MORE+AND_MORE
again() { # NAME FILES
    ends 0 "$1" "$folder/scripts/tidy" "$folder/build"
    has_read "$2"
}
if command -v ccache > /dev/null; then
    again "nothing has changed" ""
    echo 'int plain(void); /* plain */' > "$folder/base/plain.h"
    again "a comment in a header" base/plain.c
    echo 'Checks: misc-*' > "$folder/.clang-tidy"
    again "other checks" "$all"
    echo 2 > "$folder/version"
    again "another version" "$all"
fi
printf 'bad\n' >> "$folder/base/plain.c"
ends 1 "a finding" "$folder/scripts/tidy" "$folder/build"
grep -q 'plain.c: error: bad' "$folder/said" || fail "it does not say which"
ends 1 "the same finding" "$folder/scripts/tidy" "$folder/build"
grep -q 'plain.c: error: bad' "$folder/said" || fail "it does not say which"
# Nobody compiles these files for their warnings: they are findings, of the checks as they are.
if [ -n "$real" ]; then
    ln -sf "$real" "$folder/bin/clang-tidy-19"
    cp "$1/.clang-tidy" "$folder/.clang-tidy"
    printf '#include "plain.h"\nint plain(void) { int unused; return 0; }\n' > "$folder/base/plain.c"
    ends 1 "a warning" "$folder/scripts/tidy" "$folder/build"
    grep -q 'plain.c.*error: unused variable' "$folder/said" || fail "it does not say which"
fi
rm "$folder/build/compile_commands.json"
ends 2 "no build" "$folder/scripts/tidy" "$folder/build"

[ $failed -eq 0 ] && echo "all passed"
