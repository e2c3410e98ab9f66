#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: smoke-test.sh
#
# Loads the libcuda.so.1 of this folder, wherever that is, and asks the host for its
# devices. Nothing needs to be installed.
#
# exit status: 0 a device answers, 1 none does (a message says why), 125 wrong command
# line
set -eu

case ${1:-} in
'') ;;
-h | --help) sed -n '3,${/^#/!q;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
--version) printf '%s (vGPU) %s\n' "${0##*/}" '@VERSION@' && exit 0 ;;
*) echo "smoke-test.sh: unknown argument: $1 (--help tells more)" >&2 && exit 125 ;;
esac
here=$(cd -- "$(dirname -- "$0")" && pwd)
status=0
output=$(LD_LIBRARY_PATH=$here/lib VGPU_LOG=${VGPU_LOG:-error} "$here/libcuda-check") ||
	status=1
printf '%s\n' "$output"
case $output in
*"$here/lib/libcuda.so.1, the one of vGPU"*) exit "$status" ;;
*) echo "smoke-test.sh: another libcuda.so.1 was loaded" >&2 && exit 1 ;;
esac
