# SPDX-License-Identifier: Apache-2.0
# Configuring and building the tree. Sourced after common.sh.
# shellcheck shell=bash disable=SC2154

# build_tree [SETUP-OPTION...] : into $build; the output goes to a file, shown only
# when the build fails
build_tree() {
	local jobs=()
	make_own_folder "$build" VGPU_BUILD
	[ -z "${VGPU_JOBS:-}" ] || jobs=(-j "$VGPU_JOBS")
	if [ ! -e "$build/build.ninja" ]; then
		build_step meson setup "$@" "$build" "$top" || return 1
	fi
	build_step meson compile -C "$build" "${jobs[@]}"
}

build_step() {
	local log=$build/build.log
	[ -w "$log" ] || [ ! -e "$log" ] ||
		die 125 "cannot write $log, which is $(stat -c 'owned by %U' "$log"):" \
			"give a folder of your own in VGPU_BUILD"
	"$@" >"$log" 2>&1 || {
		tail -n 60 "$log" >&2
		note "the build in $build failed; all of its output is in $log"
		return 1
	}
}
