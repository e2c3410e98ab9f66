#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What test-systemd.sh runs as a unit of the host that it makes: two VMs compute while
# systemd restarts vgpud in all ways that it has. The unit sets the variables.
# shellcheck disable=SC2154
set -Eeuo pipefail
export LC_ALL=C.UTF-8 HOME=/root
exec </dev/null
trap 'failed "$BASH_COMMAND"' ERR
cd /root

vms=(one two)
declare -A input=() running=() worker_of=()
n_commands=0

failed() {
	trap - ERR
	echo "FAILED: $1"
	systemctl --no-pager --full status vgpud || true
	journalctl --boot --output=short-monotonic --no-pager -u vgpud |
		grep -v 'held the dispatcher' | tail -n 40 || true
	tail -n 5 ./*.out ./*.err || true
	exit 1
}

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# wait_for TRIES COMMAND... : of a second each
wait_for() {
	local tries=$1
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || failed "never: $*"
		sleep 1
	done
}

#
# Machines
#

# start_vm NAME : a QEMU whose guest is a shell
start_vm() {
	local name=$1 fd
	mkfifo "$name.in"
	exec {fd}<>"$name.in"
	input[$name]=$fd
	"$top/qemu/run-guest" --accel tcg --timeout 3000 --memory 256 \
		--socket "/run/vgpud/$name.sock" --lib "$library" --add "$checked" \
		--env checked="$checked" --env ASAN_OPTIONS=detect_leaks=0 \
		--console "$name.console" -- sh <"$name.in" >"$name.out" 2>"$name.err" &
	running[$name]=$!
}

has_answered() { grep -q "^$2 " "$1.out"; }

lives() { kill -0 "${running[$1]}" || failed "the machine $1 has ended"; }

answers() { has_answered "$1" "$2" || { lives "$1" && false; }; }

# tell NAME LINE : runs it in the guest; its output in $answer, which has to succeed
tell() {
	local end status
	n_commands=$((n_commands + 1))
	end=END-$n_commands
	echo "echo BEGIN-$n_commands; $2
echo $end \$?" >&"${input[$1]}"
	wait_for 400 answers "$1" "$end"
	answer=$(sed -n "/^BEGIN-$n_commands\$/,/^$end /{//!p}" "$1.out")
	status=$(sed -n "s/^$end //p" "$1.out")
	[ "$status" -eq 0 ] || failed "$1: $2: status $status: $answer"
}

# start_computing NAME SEED : a program that computes until the end of the test
start_computing() {
	tell "$1" "\$checked 0 $2 128 >/run/$2 2>&1 & echo \$! >/run/$2.pid
	until grep -qs computing /run/$2; do sleep 0.2; done"
}

# session NAME : channel, process and worker of the one program that always runs
session() { vgpuctl show "$1" | awk '$4 == "checked" { print $1, $2, $3 }' | head -n 1; }

ticks_of() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

has_worked() { [ "$(ticks_of "$1")" -gt "$2" ]; }

#
# vgpud
#

property() { systemctl show -p "$1" --value vgpud; }
main_pid() { property MainPID; }
broker() { pgrep -x vgpud-broker -P "$(main_pid)"; }
is_active() { [ "$(property ActiveState)/$(property SubState)" = active/running ]; }
is_another() { [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ] && is_active; }
is_served() { vgpuctl show one >/dev/null 2>&1 && vgpuctl show two >/dev/null 2>&1; }
keeps() { [ "$(property NFileDescriptorStore)" -gt 0 ]; }
runs_program() { [ "/proc/$1/exe" -ef "$prefix/sbin/vgpud" ]; }
logged() { journalctl --boot --output=cat -u vgpud | grep -cF -- "$1" || true; }

# goes_on WHAT : both programs, and others that begin now
goes_on() {
	local name now ticks
	wait_for 100 is_active
	wait_for 100 is_served
	for name in "${vms[@]}"; do
		now=$(session "$name")
		[ "$now" = "${worker_of[$name]}" ] ||
			failed "$1: the session of $name was ${worker_of[$name]}, is $now"
		ticks=$(ticks_of "${now##* }")
		wait_for 100 has_worked "${now##* }" $((ticks + 2))
		n_commands=$((n_commands + 1))
		tell "$name" "kill -0 \$(cat /run/7.pid) && \$checked 3 $n_commands 128"
		[[ $answer == *"3 rounds right"* ]] || failed "$1: $name: $answer"
	done
	wait_for 60 keeps
	say "$1: both compute"
}

# replaced WHAT PID : the same, and the process is another one
replaced() {
	wait_for 200 is_another "$2"
	goes_on "$1"
	[ "$(logged "continues what an earlier one has left")" = $((n_restarts += 1)) ] ||
		failed "$1: vgpud did not continue what the earlier one has left"
}

# same_process WHAT PID
same_process() {
	goes_on "$1"
	[ "$(main_pid)" = "$2" ] || failed "$1: vgpud was $2, is $(main_pid)"
}

section() {
	printf '[vm %s]\nsocket = /run/vgpud/%s.sock\nsize = 256M\nmax-processes = 4\n' \
		"$1" "$1" >"/etc/vgpu/vm.d/$1.conf"
}

begin() {
	local name
	systemd-sysusers && systemd-tmpfiles --create "$prefix"/lib/tmpfiles.d/vgpu-*.conf
	printf '[vgpud]\ndriver = soft\n' >/etc/vgpu/vgpud.conf
	for name in "${vms[@]}"; do
		section "$name"
	done
	systemctl start vgpud
	say "$(systemctl --version | head -n 1), $(vgpuctl version | paste -sd' ')"
	for name in "${vms[@]}"; do
		start_vm "$name"
	done
	for name in "${vms[@]}"; do
		start_computing "$name" 7
		worker_of[$name]=$(session "$name")
		[ -n "${worker_of[$name]}" ] || failed "$name has no session"
	done
	n_restarts=0
	goes_on "start"
}

#
# What an administrator, a crash or systemd itself does
#

restart() {
	local pid
	pid=$(main_pid)
	systemctl restart vgpud
	replaced "systemctl restart" "$pid"
}

reload() {
	local pid
	pid=$(main_pid)
	section three
	systemctl reload vgpud
	wait_for 100 test -S /run/vgpud/three.sock
	same_process "systemctl reload" "$pid"
	rm /etc/vgpu/vm.d/three.conf
	systemctl reload vgpud
	wait_for 100 test ! -e /run/vgpud/three.sock
	same_process "systemctl reload, back" "$pid"
}

kill_keeper() {
	local pid
	pid=$(main_pid)
	systemctl kill --signal=KILL --kill-whom=main vgpud
	replaced "kill -9 of the keeper" "$pid"
}

is_another_broker() {
	local now
	now=$(broker) && [ "$now" != "$1" ]
}

kill_broker() {
	local pid old
	pid=$(main_pid) old=$(broker)
	kill -KILL "$old"
	wait_for 100 is_another_broker "$old"
	same_process "kill -9 of the broker" "$pid"
}

# As by the package, whose files take the places of the old ones.
upgrade() {
	local pid old file
	pid=$(main_pid) old=$(broker)
	for file in "$prefix/sbin/vgpud" "$prefix"/lib*/vgpu/* \
		"$prefix"/lib/*/vgpu/* "$prefix"/libexec/vgpu*; do
		if [ -f "$file" ] && [ -x "$file" ]; then
			cp -p "$file" "$file.new"
			mv "$file.new" "$file"
		fi
	done
	! runs_program "$pid" || failed "the program is still the one that runs"
	systemctl kill --kill-whom=main --signal=SIGUSR2 vgpud
	wait_for 200 runs_program "$pid"
	wait_for 100 is_another_broker "$old"
	same_process "upgrade by SIGUSR2" "$pid"
	runs_program "$(broker)" || failed "the broker is of the old program"
}

watchdog() {
	local pid
	pid=$(main_pid)
	kill -STOP "$pid"
	say "the keeper is stopped; WatchdogUSec=$(property WatchdogUSec)"
	wait_for 300 is_another "$pid"
	journalctl --boot --output=cat --no-pager UNIT=vgpud.service + _PID=1 |
		grep -qi 'watchdog timeout' || failed "systemd did not time out"
	replaced "watchdog timeout" "$pid"
}

# A stop ends sessions, with a word to their guests: so a call fails, and no value is
# wrong.
stop() {
	local name
	for name in "${vms[@]}"; do
		tell "$name" "kill -TERM \$(cat /run/7.pid); wait \$(cat /run/7.pid) &&
			cat /run/7"
		[[ $answer == *"rounds right"* ]] || failed "$name: $answer"
		say "$name: $(tail -n 1 <<<"$answer")"
		start_computing "$name" 8
	done
	pgrep -x vgpu-worker >/dev/null || failed "there is no worker"
	systemctl stop vgpud
	[ "$(property ActiveState)" = inactive ] || failed "vgpud is not inactive"
	for name in "${vms[@]}"; do
		tell "$name" "wait \$(cat /run/8.pid); [ \$? -eq 2 ]; cat /run/8"
	done
	! pgrep -l vgpu || failed "processes are left"
	[ "$(property NFileDescriptorStore)" -eq 0 ] || failed "systemd keeps descriptors"
	[ -z "$(ls -A /run/vgpud)" ] || failed "left: $(ls -A /run/vgpud)"
	say "systemctl stop: nothing is left"
	systemctl start vgpud
	systemctl stop vgpud
	[ "$(logged "continues what an earlier one has left")" = "$n_restarts" ] ||
		failed "vgpud continued what was stopped"
}

end() {
	local name
	for name in "${vms[@]}"; do
		echo exit >&"${input[$name]}"
		wait "${running[$name]}" || failed "the machine $name ended with $?"
	done
}

# after WHAT : a client that comes at once is served, by the same socket
after() {
	vgpuctl list >/dev/null || failed "$1: the client is not served"
	wait_for 100 is_active
	[ "$(stat -c %i /run/vgpud/control)" = "$control" ] ||
		failed "$1: the socket for vgpuctl is another one"
	say "vgpud.socket, $1: a client is served"
}

# The socket for vgpuctl is systemd's. There are no machines any more.
use_socket_unit() {
	local control
	systemctl start vgpud.socket
	[ "$(property ActiveState)" = inactive ] || failed "the socket starts vgpud"
	control=$(stat -c %i /run/vgpud/control)
	after "start by the client"
	wait_for 60 keeps
	systemctl restart vgpud
	after "systemctl restart"
	wait_for 60 keeps
	systemctl kill --signal=KILL --kill-whom=main vgpud
	after "kill -9 of the keeper"
	systemctl reload vgpud
	after "systemctl reload"
	systemctl kill --kill-whom=main --signal=SIGUSR2 vgpud
	after "SIGUSR2"
	systemctl stop vgpud
	[ "$(property ActiveState)" = inactive ] || failed "vgpud is not inactive"
	[ "$(ls -A /run/vgpud)" = control ] || failed "left: $(ls -A /run/vgpud)"
	after "systemctl stop"
	[ "$(logged 'ctl-socket')" -eq 0 ] || failed "vgpud complains of the socket"
	systemctl stop vgpud.socket vgpud
	! vgpuctl list || failed "vgpud was started without its socket unit"
	[ "$(property ActiveState)" = inactive ] || failed "vgpud is not inactive"
	# It makes its own in the place of systemd's, and removes that.
	systemctl start vgpud
	vgpuctl list
	systemctl stop vgpud
	[ -z "$(ls -A /run/vgpud)" ] || failed "left: $(ls -A /run/vgpud)"
}

begin
restart
reload
kill_keeper
kill_broker
upgrade
kill_keeper
watchdog
restart
stop
end
use_socket_unit
echo "Nothing was noticed."
