#!/usr/bin/env bash
# The wheel in a fresh virtual environment, without the build tree: it has all that it needs.
# Usage: wheel.sh SOURCE BUILD PYTHON
set -euo pipefail
source=$1 build=$2 python=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
die() {
    echo "$*" >&2
    exit 1
}

# What is missing is said at once.
refused() { # WHAT EXPECTED COMMAND...
    local what=$1 expected=$2
    shift 2
    if "$@" > said 2>&1 || [ "$(wc -l < said)" != 1 ] || ! grep -qF "$expected" said; then
        die "$what: $(cat said)"
    fi
}
cd "$folder"
refused "no patchelf" "there is no patchelf: scripts/install-deps test installs it" \
    env PATH="$folder" "$python" "$source/scripts/wheel" "$build"
refused "no build" "$folder/python/bulkhead/__init__.py: build first" "$source/scripts/wheel" "$folder"
refused "no folder" "cannot be created: " "$source/scripts/wheel" "$build" "$folder/said"

wheel=$("$source/scripts/wheel" "$build" "$folder/new/wheels")
case $wheel in
"$folder"/new/wheels/bulkhead-*-cp311-abi3-manylinux_2_*_x86_64.whl) ;;
*) die "the wheel is called $wheel" ;;
esac

"$python" -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/python" -m pip -q install --no-index "${wheel}[numpy]"

run() {
    env -i HOME="$folder" PATH=/usr/bin:/bin XDG_RUNTIME_DIR="$folder" "$@"
}
package=$(echo venv/lib/python3*/site-packages/bulkhead)
run "$folder/venv/bin/python" "$source/tests/python/place.py" "$folder/$package" "$folder/$package/lib" > said ||
    die "the program failed"
version=$(cat said)
[ "$(run "$folder/venv/bin/bulkhead" version | head -n 1)" = "bulkhead $version" ] ||
    die "the command says: $(run "$folder/venv/bin/bulkhead" version)"
run "$folder/venv/bin/python" -m bulkhead inspect "$package/share/saxpy.spv" |
    grep -q 'storage read  ' || die "the command inspects nothing"
# What the files need is in the wheel, or on every Linux with that glibc.
"$package/lib/apparmor-profile" > said
grep -qF "\"$(realpath "$package/lib/bulkhead-warden")\" flags=(unconfined)" said ||
    die "apparmor-profile does not name the wheel's warden"
for file in "$package"/{_native.abi3.so,lib/*.so*,lib/bulkhead-{warden,worker},bin/bulkhead}; do
    run ldd "$file" > said
    ! grep 'not found' said || die "$file: not found"
    while read -r name _ path _; do
        case $path in
        "$folder"/* | '' | \(*) ;;
        *)
            [[ $name =~ ^(libc|libm|libpthread|libresolv|libgcc_s|libstdc\+\+)\.so ]] ||
                die "$file needs $name, which is $path"
            ;;
        esac
    done < said
done
