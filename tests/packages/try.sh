#!/usr/bin/env bash
# In a clean root of a Debian release, with the packages in the folder of this script: installs them,
# uses each, and purges them, of which nothing may be left. scripts/packages --try brings it there.
set -euo pipefail
given=$(dirname "$0")
cd /tmp
export DEBIAN_FRONTEND=noninteractive
die() {
    echo "try.sh: $*" >&2
    exit 1
}
apt() { apt-get -q -y -o Acquire::Retries=3 "$@" > log 2>&1 || { tail -n 30 log >&2; return 1; }; }
step() { echo "== [$SECONDS] $*"; }

step "what a machine has that uses them"
have=(mesa-vulkan-drivers python3 man-db bash-completion gcc libc6-dev pkg-config)
apt install --no-install-recommends "${have[@]}" 2> /dev/null ||
    { apt update && apt install --no-install-recommends "${have[@]}"; }
state() {
    dpkg-query -W -f '${Package} ${Status}\n' > "$1.packages"
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /src \
        -o -path /given -o -path /var/cache -o -path /var/log -o -path /var/lib/dpkg \
        -o -path /var/lib/apt -o -path /etc/ld.so.cache \) -prune -o -print | sort > "$1.files"
}
state before

step "install"
apt install --no-install-recommends "$given"/*.deb
dpkg --verify bulkhead libbulkhead0.2 libbulkhead-judge0.2 libbulkhead-dev python3-bulkhead | tee wrong
[ ! -s wrong ] || die "dpkg --verify"
dpkg --audit | tee wrong
[ ! -s wrong ] || die "dpkg --audit"

step "the command"
bulkhead version | grep '^bulkhead 0\.2' > said || die "bulkhead version"
bulkhead devices > said || die "bulkhead devices"
bulkhead doctor > said || { cat said >&2; die "bulkhead doctor"; }
printf '%s' 12345678 > x
bulkhead run /usr/share/bulkhead/shaders/square.spv --help > /dev/null || die "run --help"
python3 - << 'END'
import struct
def npy(name, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%df" % len(values), *values))
npy("x.npy", [1, 2, 3])
END
bulkhead eval 'y = x*x + 1' --in x=x.npy --out y=y.npy > said || die "bulkhead eval"
[ "$(tail -c 12 y.npy | od -An -tf4 | xargs)" = "2 5 10" ] || die "eval: $(od -An -tf4 y.npy)"
man -P cat 1 bulkhead 2> /dev/null | grep 'eval' > said || die "man bulkhead"
# shellcheck source=/dev/null
bash -c '. /usr/share/bash-completion/bash_completion
    { _completion_loader bulkhead || _comp_load bulkhead; } 2> /dev/null; complete -p bulkhead' \
    > said || die "no completion in bash"
for file in /usr/share/zsh/vendor-completions/_bulkhead \
    /usr/share/fish/vendor_completions.d/bulkhead.fish /usr/share/doc/bulkhead/docs/install.md; do
    [ -s "$file" ] || die "$file is not there"
done

step "the library"
[ "$(pkg-config --modversion bulkhead)" = "$(bulkhead version | sed -n '1s/bulkhead //p')" ] ||
    die "pkg-config: $(pkg-config --modversion bulkhead)"
shaders=$(pkg-config --variable=kernels bulkhead)
# shellcheck disable=SC2046 # words are wanted
gcc -Wall -Werror /usr/share/doc/bulkhead/examples/saxpy.c -o saxpy \
    $(pkg-config --cflags --libs bulkhead) || die "the example does not build"
[ "$(./saxpy)" = 'y[1023] = 3069' ] || die "saxpy: $(./saxpy)"
[ "$(pkg-config --variable=worker bulkhead)" -ef /usr/libexec/bulkhead/bulkhead-worker ] ||
    die "pkg-config: worker"
# shellcheck disable=SC2046
gcc -Wall -Werror /usr/share/doc/bulkhead/examples/judge.c -o judge \
    $(pkg-config --cflags --libs bulkhead-judge) || die "the example judge does not build"
./judge > said || [ $? = 1 ] || die "judge: $(cat said)"
grep -qx 'right: CORRECT' said || die "judge: $(cat said)"
man -P cat 3 bh_judge_run 2> /dev/null | grep 'bh_judgement' > said || die "man bh_judge_run"
man -P cat 3 bh_submit 2> /dev/null | grep 'bh_submit_info' > said || die "man bh_submit"

step "AppArmor"
profile=/etc/apparmor.d/usr.libexec.bulkhead.bulkhead-warden
if [ -e "$profile" ]; then # where AppArmor knows user namespaces
    /usr/libexec/bulkhead/apparmor-profile | cmp - "$profile" || die "$profile is another"
    grep -qx "$profile" /var/lib/dpkg/info/libbulkhead0.2.conffiles || die "$profile is no conffile"
fi

step "Python"
python3 "$given/place.py" /usr/lib/python3/dist-packages/bulkhead /usr/lib /usr/libexec/bulkhead ||
    die "the program in Python failed"
python3 -m bulkhead version | grep '^bulkhead 0\.2' > said || die "python3 -m bulkhead"
compgen -G '/usr/lib/python3/dist-packages/bulkhead/__pycache__/*.pyc' > said || die "not compiled"

step "what they are linked with"
for file in /usr/bin/bulkhead /usr/lib/libbulkhead.so.0.2 /usr/lib/libbulkhead-judge.so.0.2 \
    /usr/libexec/bulkhead/bulkhead-warden /usr/libexec/bulkhead/bulkhead-worker \
    /usr/lib/python3/dist-packages/bulkhead/_native.abi3.so; do
    ! ldd "$file" | grep 'not found' || die "$file"
    ! readelf -d "$file" | grep -E 'R(UN)?PATH' || die "$file remembers a folder"
    ! readelf -S "$file" | grep -E 'debug_info' || die "$file is not stripped"
done

step "purge"
apt purge --auto-remove bulkhead libbulkhead0.2 libbulkhead-judge0.2 libbulkhead-dev python3-bulkhead
state after
diff before.packages after.packages || die "these packages are left"
diff before.files after.files || die "these files are left"
echo "installed, used and purged"
