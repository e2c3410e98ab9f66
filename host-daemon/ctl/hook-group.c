/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hook group: the group of libvirt's QEMU processes, without asking libvirt
 *
 * The description that a hook gets has it only if the domain has a label of its own:
 * libvirt chooses the labels of others after its hook has returned. The line is as its
 * configuration has it:
 *
 *	group = "kvm"
 */

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/hook-group.h"

gid_t hook_group_find(const char *name)
{
	const struct group *group = getgrnam(name);
	unsigned long number;
	char *end;

	if (group)
		return group->gr_gid;
	name += *name == '+';
	if (*name < '0' || *name > '9')
		return (gid_t)-1;
	number = strtoul(name, &end, 10);
	return *end || number >= (gid_t)-1 ? (gid_t)-1 : (gid_t)number;
}

gid_t hook_group(const char *path)
{
	/* Of Debian and Ubuntu; of Fedora, openSUSE and Arch. */
	static const char *const names[] = { "libvirt-qemu", "qemu" };
	char line[256], name[64];
	gid_t group = (gid_t)-1;
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " group = \"%63[^\"]\"", name) == 1)
			group = hook_group_find(name);
	if (file)
		fclose(file);
	for (size_t i = 0; group == (gid_t)-1 && i < sizeof(names) / sizeof(*names); i++)
		group = hook_group_find(names[i]);
	return group;
}
