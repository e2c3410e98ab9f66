#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: groups-host.sh PART...
#
# What test-groups.sh runs in a guest: vgpud with real control groups, in which two
# machines of transport socket use memory. Busybox is all there is. The environment has
# $vgpud, $vgpuctl, $fill, $worker, $softgpu.
# shellcheck disable=SC2154
set -u

groups=/sys/fs/cgroup
unit=$groups/unit
log=/run/vgpud.log
# shellcheck source=groups-common.sh
. "${0%/*}/groups-common.sh"

fail() {
	echo "FAILED: $*"
	tail -n 30 "$log"
	grep -H . "$unit"/cgroup.subtree_control "$unit"/cgroup.procs \
		"$unit"/*/cgroup.procs "$unit"/vm-*/memory.* 2>/dev/null | grep -v stat
	exit 1
}

# count FILE PATTERN
count() { grep -c -- "$2" "$1"; }
logged() { [ "$(count "$log" "$1")" -ge "${2:-1}" ]; }
is_refused() { logged "cannot divide its control group: $1" || fail "no reason"; }
is_gone() { [ ! -e "$unit/$1" ]; }

ctl() { "$vgpuctl" --socket /run/control "$@"; }

# field VM NAME : of vgpuctl show
field() {
	ctl show "$1" --json |
		sed -n "s/^ *\"$2\": \"*\([^\",]*\)\"*,*\$/\1/p" | head -n 1
}

# is_field VM NAME VALUE
is_field() { [ "$(field "$1" "$2")" = "$3" ]; }

# in_group GROUP PROGRAM... : becomes that program
in_group() {
	sh -c "echo \$PPID >$unit/$1/cgroup.procs" || exit 1
	shift
	exec "$@"
}

# start OPTION... : vgpud in the group
start() {
	: >"$log"
	in_group . "$vgpud" --config /run/vgpud.conf "$@" >>"$log" 2>&1 &
	keeper=$!
	wait_for logged 'vgpud ready'
}

stop() {
	kill "$keeper"
	wait "$keeper"
}

# children NAME : of the keeper
children() {
	# shellcheck disable=SC2013 # one line has them all
	for child in $(cat "/proc/$keeper/task/$keeper/children"); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" != "$1" ] || echo "$child"
	done
}

broker() { children vgpud-broker; }
is_another_broker() { [ -n "$(broker)" ] && [ "$(broker)" != "$1" ]; }

# bytes FILE
bytes() { cat "$unit/$1"; }

mkdir -p "$groups"
mount -t cgroup2 none "$groups" || fail "no control groups of version 2"
echo "+cpu +memory" >$groups/cgroup.subtree_control || fail "no controllers"
mkdir "$unit"
cat >/run/vgpud.conf <<-END
	[vgpud]
	driver = soft
	ctl-socket = /run/control
	worker = $worker
	softgpu = $softgpu
	softgpu-threads = 1
	softgpu-memory = 2G

	[vm a]
	transport = socket
	socket = /run/a.sock
	size = 128M
	max-processes = 3
	image-store = 8M
	host-memory = 300M

	[vm b]
	transport = socket
	socket = /run/b.sock
	size = 128M
	max-processes = 3
	cpu = 50
END

groups_are_made() {
	start --own-group
	logged 'limited by a control group, too' || fail "the keeper says nothing"
	is_in vgpud-main "$keeper" || fail "the keeper is not in its group"
	is_in vgpud-main "$(broker)" || fail "the broker is not in its group"
	[ "$(cat $unit/cgroup.subtree_control)" = "cpu memory" ] || fail "controllers"
	is_gone vm-a || fail "a group without a worker"
	is_field a host_memory_limit_by cgroup || fail "show: $(ctl show a)"
	is_field b cpu_limit_by cgroup || fail "show: $(ctl show b)"
	ok "vgpud has divided its control group"

	use one /run/a.sock 4 20
	wait_for has_procs vm-a 1
	worker_one=$(cat $unit/vm-a/cgroup.procs)
	grep -q 0::/unit/vm-a "/proc/$worker_one/cgroup" || fail "another group"
	max=$(bytes vm-a/memory.max)
	[ "$max" -gt $((300 << 20)) ] || fail "memory.max = $max"
	[ "$(bytes vm-a/cpu.max)" = "max 100000" ] || fail "cpu.max"
	use other /run/b.sock 4 20
	wait_for has_procs vm-b 1
	[ "$(bytes vm-b/cpu.max)" = "50000 100000" ] || fail "cpu.max"
	leave other
	wait_for is_gone vm-b
	ok "a worker is in the group of its machine, which is removed after it"

	# An honest machine may use all that it has: shared memory of each process, and
	# host-memory but for what a process takes in any case.
	use two /run/a.sock 200 80
	use three /run/a.sock 200 80
	wait_for has_procs vm-a 3
	sleep 1
	says three code && fail "it was ended: $(cat /run/three.out)"
	grep -q '^oom_kill 0$' $unit/vm-a/memory.events || fail "the kernel has ended one"
	grep -q '^max 0$' $unit/vm-a/memory.events || fail "the limit was reached"
	used=$(bytes vm-a/memory.current)
	measured=$(field a host_memory)
	echo "# $(cat /run/three.out), memory.current $((used >> 20)) of" \
		"$((max >> 20)) MiB, measured $((measured >> 20)) of 300 MiB"
	ok "all shared memory and nearly all host-memory leave room in the group"
	leave three
	wait_for has_procs vm-a 2
}

they_outlive_broker_and_keeper() {
	old=$(broker)
	ctl set a host-memory=200M >/dev/null || fail "set"
	[ "$(bytes vm-a/memory.max)" -lt "$max" ] || fail "memory.max has not changed"
	is_another_broker "$old" || fail "there was no other broker"
	has_procs vm-a 2 || fail "workers are not in their group"
	ctl set a cpu=70 >/dev/null || fail "set"
	[ "$(bytes vm-a/cpu.max)" = "70000 100000" ] || fail "cpu.max has not changed"
	ctl set a cpu= host-memory=300M >/dev/null || fail "set"
	[ "$(bytes vm-a/cpu.max)" = "max 100000" ] || fail "cpu.max was not taken away"
	[ "$(bytes vm-a/memory.max)" = "$max" ] || fail "memory.max is another one"
	ok "changes apply to running workers"

	old=$(broker)
	kill -9 "$old"
	wait_for is_another_broker "$old"
	use three /run/a.sock 4 4
	wait_for has_procs vm-a 3
	is_in vm-a "$worker_one" || fail "the worker has left its group"
	is_in vgpud-main "$(broker)" || fail "the broker is not in its group"
	leave three
	wait_for has_procs vm-a 2
	ok "the next broker finds the group"

	old=$(broker)
	kill -USR2 "$keeper"
	wait_for is_another_broker "$old"
	wait_for logged 'limited by a control group, too' 2
	is_in vgpud-main "$keeper" || fail "the keeper is not in its group"
	is_in vm-a "$worker_one" || fail "the worker has left its group"
	is_field a host_memory_limit_by cgroup || fail "show"
	use three /run/a.sock 4 4
	wait_for has_procs vm-a 3
	leave three
	wait_for has_procs vm-a 2
	ok "the next keeper finds the group"
}

the_kernel_ends_one() {
	ctl set a host-memory=2G >/dev/null || fail "set"
	# Less than vgpud gives it, so that no measurement comes first.
	echo $(($(bytes vm-a/memory.current) + (300 << 20))) >$unit/vm-a/memory.max
	VGPU_SOCKET=/run/a.sock "$fill" 0 900 >/run/greedy.out 2>&1
	says greedy '^code 999' || fail "greedy: $(cat /run/greedy.out)"
	wait_for logged 'vm=a worker=.*: the kernel has ended it'
	wait_for logged 'session ended vm=a .*reason=host-memory'
	wait_for has_procs vm-a 2
	says two code && fail "another process was ended"
	says one code && fail "another process was ended"
	is_field a oom_kills 1 || fail "show: $(field a oom_kills)"
	ctl show a | grep -q '1 workers ended by the kernel' ||
		fail "show"
	ok "the kernel ends the process that has most, with the reason host-memory"

	# A broker that does not know of the group's earlier end.
	old=$(broker)
	kill -STOP "$old"
	VGPU_SOCKET=/run/a.sock "$fill" 0 1 >/run/late.out 2>&1 &
	late=$!
	wait_for is_another_broker "$old"
	wait_for says late filled
	kill $late
	wait $late
	is_field a oom_kills 1 || fail "show: $(field a oom_kills)"
	ok "a broker that is replaced counts no end twice"
}

nothing_is_left() {
	leave one
	leave two
	wait_for is_gone vm-a
	stop
	has_procs . 0 || fail "processes are left"
	is_gone vgpud-main || fail "a group is left"
	[ -z "$(cat $unit/cgroup.subtree_control)" ] || fail "controllers are left"
	ok "nothing is left"
}

without_what_it_takes() {
	start
	is_refused 'it was started without --own-group'
	is_field a host_memory_limit_by measured || fail "show"
	is_field b cpu_limit_by cgroup || fail "show"
	use other /run/b.sock 4 4
	[ "$(bytes vm-b/cgroup.type)" = threaded ] || fail "cgroup.type"
	for child in $(children vgpu-worker); do
		grep -qs 0::/unit/vm-b "/proc/$child/cgroup" && found=yes
	done
	[ "${found-}" ] || fail "no worker is in the group"
	leave other
	wait_for is_gone vm-b
	stop
	ok "without the option there are threaded groups"

	sleep 1000 &
	sleeper=$!
	echo $sleeper >$unit/cgroup.procs
	start --own-group
	is_refused 'other processes are in its control group'
	is_field b cpu_limit_by cgroup || fail "show"
	is_gone vgpud-main || fail "it was divided"
	stop
	kill $sleeper
	wait $sleeper
	ok "nor is a group divided that has other processes"

	echo -memory >$groups/cgroup.subtree_control
	start --own-group
	is_refused 'its control group has no controller memory'
	is_field b cpu_limit_by cgroup || fail "show"
	stop
	echo +memory >$groups/cgroup.subtree_control
	ok "nor is one without the controller"
}

with_a_service_manager() {
	start --own-group
	kill -9 "$keeper"
	wait "$keeper"
	wait_for has_procs vgpud-main 0
	sh -c "echo 0 >$unit/cgroup.procs" 2>/dev/null && fail "the kernel permits it"
	mkdir $unit/.control
	(in_group .control "$vgpud" --leave-group) || fail "--leave-group"
	start --own-group
	is_in vgpud-main "$keeper" || fail "the keeper is not in its group"
	stop
	ok "a command undoes the division after a vgpud that was killed"

	mkdir -p $unit/vgpud-main
	: >"$log"
	in_group vgpud-main "$vgpud" --config /run/vgpud.conf >>"$log" 2>&1 &
	keeper=$!
	wait_for logged 'vgpud ready'
	logged 'limited by a control group, too' || fail "not divided"
	use one /run/a.sock 4 4
	wait_for has_procs vm-a 1
	leave one
	stop
	ok "a manager may start it in the inner group"
}

for part; do
	"$part"
done
echo "All of $n_checks."
