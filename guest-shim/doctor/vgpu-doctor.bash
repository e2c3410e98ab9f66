# SPDX-License-Identifier: Apache-2.0
# bash completion of vgpu-doctor

_vgpu_doctor() {
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}

	if [ "$last" = --root ]; then
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(
		compgen -W '--json --root -h --help -V --version' -- "$word"
	)
}

complete -F _vgpu_doctor vgpu-doctor
