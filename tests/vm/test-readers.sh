# SPDX-License-Identifier: Apache-2.0
# "In ten lines" of README.md for those on the host, as it is written there: in a root of
# its own, where the lines install into /usr/local, write to /etc and use libvirt's system
# daemon. Nothing of it stays. The user's lines are in test-readme.sh.
# shellcheck shell=bash disable=SC2154,SC2016

lines_for() { python3 "$top/tests/docs/readme.py" "$top/README.md" "$1" 1; }

# A root whose changes are in memory, with the tree and the build folder in it. In
# namespaces, so that nothing of it outlives the function that is called there.
in_own_root() {
	unshare --mount --pid --net --fork --kill-child bash -euo pipefail -c "
		mount -t tmpfs tmpfs $PWD/layers
		cd layers
		mkdir {root,build}{,.upper,.work}
		mount -t overlay overlay root \
			-o lowerdir=/,upperdir=root.upper,workdir=root.work
		mount -t overlay overlay build \
			-o lowerdir=$build,upperdir=build.upper,workdir=build.work
		mkdir -p root$top root$build root$PWD
		mount --rbind $top root$top
		mount --bind build root$build
		mount --bind $PWD root$PWD
		mount -t proc proc root/proc
		mount --bind /sys root/sys
		mount --rbind /dev root/dev
		mount -t tmpfs -o mode=755 tmpfs root/run
		mount -t tmpfs -o mode=1777 tmpfs root/var/tmp
		export PATH=$PWD/bin:/usr/local/sbin:\$PATH
		exec chroot root bash -euo pipefail -c 'cd $PWD && . ./$1'"
}

# The commands of the lines that would reach the network or need a running systemd.
stand_ins() {
	cat >bin/sudo <<-'END'
		#!/bin/bash
		case $1-${2:-} in
		apt-get-build-dep)
			if ! apt-cache show debhelper >/dev/null 2>&1; then
				echo "no lists of packages here: '$*' is not tried"
				exit
			fi
			;;&
		apt-get-*) exec apt-get -qq --simulate "${@:2}" >/dev/null ;;
		*) exec "$@" ;;
		esac
	END
	# As the unit that was installed says: its folders and its program.
	cat >bin/systemctl <<-'END'
		#!/bin/bash
		set -euo pipefail
		unit=/usr/local/lib/systemd/system/vgpud.service
		case $* in
		daemon-reload) [ -e "$unit" ] ;;
		"enable --now vgpud")
			mkdir -p "/run/$(sed -n 's/^RuntimeDirectory=//p' "$unit")"
			export RUNTIME_DIRECTORY=/run/vgpud
			program=$(sed -n 's/^ExecStart=//p' "$unit")
			setsid $program </dev/null >vgpud.log 2>&1 &
			until [ -S /run/vgpud/control ]; do
				kill -0 $!
				sleep 0.1
			done
			;;
		*) exit 1 ;;
		esac
	END
	chmod +x bin/*
}

test_the_readme_leads_administrators_and_operators_to_a_machine_with_a_device() {
	local name
	[ "$(id -u)" -eq 0 ] || skip "the host's step needs root"
	unshare --mount --pid --net --fork true 2>/dev/null || skip "no namespaces here"
	for name in libvirtd virsh qemu-system-x86_64 systemd-{sysusers,tmpfiles}; do
		command -v "$name" >/dev/null || skip_option "$name is not installed"
	done
	nm -D "$build/guest-shim/libcuda.so.1" | grep -q __asan_ &&
		skip_option "no installation of a build with sanitizers"
	mkdir tree bin layers
	unshare --mount bash -ec "mount -t tmpfs tmpfs layers; mkdir layers/{a,b,c}
		mount -t overlay overlay layers/a \
			-o lowerdir=/,upperdir=layers/b,workdir=layers/c
		" 2>/dev/null || skip_option "no overlay of / can be mounted here"
	ln -s "$top"/* tree/
	rm -f tree/build
	ln -s "$build" tree/build
	stand_ins
	lines_for Administrator >administrator
	lines_for Operator >operator
	cat >domain.xml <<-END
		<domain type='qemu'>
		  <name>one</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
		  <os><type arch='x86_64' machine='q35'>hvm</type></os>
		  <features><acpi/></features>
		  <devices><emulator>$(command -v qemu-system-x86_64)</emulator></devices>
		</domain>
	END
	cat >both <<-'END'
		(cd tree && bash -euo pipefail ../administrator) >administrator.out 2>&1
		# As Debian's libvirt-daemon-system makes them.
		groupadd --force --system kvm
		groupadd --force --system libvirt-qemu
		id libvirt-qemu >/dev/null 2>&1 ||
			useradd --system --gid kvm -d /var/lib/libvirt libvirt-qemu
		# Not by a second daemon.
		echo 'stdio_handler = "file"' >>/etc/libvirt/qemu.conf
		libvirtd >libvirtd.out 2>&1 &
		until virsh --connect qemu:///system define domain.xml 2>virsh.out; do
			kill -0 $!
			sleep 1
		done
		(cd tree && bash -euo pipefail ../operator) >operator.out 2>&1
		cp /etc/vgpu/vm.d/one.conf .
		vgpuctl --json show one >shown
	END
	in_own_root both || {
		tail -n 30 {administrator,libvirtd,virsh,operator}.out tree/vgpud.log >&2
		return 1
	}
	grep -q '^ok *vgpud: ' administrator.out
	grep -qx 'device-memory = 4G' one.conf
	grep -q '"connections": 1,' shown
	grep -q 'vm=one id=.*: the VM connected' tree/vgpud.log
	[ ! -e /usr/local/sbin/vgpud ] || [ ! /usr/local/sbin/vgpud -nt both ]
}
