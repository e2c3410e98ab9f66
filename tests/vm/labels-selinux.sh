#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A host of virtual machines with SELinux in enforcing mode: Debian's policy, vgpud in the
# domain that systemd's services have there, and QEMU in the one that libvirt gives it,
# with categories. Runs in the guest of test-labels.sh, which judges what it prints; by
# busybox, in the domain of the kernel.
#
#   NAME: attached | refused     whether QEMU has the device, "refused" with its reason
#   NAME| CLASS SOURCE TARGET: PERMISSIONS    what the kernel denied meanwhile
# shellcheck disable=SC3043 # busybox has local

policy=/etc/selinux/default/policy/policy.33
contexts='.*scontext=\([^ ]*\) tcontext=\([^ ]*\) tclass=\([^ ]*\)'

. /opt/labels-qemu.sh

# denials NAME : since the last call
denials() {
	dmesg -c | sed -n "s/.*avc: *denied *{ \(.*\) } $contexts.*/\4 \2 \3: \1/p" |
		sort -u | sed "s/^/$1| /"
}

# confine WORDS... : as libvirt's user, in its domain and with categories
confine() { as_libvirt /usr/bin/runcon system_u:system_r:svirt_t:s0:c1,c2 "$@"; }

# load FILE : the policy
load() {
	cp "/labels/$1/policy" $policy
	cp "/labels/$1/file_contexts" /etc/selinux/default/contexts/files/
	/sbin/load_policy || echo "$1: not loaded"
}

# labels FILE... : their types and categories
labels() {
	/usr/bin/getfilecon "$@" | sed 's|^/run/vgpud/*|label: |; s/system_u:object_r://'
}

cat /labels/passwd >>/etc/passwd
cat /labels/group >>/etc/group
cp -r /labels/etc/. /etc/
mkdir -p "${policy%/*}"
mount -t tmpfs -o mode=755 tmpfs /run
mount -t selinuxfs selinuxfs /sys/fs/selinux
load without
/sbin/setfiles -F /etc/selinux/default/contexts/files/file_contexts / /run
echo 40 >/proc/sys/vm/nr_hugepages
echo 0 >/proc/sys/kernel/printk_ratelimit
echo 1 >/sys/fs/selinux/enforce
echo "enforcing: $(cat /sys/fs/selinux/enforce)"

/usr/bin/runcon system_u:system_r:initrc_t:s0 /usr/sbin/vgpud \
	--config /etc/vgpu/vgpud.conf >/tmp/vgpud.log 2>&1 &
vgpud=$!
until grep -q "vgpud ready" /tmp/vgpud.log; do
	kill -0 $vgpud || { cat /tmp/vgpud.log && dmesg | tail -n 20 && exit 1; }
	sleep 0.1
done
dmesg -c >/dev/null
doorbell without two

load with
/sbin/restorecon -R /run/vgpud
labels /run/vgpud /run/vgpud/two.sock
dmesg -c >/dev/null
doorbell own two
doorbell huge huge

# One that is made later, such as by the hook.
printf '[vm new]\nsocket = /run/vgpud/new.sock\nsocket-group = libvirt-qemu\n' \
	>/etc/vgpu/vm.d/new.conf
kill -HUP $vgpud
n=0
until [ -e /run/vgpud/new.sock ] || [ $n -gt 300 ]; do
	n=$((n + 1))
	sleep 0.1
done
labels /run/vgpud/new.sock
doorbell new new

# Of a machine with other categories, by the line of qemu/README.md.
/usr/bin/chcon -l s0:c3,c4 /run/vgpud/two.sock
labels /run/vgpud/two.sock
doorbell other two
sed 's/^/vgpud| /' /tmp/vgpud.log
echo "all checks: done"
