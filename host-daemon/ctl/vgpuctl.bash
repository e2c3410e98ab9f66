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
		--socket | --vram | --size | --wait | --connect | --interval | --sort | \
			--process | --call | --output | -o | --seconds | --merge)
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
	if [[ $last == @(--socket|--output|-o|--merge) ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	if [ "$last" = --sort ]; then
		list='busy launches copies memory host name'
		[ "$verb" != stats ] || list='time count p50 p90 p99 max name'
		mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
		return
	fi
	case $word:$verb in
	-*:attach)
		list='--vram --size --config --wait --connect --json --socket --help'
		;;
	-*:detach) list='--connect --json --socket --help' ;;
	-*:doctor) list='--guest --json --socket --help' ;;
	-*:record)
		list='--output --process --command --seconds --size'
		list+=' --json --socket --help'
		;;
	-*:stats) list='--process --call --sort --json --socket --help' ;;
	-*:top) list='--once --interval --sort --json --socket --help' ;;
	-*:trace) list='--output --seconds --merge --json --socket --help' ;;
	-*:set | -*:pause | -*:resume) list='--persistent --json --socket --help' ;;
	-*) list='--json --socket --help --version' ;;
	:|[!-]*:)
		list='list show set pause resume attach detach hook doctor logs'
		list+=' log-level record stats top trace version'
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
	*:show | *:pause | *:resume | *:logs | *:record | *:stats | *:top | *:trace)
		[ -n "$vm" ] || list=$(_vgpuctl_ask "$names" list)
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
}

complete -F _vgpuctl vgpuctl
