# SPDX-License-Identifier: Apache-2.0
# bash completion of vgpuctl

# The words of its JSON that a pattern of sed finds.
_vgpuctl_ask() {
	local pattern=$1
	shift
	vgpuctl "$@" --json 2>/dev/null | sed -n "$pattern"
}

_vgpuctl() {
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}
	local list verb='' vm='' i
	local names='s/^ *"name": "\(.*\)",$/\1/p'
	local keys='/"live"/,/]/s/^ *"\([a-z-]*\)",*$/\1=/p'

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--socket | --vram | --size | --wait | --connect | --interval | --sort)
			i=$((i + 1))
			;;
		-*) ;;
		*)
			if [ -z "$verb" ]; then
				verb=${COMP_WORDS[i]}
			else
				vm=${vm:-${COMP_WORDS[i]}}
			fi
			;;
		esac
	done
	if [ "$last" = --socket ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	if [ "$last" = --sort ]; then
		list='busy launches copies memory host name'
		mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
		return
	fi
	case $word:$verb in
	-*:attach)
		list='--vram --size --config --wait --connect --json --socket --help'
		;;
	-*:detach) list='--connect --json --socket --help' ;;
	-*:doctor) list='--guest --json --socket --help' ;;
	-*:top) list='--once --interval --sort --json --socket --help' ;;
	-*:set) list='--persistent --json --socket --help' ;;
	-*) list='--json --socket --help --version' ;;
	:|[!-]*:)
		list='list show set attach detach hook doctor logs log-level top version'
		;;
	*:attach | *:detach | *:hook) list=$(virsh -q list --all --name 2>/dev/null) ;;
	*:log-level) list='none error warning info debug' ;;
	*:set)
		if [ -z "$vm" ]; then
			list=$(_vgpuctl_ask "$names" list)
		elif [[ $word != *=* ]]; then
			list=$(_vgpuctl_ask "$keys" show "$vm")
			compopt -o nospace
		fi
		;;
	*:doctor)
		[[ " ${COMP_WORDS[*]} " != *" --guest "* ]] || [ -n "$vm" ] ||
			list=$(_vgpuctl_ask "$names" list)
		;;
	*:show | *:logs | *:top)
		[ -n "$vm" ] || list=$(_vgpuctl_ask "$names" list)
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
}

complete -F _vgpuctl vgpuctl
