# SPDX-License-Identifier: Apache-2.0
# Control groups of version 2: limits of memory and CPU time of each VM, by a real kernel,
# which a guest has even where this machine permits no groups.
# shellcheck shell=bash disable=SC2154

# in_groups SCRIPT OPTION... : runs a script of this folder in a guest with vgpud, with
# options for run-guest up to a --, and then the script's
in_groups() {
	local script=$top/tests/vm/$1 vgpud vgpuctl worker softgpu options=() limit=600
	shift
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	vgpud=$(product vgpud) vgpuctl=$(product vgpuctl) worker=$(product vgpu-worker)
	softgpu=$(product libvgpu-softgpu.so)
	${CC:-cc} -O2 -Wall -Wextra -Werror -I"$build/protocol/include/vgpu" \
		-o fill "$top/tests/vm/fill.c" "$(product libcuda.so.1)"
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	guest --memory 2048 --timeout "$limit" --append loglevel=7 \
		--lib "$(product libcuda.so.1)" --add "$vgpud" --add "$vgpuctl" \
		--add "$worker" --add "$softgpu" --add "$PWD/fill" --add "$script" \
		--add "${script%/*}/groups-common.sh" \
		--env "vgpud=$vgpud" --env "vgpuctl=$vgpuctl" --env "worker=$worker" \
		--env "softgpu=$softgpu" --env "fill=$PWD/fill" "${options[@]}" \
		-- sh "$script" "$@" | tee out
	[ "$(tail -n 1 out | cut -d' ' -f1,2)" = "All of" ]
}

test_control_groups_limit_memory_of_each_vm() {
	in_groups groups-host.sh -- groups_are_made they_outlive_broker_and_keeper
}

test_kernel_ends_a_worker_beyond_the_limit_of_its_control_group() {
	in_groups groups-host.sh -- groups_are_made the_kernel_ends_one nothing_is_left
}

test_control_groups_are_as_good_as_vgpud_may_make_them() {
	in_groups groups-host.sh -- without_what_it_takes with_a_service_manager
}

# With the programs of this machine's systemd, and the unit of the build.
test_systemd_restarts_a_vgpud_that_has_divided_its_control_group() {
	local unit=$build/host-daemon/service/vgpud.service folder=/usr/lib/systemd
	[ -x $folder/systemd ] || skip_option "this machine has no systemd"
	[ -e "$unit" ] || skip_option "there is no unit in $build"
	in_groups groups-systemd.sh --add $folder/systemd --add $folder/system \
		--add "$(command -v systemctl)" --add "$unit" -- "$unit"
}
