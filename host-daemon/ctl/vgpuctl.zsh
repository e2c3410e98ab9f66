#compdef vgpuctl
# SPDX-License-Identifier: Apache-2.0
# zsh completion of vgpuctl

_vgpuctl_vms() {
	local -a names
	names=(${(f)"$(vgpuctl list --json 2>/dev/null |
		sed -n 's/^ *"name": "\(.*\)",$/\1/p')"})
	compadd -a names
}

_vgpuctl_settings() {
	local -a keys
	keys=(${(f)"$(vgpuctl show $words[2] --json 2>/dev/null |
		sed -n '/"live"/,/]/s/^ *"\([a-z-]*\)",*$/\1/p')"})
	compadd -S = -a keys
}

_vgpuctl_columns() {
	compadd busy launches copies memory host name
}

_vgpuctl_times() {
	compadd time count p50 p90 p99 max name
}

_vgpuctl_domains() {
	local -a names
	names=(${(f)"$(virsh -q list --all --name 2>/dev/null)"})
	compadd -a names
}

local -a common
common=(
	'--json[print JSON]'
	'--socket=[where vgpud serves]:socket:_files'
	'(- *)'{-h,--help}'[explain the verb]'
)
local -a verbs
verbs=(
	'list:the virtual machines and their use'
	'show:one of them'
	'set:change settings of one'
	'pause:keep the devices from one'
	'resume:give it its device time again'
	'attach:give a domain of libvirt a device'
	'detach:take it away'
	'hook:what libvirt calls'
	'doctor:look for what this host or a guest lacks'
	'logs:the lines of the log about one'
	'log-level:change the level of the log'
	'record:write all calls of a process to a file'
	'stats:how long calls took'
	'top:who uses the devices'
	'trace:write what its processes do to a file'
	'version:of vgpuctl and vgpud'
)
local curcontext=$curcontext state line

_arguments -C $common '(- *)'{-V,--version}'[print the version]' \
	'1:verb:->verb' '*::argument:->argument'
case $state in
verb) _describe verb verbs ;;
argument)
	case $line[1] in
	show|logs) _arguments $common '1:machine:_vgpuctl_vms' ;;
	set)
		_arguments $common '--persistent[also in its file]' \
			'1:machine:_vgpuctl_vms' '*:setting:_vgpuctl_settings'
		;;
	pause|resume)
		_arguments $common '--persistent[also in its file]' \
			'1:machine:_vgpuctl_vms'
		;;
	attach)
		_arguments $common '--vram=[limit of device memory]:size' \
			'--size=[shared memory]:size' '--connect=[of libvirt]:uri' \
			'--config[from the next start on]' \
			'--wait=[for the guest]:seconds' '1:domain:_vgpuctl_domains'
		;;
	detach)
		_arguments $common '--connect=[of libvirt]:uri' \
			'1:domain:_vgpuctl_domains'
		;;
	doctor)
		_arguments $common '--guest[look at a machine]' \
			'1:machine:_vgpuctl_vms'
		;;
	record)
		_arguments $common \
			'(-o --output)'{-o,--output=}'[file]:file:_files' \
			'--process=[of the guest]:pid' '--command=[its name]:name' \
			'--seconds=[how long]:seconds' '--size=[of the file]:size' \
			'1:machine:_vgpuctl_vms'
		;;
	stats)
		_arguments $common '--process=[of the guest]:pid' \
			'--call=[how its name begins]:name' \
			'--sort=[by a column]:column:_vgpuctl_times' \
			'1:machine:_vgpuctl_vms'
		;;
	top)
		_arguments $common '--once[print it once]' \
			'--interval=[between two looks]:seconds' \
			'--sort=[by a column]:column:_vgpuctl_columns' \
			'1:machine:_vgpuctl_vms'
		;;
	trace)
		_arguments $common \
			'(-o --output)'{-o,--output=}'[file]:file:_files' \
			'--seconds=[how long]:seconds' \
			'--merge=[trace of a program]:file:_files' \
			'1:machine:_vgpuctl_vms'
		;;
	log-level) _arguments $common '1:level:(none error warning info debug)' ;;
	*) _arguments $common ;;
	esac
	;;
esac
