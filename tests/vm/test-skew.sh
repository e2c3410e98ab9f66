# SPDX-License-Identifier: Apache-2.0
# The last release and this tree at the two ends of a real device. tests/skew/run builds
# the release, and runs more programs on it, over a socket.
# shellcheck shell=bash disable=SC2034,SC2154

# number_of FILE NAME : a constant of this tree's protocol
number_of() {
	sed -n "s/^#define $2 \([0-9]*\)u\$/\1/p" "$top/protocol/include/vgpu/$1"
}

# find_releases : the build of the last release that tests/skew/run keeps, in $release,
# and the minor versions of both protocols
find_releases() {
	local commit full
	major=$(number_of ring-layout.h VGPU_PROTOCOL_VERSION)
	own_minor=$(number_of version.h VGPU_PROTOCOL_MINOR)
	read -r commit release_minor < <(grep -v '^#' "$top/tests/skew/release")
	full=$(git -C "$top" rev-parse --quiet --verify "$commit^{commit}" 2>/dev/null) ||
		skip "git has no commit $commit, of the last release:" \
			"fetch it, or its tag"
	release=${XDG_CACHE_HOME:-$HOME/.cache}/vgpu/skew/$full/build
	[ -e "${release%/build}/built" ] ||
		skip "the last release is not built: tests/skew/run builds it"
}

# compute GUEST-BUILD HOST-BUILD : programs in a guest with the library of one build, on
# vgpud and worker of the other one
compute() {
	local name words=() programs=("$checked")
	for name in copy graph launch module stream; do
		programs+=("$build/tests/e2e/e2e-test-$name")
	done
	for name in "${programs[@]}"; do
		[ -x "$name" ] || skip "$name is not built: it needs clang"
		words+=(--add "$name")
	done
	cat >script <<-'END'
		"$1" 20 2 && shift || exit 1
		for program; do "$program" && echo "right: $program" || exit 1; done
	END
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	build=$2 start_vgpud soft ivshmem
	guest --socket "$PWD/vgpud.sock" --lib "$1/guest-shim/libcuda.so.1" \
		--env VGPU_LOG=info --env ASAN_OPTIONS=detect_leaks=0 --add script \
		"${words[@]}" -- sh "$PWD/script" "${programs[@]}" >out 2>err ||
		{ cat out err vgpud.log && return 1; }
	stop_vgpud
	has out "20 rounds right"
	same "programs that are right" "$(grep -c '^right: ' out)" 5
	# One session for each, and none that vgpud had to end.
	same "sessions" "$(grep -c 'session ended .* reason=closed' vgpud.log)" \
		"$(grep -c 'session ended ' vgpud.log)"
	grep -q 'session ended .* reason=closed' vgpud.log
}

# Since minor version 1 a host names both versions, and so does a library.
test_a_guest_of_the_last_release_on_this_host() {
	find_releases
	compute "$release" "$build"
	same "versions of all sessions" \
		"$(grep -o "guest_protocol=.* host_protocol=[0-9.]*" vgpud.log | uniq)" \
		"guest_protocol=$major.$release_minor host_protocol=$major.$own_minor"
}

test_this_guest_on_a_host_of_the_last_release() {
	find_releases
	compute "$build" "$release"
	grep -qF "version $major.$own_minor, the host $major.$release_minor:" err
}
