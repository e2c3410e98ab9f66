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
	local script=$1 program null=$build/host-daemon/driver/null/libvgpu-null.so
	shift
	for program in vgpud/vgpud worker/vgpu-worker; do
		[ -e "$build/host-daemon/${program/#vgpud/main}" ] ||
			skip_option "built without the host's daemon"
	done
	for program in qemu-system-x86_64 setpriv; do
		set -- "$@" --add "$(command -v $program):/usr/bin/$program"
	done
	guest --accel tcg --memory 1500 --timeout "$limit" "$@" \
		--add "$build/host-daemon/main/vgpud:/usr/sbin/vgpud" \
		--add "$build/host-daemon/worker/vgpu-worker:/usr/libexec/vgpu-worker" \
		--add "$null:/usr/lib/vgpu/null.so" \
		--add "$build/host-daemon/ctl/vgpuctl:/usr/bin/vgpuctl" \
		--add "$build/host-daemon/ctl/vgpuctl:/usr/local/bin/vgpuctl" \
		--add /usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so \
		--add /usr/share/seabios --add /usr/share/qemu/kvmvapic.bin \
		--add "$PWD/labels:/labels" --add "$top/tests/vm/$script:/opt/$script" \
		--add "$top/tests/vm/labels-qemu.sh:/opt/labels-qemu.sh" \
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
		worker = /usr/libexec/vgpu-worker
		null-driver = /usr/lib/vgpu/null.so
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
	echo 'libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin' >labels/passwd
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
	local name features=$PWD/root/usr/share/apparmor-features
	local helper=$PWD/root/usr/lib/libvirt/virt-aa-helper
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
		--add "$features:${features#"$PWD/root"}" \
		--add "$PWD/root/usr/bin/aa-exec:/usr/bin/aa-exec" \
		--add "$helper:${helper#"$PWD/root"}"
	judge_apparmor
}

# policies : Debian's with what the guest needs of it, and that with ours as well, in
# labels/without and labels/with
policies() {
	local name modules=() store=(nice -n 15 semodule -p root -n -s default)
	for name in $(cat root/usr/share/selinux/default/.modules); do
		modules+=(-i "root/usr/share/selinux/default/$name.pp.bz2")
	done
	mkdir -p root/var/lib/selinux/default labels/with labels/without
	printf 'SELINUX=enforcing\nSELINUXTYPE=default\n' >root/etc/selinux/config
	printf 'module-store = direct\nexpand-check = 0\n' >root/etc/selinux/semanage.conf
	cp -r "$top/qemu" .
	bash -euc "$(sed -n 's/^  *\(checkmodule \|semodule_package \)/\1/p' \
		qemu/README.md)"
	checkmodule -M -m -o labels-test.mod "$top/tests/vm/labels-test.te"
	semodule_package -o labels-test.pp -m labels-test.mod
	"${store[@]}" "${modules[@]}" -i labels-test.pp
	keep_policy without
	"${store[@]}" -i vgpu.pp
	keep_policy with
	cp -r root/etc/selinux labels/etc/
	# Compiled from what load() of the guest replaces.
	rm -f labels/etc/selinux/default/contexts/files/*.bin
}

# keep_policy NAME
keep_policy() {
	cp root/etc/selinux/default/policy/policy.33 "labels/$1/policy"
	cp root/etc/selinux/default/contexts/files/file_contexts "labels/$1/"
}

# denied NAME DENIAL : QEMU was refused, and the kernel's log has the reason
denied() {
	grep -q "^$1: refused, .*Permission denied$" out
	has out "$1| $2"
}

judge_selinux() {
	local machine=system_u:system_r:svirt_t:s0:c1,c2 name
	has out "enforcing: 1"
	expect 1 grep 'not loaded$' out
	denied without "sock_file $machine system_u:object_r:initrc_runtime_t:s0: write"
	has out "label: 	vgpud_run_t:s0"
	has out "label: two.sock	vgpud_run_t:s0"
	has out "label: new.sock	vgpud_run_t:s0"
	for name in own huge new; do
		has out "$name: attached"
		expect 1 grep -E "^$name\| .*(vgpud|initrc|tmpfs|hugetlbfs)" out
	done
	has out "label: two.sock	vgpud_run_t:s0:c3,c4"
	denied other "sock_file $machine system_u:object_r:vgpud_run_t:s0:c3,c4: write"
}

test_selinux() {
	local name options=()
	for name in semodule checkmodule semodule_package load_policy setfiles \
		restorecon getfilecon; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$name" >/dev/null ||
			skip "$name is missing (policycoreutils, checkpolicy," \
				"semodule-utils, selinux-utils)"
	done
	PATH=$PATH:/usr/sbin:/sbin
	unpack root selinux-policy-default
	mkdir labels
	settings
	policies >policies.log 2>&1 || {
		cat policies.log >&2
		return 1
	}
	for name in load_policy setfiles restorecon; do
		options+=(--add "$(command -v "$name"):/sbin/$name")
	done
	for name in runcon chcon getfilecon; do
		options+=(--add "$(command -v "$name"):/usr/bin/$name")
	done
	host labels-selinux.sh --append "security=selinux selinux=1 enforcing=0" \
		"${options[@]}"
	judge_selinux
}
