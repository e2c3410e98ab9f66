#compdef vgpu-doctor
# SPDX-License-Identifier: Apache-2.0
# zsh completion of vgpu-doctor

_arguments \
	'--json[print JSON]' \
	'--root=[look at the system below a folder]:folder:_files -/' \
	'(- *)'{-h,--help}'[print the options]' \
	'(- *)'{-V,--version}'[print the version]'
