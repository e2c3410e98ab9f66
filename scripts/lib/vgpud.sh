# SPDX-License-Identifier: Apache-2.0
# A private vgpud in a private folder. Sourced after common.sh; all its files are in
# $run_dir, which the caller makes and removes.
# shellcheck shell=bash disable=SC2034,SC2154

vgpud_pid=

# product NAME : the path of a built file; programs and libraries of the build are
# in the folders of their sources
product() {
	local path
	path=$(find "$build/guest-shim" "$build/host-daemon" "$build/scripts" \
		-name "$1" ! -type d 2>/dev/null | head -n 1)
	[ -n "$path" ] || die 125 "$1 is not built in $build (meson setup build &&" \
		"meson compile -C build)"
	printf '%s\n' "$path"
}

# write_config DRIVER TRANSPORT : one VM, at $run_dir/vgpud.sock; with transport plain in
# the file $run_dir/vgpud.mem, which QEMU makes; with the lines $vm_lines, if any
write_config() {
	local place="socket = $run_dir/vgpud.sock"
	[ "$2" != plain ] || place="memory = $run_dir/vgpud.mem"
	cat >"$run_dir/vgpud.conf" <<-END
		[vgpud]
		driver = $1
		log-level = info
		log-file = $run_dir/vgpud.log
		; It serves only programs of the user who runs it.
		allow-unprivileged = yes

		[vm private]
		transport = $2
		$place
		${vm_lines-}
	END
}

# start_vgpud DRIVER TRANSPORT : returns when all its sockets listen. It ends with
# this script, however that ends.
start_vgpud() {
	local program tries=0
	write_config "$1" "$2"
	program=$(product vgpud)
	: >"$run_dir/vgpud.log"
	env -u VGPUD_LOG setpriv --pdeathsig TERM \
		"$program" --config "$run_dir/vgpud.conf" \
		</dev/null >>"$run_dir/vgpud.log" 2>&1 &
	vgpud_pid=$!
	until grep -q "vgpud ready" "$run_dir/vgpud.log"; do
		tries=$((tries + 1))
		if [ $tries -gt 400 ] || ! kill -0 "$vgpud_pid" 2>/dev/null; then
			cat "$run_dir/vgpud.log" >&2
			die 125 "vgpud did not become ready"
		fi
		sleep 0.05
	done
}

# stop_vgpud : it drains, so that its last lines are there afterwards
stop_vgpud() {
	[ -n "$vgpud_pid" ] || return 0
	kill "$vgpud_pid" 2>/dev/null || true
	wait "$vgpud_pid" || true
	vgpud_pid=
}
