# SPDX-License-Identifier: Apache-2.0
# Configuring and building the tree. Sourced after common.sh.
# shellcheck shell=bash disable=SC2154

# build_tree [SETUP-OPTION...] : into $build; the noise goes to a file, shown only
# when the build fails
build_tree() {
	local jobs=()
	mkdir -p "$build"
	[ -z "${VGPU_JOBS:-}" ] || jobs=(-j "$VGPU_JOBS")
	if [ ! -e "$build/build.ninja" ]; then
		build_step meson setup "$@" "$build" "$top" || return 1
	fi
	build_step meson compile -C "$build" "${jobs[@]}"
}

build_step() {
	local log=$build/build.log
	"$@" >"$log" 2>&1 || {
		tail -n 60 "$log" >&2
		note "the build in $build failed; all of it stands in $log"
		return 1
	}
}
