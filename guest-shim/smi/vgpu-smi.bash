# SPDX-License-Identifier: Apache-2.0
# bash completion of vgpu-smi

_vgpu_smi() {
	local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} list

	# --name=value is three words here.
	[ "$word" != = ] || word=
	[ "$option" != = ] || option=${COMP_WORDS[COMP_CWORD - 2]}
	case $option in
	-f | --filename)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	-i | --id)
		list=$(vgpu-smi --query-gpu=index,uuid --format=csv,noheader 2>/dev/null |
			tr -d ,)
		;;
	-d | --display)
		list='GENERAL MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE
			PERFORMANCE PAGE_RETIREMENT ROW_REMAPPER ACCOUNTING
			ENCODER_STATS PIDS'
		;;
	--query-gpu | --query-compute-apps)
		list=$(vgpu-smi "--help-${option#--}" | sed -n 's/^"\([^"]*\)".*/\1/p')
		;;
	--format) list='csv csv,noheader csv,noheader,nounits csv,nounits' ;;
	-c | --count | -lms | --loop-ms) return ;;
	*)
		list='-L --list-gpus -q --query -d --display= --query-gpu=
			--query-compute-apps= --format= --json -i --id= -f --filename= -l
			--loop= -lms --loop-ms= -c --count= -h --help --help-query-gpu
			--help-query-compute-apps --version'
		[ "$COMP_CWORD" -gt 1 ] || list="pmon dmon $list"
		;;
	esac
	# Values by commas: the last one is completed.
	local head=
	case $option in
	--query-gpu | --query-compute-apps | -d | --display | -i | --id)
		[[ $word != *,* ]] || head=${word%,*},
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -P "$head" -W "$list" -- "${word#"$head"}")
	[[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

complete -F _vgpu_smi vgpu-smi
