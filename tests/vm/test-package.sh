# SPDX-License-Identifier: Apache-2.0
# The guest package: installed in a guest like any, used by an ordinary user, removed.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016,SC2046

# What every guest of these tests begins with: a loader that reads its folders, two
# users, the device closed to both, the package unpacked. $1 is the package.
package_prelude='set -e
chmod 600 /sys/bus/pci/devices/*/resource[02]
mkdir -p /home /etc/ld.so.conf.d /etc/udev/rules.d /usr/lib/x86_64-linux-gnu
echo "include /etc/ld.so.conf.d/*.conf" >/etc/ld.so.conf
echo /usr/lib/x86_64-linux-gnu >/etc/ld.so.conf.d/x86_64-linux-gnu.conf
PATH=$PATH:/sbin:/usr/sbin
useradd -m -s /bin/sh -u 1000 anna
useradd -m -s /bin/sh -u 1001 otto
tar xzf $1 -C /tmp
cd /tmp/vgpu-guest-*
run() { user=$1; shift; rc=0; su $user -c "$*" >/tmp/$user.out 2>&1 || rc=$?; }
# useradd and its like keep the version before as /etc/NAME-; a cache belongs to its user
files() { find / -xdev ! -path "/proc/*" ! -path "/sys/*" ! -path "/dev/*" \
	! -path "/tmp/*" ! -path "/run/*" ! -name ld.so.cache ! -path "/etc/*-" \
	! -path "/home/*/.cache/vgpu/images" ! -type d | sort; }
'

# in_guest SCRIPT : runs it in a guest with a private vgpud, output in the file out
in_guest() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	"$top/scripts/make-guest-package" --output "$PWD/package.tar.gz" >name ||
		skip "no package of this build"
	printf '%s\n%s\n' "$package_prelude" "$1" >script
	run_dir=$PWD
	start_vgpud soft ivshmem
	guest --socket "$PWD/vgpud.sock" --add package.tar.gz --add script \
		$([ ! -e other.so ] || echo --add other.so) \
		--add /sbin/ldconfig --add /usr/sbin/groupadd --add /usr/sbin/useradd \
		--add /usr/sbin/usermod --add "$build/tests/e2e/e2e-vectoradd" -- \
		sh "$PWD/script" "$PWD/package.tar.gz" "$build/tests/e2e/e2e-vectoradd" \
		>out || { cat out >&2 && return 1; }
	stop_vgpud
}

test_package_serves_an_ordinary_user_and_goes_without_a_trace() {
	in_guest '
program=$2
files >/tmp/before
run anna $program
[ $rc = 127 ] || { echo "before: $rc" && cat /tmp/anna.out && exit 1; }
mv "$PWD" /tmp/elsewhere
cd /tmp/elsewhere
./smoke-test.sh
./install.sh --user anna
run anna $program
echo "member: $rc $(grep -o "0 wrong: PASS" /tmp/anna.out)"
run otto $program
echo "other: $rc $(grep -c PASS /tmp/otto.out)"
run anna /usr/local/bin/vgpu-smi -L
echo "smi of member: $rc $(grep -c "GPU 0: .*softgpu" /tmp/anna.out)"
run otto /usr/local/bin/vgpu-smi -L
echo "smi of other: $rc"
run anna /usr/local/bin/vgpu-doctor
echo "doctor of member: $rc"
cat /tmp/anna.out
/usr/local/bin/vgpu-cdi list --lib /usr/local/lib/vgpu >/tmp/cdi.out
echo "cdi: $? $(grep -c "mount .*/resource2 .*/resource2 rw" /tmp/cdi.out)"
stat -c "%G %a" /sys/bus/pci/devices/*/resource2 | grep vgpu
grep -o "chgrp vgpu .*resource2" /etc/udev/rules.d/60-vgpu.rules
/usr/local/lib/vgpu/uninstall.sh
run anna $program
echo "after: $rc"
grep -v "^vgpu:" /etc/group >/dev/null
files >/tmp/after
diff /tmp/before /tmp/after
'
	has out "libcuda.so.1 is /tmp/elsewhere/lib/libcuda.so.1, the one of vGPU"
	has out "device 0: vGPU softgpu (CPU)"
	has out "member: 0 0 wrong: PASS"
	has out "smi of member: 0 1"
	has out "smi of other: 9"
	has out "doctor of member: 0"
	grep -q "^ok    libcuda: /usr/local/lib/vgpu/.*, by the cache of ldconfig" out
	grep -q "^ok    libnvidia-ml: /usr/local/lib/vgpu/.*, by the cache" out
	grep -q "^ok    kernel: " out
	has out "cdi: 0 1"
	has out "other: 1 0"
	has out "vgpu 660"
	has out "after: 127"
	same "sessions" "$(grep -c 'session ended .*launches=1 ' vgpud.log)" 2
}

test_package_leaves_another_libcuda_alone_unless_told() {
	echo "int cuInit(unsigned int flags) { return 999; }" >other.c
	${CC:-cc} -shared -Wl,-soname,libcuda.so.1 -o other.so other.c
	in_guest '
other=/usr/lib/x86_64-linux-gnu/libcuda.so.1
cp ${1%/*}/other.so $other
ldconfig
files >/tmp/before
rc=0
./install.sh || rc=$?
echo "refused: $rc"
files >/tmp/after
diff /tmp/before /tmp/after
./install.sh --replace --user anna
run anna $2
echo "replaced: $rc $(grep -o "0 wrong: PASS" /tmp/anna.out)"
cmp $other ${1%/*}/other.so
run anna /usr/local/bin/vgpu-doctor
cat /tmp/anna.out
cp /usr/local/bin/vgpu-doctor /tmp/vgpu-doctor
./uninstall.sh
run anna /tmp/vgpu-doctor
cat /tmp/anna.out
rm /tmp/vgpu-doctor
echo "first now: $(ldconfig -p | grep -c "^.libcuda.so.1 .*x86_64-linux-gnu/libcuda")"
files >/tmp/after
diff /tmp/before /tmp/after
'
	has out "refused: 1"
	has out "replaced: 0 0 wrong: PASS"
	has out "first now: 1"
	# The folder has two names.
	local other='/lib/x86_64-linux-gnu/libcuda.so.1'
	grep -q "^ok    libcuda: /usr/local/lib/vgpu/.*, before .*$other" out
	grep -q "^FAIL  libcuda: programs get .*$other, by .*, which is not of vGPU" out
}

test_package_that_cannot_be_installed_leaves_nothing() {
	in_guest '
echo >/etc/ld.so.conf
files >/tmp/before
rc=0
./install.sh 2>&1 || rc=$?
echo "status: $rc"
files >/tmp/after
diff /tmp/before /tmp/after
rc=0
su anna -c ./install.sh 2>&1 || rc=$?
echo "without root: $rc"
'
	has out "status: 1"
	has out "install.sh: needs root"
	has out "without root: 1"
}
