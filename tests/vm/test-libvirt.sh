# SPDX-License-Identifier: Apache-2.0
# Domains of libvirt: the hook, devices that come and go, and the lines of qemu/README.md.
# shellcheck shell=bash disable=SC2154

# The daemon's folders, and users that Debian's package of it makes.
# shellcheck disable=SC2016
apart='set -e
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
folders=$(echo /etc/{libvirt,vgpu} /var/{lib,log,cache}/libvirt)
for folder in $folders; do
	mkdir -p $folder
	mount -t tmpfs -o mode=755 tmpfs $folder
done
cp /etc/passwd passwd
cp /etc/group group
grep -q ^libvirt-qemu: passwd ||
	echo "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin" >>passwd
grep -q ^libvirt-qemu: group || echo "libvirt-qemu:x:64055:" >>group
mount --bind passwd /etc/passwd
mount --bind group /etc/group
# As long as only root may use KVM, libvirtd asks QEMU anew what it can for each call.
if [ -e /dev/kvm ]; then
	touch kvm
	chmod 0 kvm
	mount --bind kvm /dev/kvm
fi
# There is no virtlogd, and no place for the namespaces and groups of QEMU.
cat >/etc/libvirt/qemu.conf <<END
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
END
exec "$@"'

test_libvirt() {
	local program
	[ "$(id -u)" -eq 0 ] || skip "the privileged libvirt needs root"
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	for program in libvirtd virsh; do
		command -v "$program" >/dev/null || skip "$program is missing"
	done
	[ -e "$build/host-daemon/ctl/libvirt-hook" ] ||
		skip_option "built without libvirt"
	guest -- true
	unshare -m bash -c "$apart" - python3 "$top/tests/vm/libvirt-host.py" \
		"$build" "$checked" >out 2>&1 || {
		cat out >&2
		return 1
	}
}
