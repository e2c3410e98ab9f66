# SPDX-License-Identifier: Apache-2.0
# What the scripts of test-groups.sh share. Sourced by them in a guest with $unit, the
# control group of vgpud, and a function fail of their own.
# shellcheck shell=sh disable=SC2154

n_checks=0

ok() {
	n_checks=$((n_checks + 1))
	echo "ok $n_checks - $*"
}

# wait_for COMMAND... : until it succeeds
wait_for() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "never: $*"
		usleep 100000
	done
}

# says NAME PATTERN : what a program has printed
says() { grep -q "$2" "/run/$1.out" 2>/dev/null; }

# has_procs GROUP N : so many processes
has_procs() { [ "$(wc -l <"$unit/$1/cgroup.procs" 2>/dev/null || echo 0)" = "$2" ]; }

# is_in GROUP PID
is_in() { grep -qx "$2" "$unit/$1/cgroup.procs" 2>/dev/null; }

# use NAME SOCKET PINNED DEVICE : starts a program that takes so many MiB
use() {
	# What an earlier program of that name has printed is not this one's.
	: >"/run/$1.out"
	VGPU_SOCKET=$2 "$fill" "$3" "$4" >"/run/$1.out" 2>&1 &
	eval "pid_$1=$!"
	wait_for says "$1" '^filled\|code'
	says "$1" '^filled' || fail "$1: $(cat "/run/$1.out")"
}

# leave NAME : ends it
leave() { eval "kill \$pid_$1; wait \$pid_$1"; } 2>/dev/null
