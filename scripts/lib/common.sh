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
	note "$@" "(see --help)"
	exit 125
}

# common_option ARGUMENT : one that the script itself does not know; does not return
common_option() {
	case $1 in
	-h | --help) print_help ;;
	--version) print_version ;;
	-*) usage "unknown option: $1" ;;
	*) usage "unknown argument: $1" ;;
	esac
	exit 0
}

# make_own_folder DIR VARIABLE : which is where else it could be
make_own_folder() {
	mkdir -p "$1" 2>/dev/null || true
	[ -d "$1" ] && [ -w "$1" ] && [ -x "$1" ] ||
		die 125 "cannot write to $1, which is" \
			"$(stat -c 'owned by %U' "$(first_that_exists "$1")"):" \
			"give a folder of your own in $2"
}

# first_that_exists PATH : the path, or the nearest folder above it
first_that_exists() {
	local path=$1
	until [ -e "$path" ]; do
		path=$(dirname "$path")
	done
	printf '%s\n' "$path"
}

# need OPTION [VALUE] : the value must be there
need() { [ -n "${2:-}" ] || usage "$1 needs a value"; }

# need_number OPTION [VALUE] : the value must be a decimal number
need_number() { [[ ${2:-} =~ ^[0-9]+$ ]] || usage "$1 needs a number"; }

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
