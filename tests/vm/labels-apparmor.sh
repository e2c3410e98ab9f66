#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A host of virtual machines whose kernel has AppArmor, without libvirt's daemon: the
# profiles of Debian's libvirt, one made by its virt-aa-helper, and QEMU confined by that.
# Runs in the guest of test-labels.sh, which judges what it prints; by busybox.
#
#   NAME: attached | refused    whether QEMU has the device, "refused" with its reason
#   NAME| OPERATION PATH        what the kernel denied meanwhile, one line each
# shellcheck disable=SC3043 # busybox has local

n_profiles=0
hook=/etc/libvirt/hooks/qemu.d/vgpu

. /opt/labels-qemu.sh

# denials NAME : since the last call
denials() {
	dmesg -c | grep 'apparmor="DENIED"' |
		sed -n 's/.* operation="\([^"]*\)".* name="\([^"]*\)".*/\1 \2/p' |
		sort -u | sed "s|^|$1\| |"
}

# confine WORDS... : as libvirt's user, in the profile of the domain
confine() { as_libvirt /usr/bin/aa-exec -p "libvirt-$uuid" -- "$@"; }

plain() {
	qemu "$1" -object \
		"memory-backend-file,id=vgpu,share=on,size=64M,mem-path=/dev/shm/$2" \
		-device ivshmem-plain,memdev=vgpu
}

# profile ELEMENTS : of a domain with these devices
profile() {
	n_profiles=$((n_profiles + 1))
	uuid=11111111-2222-3333-4444-00000000000$n_profiles
	cat >/tmp/one.xml <<-END
		<domain type='qemu'>
		  <name>one</name><uuid>$uuid</uuid>
		  <memory unit='MiB'>64</memory>
		  <os><type arch='x86_64' machine='q35'>hvm</type></os>
		  <devices>
		    <emulator>/usr/bin/qemu-system-x86_64</emulator>$1
		  </devices>
		</domain>
	END
	/usr/lib/libvirt/virt-aa-helper -c -u "libvirt-$uuid" </tmp/one.xml ||
		echo "virt-aa-helper failed"
	grep '^ *"/\(run/vgpud\|dev/shm\)' "/etc/apparmor.d/libvirt/libvirt-$uuid.files" |
		sed 's/^ */rule| /'
}

# run_hook NAME FILE : as libvirt's daemon, in its profile
run_hook() {
	/usr/bin/aa-exec -p libvirtd -- "$2" one prepare begin - </tmp/one.xml
	echo "$1: $?"
	denials "$1"
}

mount -t securityfs securityfs /sys/kernel/security
mkdir /dev/hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages
echo 40 >/proc/sys/vm/nr_hugepages
echo 0 >/proc/sys/kernel/printk_ratelimit
cat /labels/passwd >>/etc/passwd
cat /labels/group >>/etc/group
cp -r /labels/etc/. /etc/
echo "lsm: $(cat /sys/kernel/security/lsm)"
[ ! -e /sys/kernel/security/apparmor/features/network_v9/af_unix ] &&
	[ ! -e /sys/kernel/security/apparmor/features/network/af_unix ] ||
	echo "sockets have paths: yes"
/sbin/apparmor_parser -r /etc/apparmor.d/usr.sbin.libvirtd \
	/etc/apparmor.d/usr.lib.libvirt.virt-aa-helper || echo "profiles: not loaded"

/usr/sbin/vgpud --config /etc/vgpu/vgpud.conf >/tmp/vgpud.log 2>&1 &
until grep -q "vgpud ready" /tmp/vgpud.log; do
	kill -0 $! || { cat /tmp/vgpud.log && exit 1; }
	sleep 0.1
done
dmesg -c >/dev/null

profile "
<shmem name='vgpu'>
  <model type='ivshmem-doorbell'/>
  <server path='/run/vgpud/one.sock'/>
  <msi vectors='32' ioeventfd='on'/>
</shmem>
<shmem name='vgpu-one'>
  <model type='ivshmem-plain'/>
  <size unit='M'>64</size>
</shmem>"
# Debian's profile of the daemon lets it run what is in /usr/bin. A vgpuctl that is
# elsewhere needs the line of qemu/README.md.
sed 's|/usr/bin/|/usr/local/bin/|' $hook >$hook-local
chmod 755 $hook-local
run_hook hook-local $hook-local
cat /labels/local >>/etc/apparmor.d/local/usr.sbin.libvirtd
/sbin/apparmor_parser -r /etc/apparmor.d/usr.sbin.libvirtd
run_hook hook-allowed $hook-local
/usr/local/bin/vgpuctl hook one release end - </tmp/one.xml
run_hook hook $hook
stat -c 'socket: %A %G' /run/vgpud/one.sock
doorbell own one
doorbell other two
plain own-file vgpu-one
plain other-file vgpu-two

# A domain without the elements: no rule.
profile ''
doorbell no-rule one
plain no-rule-file vgpu-one

# What is said below the socket: huge pages are files of hugetlbfs.
profile "
<shmem name='vgpu'>
  <model type='ivshmem-doorbell'/>
  <server path='/run/vgpud/huge.sock'/>
</shmem>"
doorbell huge huge
sed 's/^/vgpud| /' /tmp/vgpud.log
echo "all checks: done"
