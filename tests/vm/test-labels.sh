# SPDX-License-Identifier: Apache-2.0
# Hosts whose kernels confine QEMU as libvirt does: by AppArmor, and by SELinux. The guest
# is such a host: Debian's cloud kernel has both. Their programs and policies come from
# Debian's packages, unpacked, and QEMU in it, which only attaches its device, is this
# machine's.
# shellcheck shell=bash disable=SC2154

# unpack FOLDER PACKAGE... : Debian's, which are not installed
unpack() {
	local folder=$1 package
	shift
	mkdir debs "$folder"
	(cd debs && apt-get -qq download "$@" >../apt.log 2>&1) || {
		apt-get -qq update >>apt.log 2>&1 || true
		(cd debs && apt-get -qq download "$@" >>../apt.log 2>&1)
	} || skip_option "Debian's packages cannot be had: $(tail -n 1 apt.log)"
	for package in debs/*.deb; do
		dpkg-deb -x "$package" "$folder"
	done
}

# host SCRIPT OPTION... : runs it in the guest, output in the file out
host() {
	local script=$1 program
	shift
	for program in vgpud/vgpud worker/vgpu-worker; do
		[ -e "$build/host-daemon/${program/#vgpud/main}" ] ||
			skip_option "built without the host's daemon"
	done
	for program in qemu-system-x86_64 setpriv; do
		set -- "$@" --add "$(command -v $program):/usr/bin/$program"
	done
	guest --accel tcg --memory 1500 --timeout "$limit" "$@" \
		--add "$build/host-daemon/main/vgpud:/opt/vgpud" \
		--add "$build/host-daemon/worker/vgpu-worker:/opt/vgpu-worker" \
		--add "$build/host-daemon/driver/null/libvgpu-null.so:/opt/null.so" \
		--add "$build/host-daemon/ctl/vgpuctl:/usr/bin/vgpuctl" \
		--add "$build/host-daemon/ctl/vgpuctl:/usr/local/bin/vgpuctl" \
		--add /usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so \
		--add /usr/share/seabios --add /usr/share/qemu/kvmvapic.bin \
		--add "$PWD/labels:/labels" --add "$top/tests/vm/$script:/opt/$script" \
		-- sh "/opt/$script" >out 2>err || {
		cat out err console.* >&2
		return 1
	}
	cat out
	has out "all checks: done"
}

# settings : of vgpud, with machines that the hook does not make, and of libvirt's user
settings() {
	mkdir -p labels/etc/vgpu/vm.d labels/etc/libvirt/hooks/qemu.d
	cat >labels/etc/vgpu/vgpud.conf <<-END
		[vgpud]
		driver = null
		worker = /opt/vgpu-worker
		null-driver = /opt/null.so
		ctl-socket = /run/vgpud/control

		[vm two]
		socket = /run/vgpud/two.sock
		socket-group = libvirt-qemu

		[vm huge]
		socket = /run/vgpud/huge.sock
		socket-group = libvirt-qemu
		size = 64M
		max-processes = 1
		hugepages = hugetlb
	END
	sed 's|/[^ ]*/vgpuctl|/usr/bin/vgpuctl|' "$build/host-daemon/ctl/libvirt-hook" \
		>labels/etc/libvirt/hooks/qemu.d/vgpu
	chmod 755 labels/etc/libvirt/hooks/qemu.d/vgpu
	echo 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin' >labels/passwd
	echo 'libvirt-qemu:x:64055:' >labels/group
}

# refused NAME DENIAL : and the kernel's log has that
refused() {
	grep -q "^$1: refused, .*Permission denied$" out
	grep -q "^$1| .*$2\$" out
}

# attached NAME : and nothing of ours was denied
attached() {
	has out "$1: attached"
	expect 1 grep -E "^$1\| .*(vgpu|hugepage|memfd)" out
}

# Some kernels look at the path of a socket when a process connects, such as Ubuntu's;
# Debian's of 6.1 does not.
judge_apparmor() {
	grep -q '^lsm: .*apparmor' out
	expect 1 grep 'failed$\|not loaded$' out
	same "rules of the domain with both" "$(sed -n 's/^rule| *//p' out | head -n 2)" \
		'"/run/vgpud/one.sock" rw,
"/dev/shm/vgpu-one" rw,'
	same "rules" "$(grep -c '^rule|' out)" 3
	has out "hook: 0"
	expect 1 grep '^hook|' out
	has out "hook-local: 126"
	has out "hook-local| exec /usr/local/bin/vgpuctl"
	has out "hook-allowed: 0"
	expect 1 grep '^hook-allowed|' out
	has out "socket: srw-rw---- libvirt-qemu"
	attached own
	attached own-file
	attached huge
	refused other-file "mknod /dev/shm/vgpu-two"
	refused no-rule-file "open /dev/shm/vgpu-one"
	if grep -q "^sockets have paths: yes" out; then
		refused other "/run/vgpud/two.sock"
		refused no-rule "/run/vgpud/one.sock"
	else
		say "this kernel's AppArmor does not look at the paths of sockets"
		attached other
		attached no-rule
	fi
}

test_apparmor() {
	local name
	unpack root apparmor libvirt-daemon libvirt-daemon-system
	mkdir labels
	settings
	cp -r root/etc/apparmor root/etc/apparmor.d labels/etc/
	# Made by these packages when they are installed.
	mkdir -p labels/etc/apparmor.d/local/abstractions
	for name in abstractions/libvirt-qemu abstractions/libvirt-lxc usr.sbin.libvirtd \
		usr.lib.libvirt.virt-aa-helper; do
		touch "labels/etc/apparmor.d/local/$name"
	done
	sed -n 's/^ *\(\/usr\/local\/bin\/vgpuctl PUx,\)$/\1/p' "$top/qemu/README.md" \
		>labels/local
	[ -s labels/local ]
	host labels-apparmor.sh --append "apparmor=1 security=apparmor" \
		--add "$PWD/root/sbin/apparmor_parser:/sbin/apparmor_parser" \
		--add "$PWD/root/usr/share/apparmor-features:/usr/share/apparmor-features" \
		--add "$PWD/root/usr/bin/aa-exec:/usr/bin/aa-exec" \
		--add "$PWD/root/usr/lib/libvirt/virt-aa-helper:/usr/lib/libvirt/virt-aa-helper"
	judge_apparmor
}
