#compdef vgpu-smi
# SPDX-License-Identifier: Apache-2.0
# zsh completion of vgpu-smi

_vgpu_smi_values() {
	local -a names
	names=(${(f)"$(vgpu-smi --help-$1 2>/dev/null | sed -n 's/^"\([^"]*\)".*/\1/p')"})
	_values -s , value $names
}

_vgpu_smi_devices() {
	local -a names
	names=(${(f)"$(vgpu-smi --query-gpu=index --format=csv,noheader 2>/dev/null)"}
		${(f)"$(vgpu-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null)"})
	_values -s , device $names
}

local apps=query-compute-apps
local sections='GENERAL MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE
	PERFORMANCE PAGE_RETIREMENT ROW_REMAPPER ACCOUNTING ENCODER_STATS PIDS'

_arguments \
	'(-L --list-gpus)'{-L,--list-gpus}'[a line for each device]' \
	'(-q --query)'{-q,--query}'[all that is known of each device]' \
	'(-d --display)'{-d+,--display=}\
"[sections of it]:section:_values -s , section $sections" \
	'--query-gpu=[values of each device]:value: _vgpu_smi_values query-gpu' \
	"--$apps=[values of each process]:value: _vgpu_smi_values $apps" \
	'--format=[form of the values]:format:(csv csv,noheader csv,noheader,nounits)' \
	'--json[all values as JSON]' \
	'(-i --id)'{-i+,--id=}'[only these devices]:device: _vgpu_smi_devices' \
	'(-f --filename)'{-f+,--filename=}'[write to a file]:file:_files' \
	'(-l --loop)'{-l-,--loop=}'[again and again]::seconds' \
	'-lms=-[the same in milliseconds]:milliseconds' \
	'--loop-ms=[the same in milliseconds]:milliseconds' \
	'(-c --count)'{-c+,--count=}'[stop after so many rounds]:rounds' \
	'(- *)--help-query-gpu[names of values of devices]' \
	'(- *)--help-query-compute-apps[names of values of processes]' \
	'(- *)'{-h,--help}'[explain the options]' \
	'(- *)--version[print the version]' \
	'1::command:(pmon dmon)'
