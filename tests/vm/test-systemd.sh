# SPDX-License-Identifier: Apache-2.0
# vgpud as the service of a systemd, of which two VMs do not notice restarts.
#
# The host is a container of systemd-nspawn, which shares the kernel, and /usr, of this
# machine, and has a systemd, a journal, an /etc, a /run and a /var of its own. In it
# vgpud is as `meson install` leaves it, under its unit. The VMs are QEMU's, in the
# container as well.
# shellcheck shell=bash disable=SC2154

# prefix : of the build, which the container sees where it is installed
prefix() {
	meson introspect --buildoptions "$build" | python3 -c 'import json, sys
print(*(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))'
}

# make_root : what a Debian without its /usr is, in ./root
make_root() {
	local name
	mkdir -p root/{dev,etc,opt,proc,root,run,sys,tmp,usr,var} installed"$prefix"
	for name in bin sbin lib lib32 lib64 libx32; do
		[ ! -L "/$name" ] || cp -a "/$name" root/
	done
	cp -a /etc/alternatives /etc/ld.so.c* root/etc/
	cp /usr/lib/os-release root/etc/
	echo 'root:x:0:0:root:/root:/bin/sh' >root/etc/passwd
	echo 'root:x:0:' >root/etc/group
	echo 'passwd: files
group: files' >root/etc/nsswitch.conf
	# One that is there already: systemd asks nobody to configure the host.
	tr -d - </proc/sys/kernel/random/uuid >root/etc/machine-id
	echo host >root/etc/hostname
	mkdir -p root/etc/{systemd/system,vgpu/vm.d}
	ln -s "$prefix"/lib/systemd/system/vgpud.{service,socket} root/etc/systemd/system/
	cat >root/etc/systemd/system/restarts.service <<-END
		[Unit]
		SuccessAction=exit
		FailureAction=exit
		[Service]
		Type=oneshot
		Environment=top=$top build=$build prefix=$prefix PATH=$PATH:$prefix/bin
		Environment=library=$(product libcuda.so.1) checked=$checked
		Environment=VGPU_BUILD=$build
		Environment=VGPU_GUEST_DIR=${VGPU_GUEST_DIR:-$build/guest}
		ExecStart=/bin/bash $top/tests/vm/systemd-host.sh
		StandardOutput=truncate:/opt/output
		StandardError=inherit
	END
}

test_two_machines_do_not_notice_restarts_of_vgpud_by_systemd() {
	local program prefix status=0
	[ "$(id -u)" -eq 0 ] || skip_option "needs root"
	for program in systemd-nspawn systemctl meson; do
		command -v "$program" >/dev/null || skip_option "$program is missing"
	done
	[ -x /usr/lib/systemd/systemd ] || skip_option "this machine has no systemd"
	[ -L /lib ] || skip_option "/lib is not in /usr"
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	prefix=$(prefix)
	case $prefix in
	/usr | /usr/local | /opt/*) ;;
	*) skip_option "vgpud's prefix is $prefix" ;;
	esac
	[ "$prefix" != /usr ] || skip_option "vgpud's prefix is the /usr of this machine"
	"$top/qemu/make-guest" --dir "${VGPU_GUEST_DIR:-$build/guest}"
	make_root
	DESTDIR=$PWD/installed meson install -C "$build" --no-rebuild --quiet
	systemd-nspawn --quiet --register=no --keep-unit --directory="$PWD/root" \
		--machine="vgpu-systemd-$$" --private-network --capability=all \
		--system-call-filter='@sandbox @privileged @resources userfaultfd' \
		--bind-ro=/usr --bind="$PWD/installed$prefix:$prefix" \
		--bind-ro="$top" --bind-ro="$build" --link-journal=no \
		--boot -- systemd.unit=restarts.service >console 2>&1 </dev/null ||
		status=$?
	[ -e root/opt/output ] || {
		tail -n 20 console >&2
		skip_option "systemd does not start in a container here ($status)"
	}
	cat root/opt/output
	[ "$(tail -n 1 root/opt/output)" = "Nothing was noticed." ]
}
