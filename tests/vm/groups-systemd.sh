#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: groups-systemd.sh [UNIT]
#
# What test-groups.sh runs in a guest, whose programs are busybox's: with UNIT, vgpud's,
# it starts a systemd in namespaces of its own, which runs the same without UNIT: systemd
# restarts vgpud, whose control group is divided, while a program computes. The
# environment has $vgpud, $vgpuctl, $fill, $worker, $softgpu.
# shellcheck disable=SC2154
set -u

output=/root/output
log=/var/log/vgpud/log
unit=/sys/fs/cgroup/system.slice/vgpud.service
system=/etc/systemd/system
# shellcheck source=groups-common.sh
. "${0%/*}/groups-common.sh"

#
# The host
#

make_host() {
	mkdir -p /sys/fs/cgroup $system/vgpud.service.d /etc/vgpu /var/log /root /tmp
	mount -t cgroup2 none /sys/fs/cgroup
	tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
	echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
	echo 'root:x:0:' >/etc/group
	echo 'ID=test' >/etc/os-release
	sed "s,^\(ExecStart=\|ExecStopPost=-\)[^ ]*,\1$vgpud," "$1" \
		>$system/vgpud.service
	# There is no journal, and none of the targets that it would wait for.
	cat >$system/vgpud.service.d/test.conf <<-END
		[Unit]
		DefaultDependencies=no
		[Service]
		StandardOutput=append:/root/journal
		StandardError=inherit
	END
	cat >$system/restarts.service <<-END
		[Unit]
		DefaultDependencies=no
		SuccessAction=exit
		FailureAction=exit
		[Service]
		Type=oneshot
		Environment=vgpud=$vgpud vgpuctl=$vgpuctl fill=$fill
		Environment=PATH=/bin:/usr/bin
		ExecStart=/bin/sh $0
		StandardOutput=truncate:$output
		StandardError=inherit
	END
	cat >/etc/vgpu/vgpud.conf <<-END
		[vgpud]
		driver = soft
		worker = $worker
		softgpu = $softgpu
		softgpu-threads = 1
		log-file = $log

		[vm a]
		transport = socket
		socket = /run/vgpud/a.sock
		size = 128M
		max-processes = 3
	END
}

start_systemd() {
	container=other unshare -m -p -f sh -c 'mount -t proc proc /proc
		exec /usr/lib/systemd/systemd --unit=restarts.service \
			--log-target=console --show-status=no' \
		</dev/null >/root/systemd 2>&1
	cat $output || tail -n 20 /root/systemd
}

if [ $# -gt 0 ]; then
	make_host "$1"
	start_systemd
	exit
fi

#
# Under systemd
#

fail() {
	echo "FAILED: $*"
	systemctl show -p MainPID,ActiveState,SubState,Result,NRestarts vgpud
	grep -H . $unit/cgroup.subtree_control $unit/cgroup.procs $unit/*/cgroup.procs
	grep -v 'held the dispatcher' $log | tail -n 30
	tail -n 5 /root/journal
	exit 1
}

property() { systemctl show -p "$1" --value vgpud; }
is_active() { [ "$(property ActiveState)/$(property SubState)" = active/running ]; }
is_another() { [ "$(property MainPID)" != "$1" ] && is_active; }
is_served() { "$vgpuctl" show a >/run/shown.out 2>/dev/null; }
keeps() { [ "$(property NFileDescriptorStore)" -gt 0 ]; }
is_limited() { [ "$(cat $unit/vm-a/memory.max 2>/dev/null)" = "$max" ]; }

# goes_on WHAT : the worker of the first program is where it was, as is its limit, and the
# next one comes to it
goes_on() {
	wait_for is_active
	wait_for is_served
	wait_for is_limited
	is_in vgpud-main "$(property MainPID)" || fail "$1: vgpud is in another group"
	[ "$(cat $unit/cgroup.subtree_control)" = "cpu memory" ] || fail "$1: controllers"
	is_in vm-a "$worker" || fail "$1: the worker is in another group"
	says shown 'by a control group and measured' || fail "$1: $(cat /run/shown.out)"
	use next /run/vgpud/a.sock 4 20
	wait_for has_procs vm-a 2
	leave next
	wait_for has_procs vm-a 1
	says first code && fail "$1: $(cat /run/first.out)"
	wait_for keeps
	ok "$1"
}

echo "# $(systemctl --version | head -n 1)"
systemctl start vgpud || fail "start"
use first /run/vgpud/a.sock 4 20
wait_for has_procs vm-a 1
worker=$(cat $unit/vm-a/cgroup.procs)
max=$(cat $unit/vm-a/memory.max)
[ "$max" != max ] || fail "memory is not limited"
goes_on "start"

pid=$(property MainPID)
systemctl restart vgpud
wait_for is_another "$pid"
goes_on "systemctl restart"

pid=$(property MainPID)
systemctl kill --signal=KILL --kill-whom=main vgpud
wait_for is_another "$pid"
goes_on "kill -9 of the keeper"

systemctl kill --kill-whom=main --signal=SIGUSR2 vgpud
wait_for grep -q 'vgpud is replaced by' $log
goes_on "upgrade by SIGUSR2"

systemctl stop vgpud || fail "stop"
wait "$pid_first"
says first '^code 999' || fail "the program: $(cat /run/first.out)"
[ ! -e $unit ] || fail "the group of the service is left"
ok "systemctl stop"

# A unit of an earlier release.
cp $system/vgpud.service /root/vgpud.service
sed -i 's/ --own-group//; s/^Delegate=.*/Delegate=cpu/; /^ExecStopPost=/d' \
	$system/vgpud.service
systemctl daemon-reload
systemctl start vgpud || fail "start by the old unit"
use first /run/vgpud/a.sock 4 20
worker=$("$vgpuctl" show a --json | sed -n 's/^ *"worker": \([0-9]*\).*/\1/p')
grep -q '^0::/system.slice/vgpud.service$' "/proc/$worker/cgroup" || fail "another group"
cp /root/vgpud.service $system/vgpud.service
systemctl daemon-reload
pid=$(property MainPID)
systemctl restart vgpud
wait_for is_another "$pid"
goes_on "restart after the unit of an earlier release"
systemctl stop vgpud || fail "stop"
wait "$pid_first"
echo "All of $n_checks."
