# SPDX-License-Identifier: Apache-2.0
# What every script here shares: messages, help, version, paths. Sourced, not run.
# shellcheck shell=bash disable=SC2034

me=${0##*/}
top=$(cd -- "${BASH_SOURCE[0]%/*}/../.." && pwd)
build=${VGPU_BUILD:-$top/build}

say() { printf '%s\n' "$*"; }
note() { printf '%s: %s\n' "$me" "$*" >&2; }

# die STATUS MESSAGE...
die() {
	local status=$1
	shift
	note "$@"
	exit "$status"
}

# The help text of a script is the comment at its top, without the SPDX line.
print_help() {
	sed -n '3,${/^#/!q;s/^# \{0,1\}//p}' "$0"
}

print_version() {
	local version
	version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$top/meson.build" | head -n 1)
	say "$me (vGPU) ${version:-unknown}"
}

# usage MESSAGE... : a wrong command line
usage() {
	note "$@" "(--help tells more)"
	exit 125
}

# quote WORD... : the words as one line of POSIX shell
quote() {
	local word line=
	for word; do
		line+=" '${word//\'/\'\\\'\'}'"
	done
	printf '%s\n' "${line# }"
}

# seconds_since START : for a START taken from $EPOCHREALTIME, with one decimal
seconds_since() {
	local us=$((${EPOCHREALTIME/./} - ${1/./}))
	printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}
