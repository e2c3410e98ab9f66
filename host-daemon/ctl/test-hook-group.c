/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group of QEMU as the configuration of libvirt has it
 */

#include <grp.h>
#include <stdio.h>

#include "ctl/hook-group.h"
#include "test.h"

/* Return: the group of a configuration with that text. */
static gid_t group_of(const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/qemu.conf", test_tmpdir());
	file = fopen(path, "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
	return hook_group(path);
}

/* Of a distribution's user for QEMU, if this machine has one. */
static gid_t fallback(void)
{
	const struct group *group = getgrnam("libvirt-qemu");

	if (!group)
		group = getgrnam("qemu");
	return group ? group->gr_gid : (gid_t)-1;
}

TEST(a_name_and_a_number)
{
	check_eq(group_of("user = \"nobody\"\ngroup = \"root\"\n"), 0);
	check_eq(group_of("group = \"4711\"\n"), 4711);
	check_eq(group_of("  group=\"+4712\" # ours\n"), 4712);
}

TEST(a_group_is_found_by_its_name_or_number)
{
	check_eq(hook_group_find("root"), 0);
	check_eq(hook_group_find("4711"), 4711);
	check_eq(hook_group_find("+4711"), 4711);
	check_eq(hook_group_find("no-such-group"), (gid_t)-1);
	check_eq(hook_group_find("-1"), (gid_t)-1);
	check_eq(hook_group_find("+"), (gid_t)-1);
	check_eq(hook_group_find(""), (gid_t)-1);
}

TEST(the_last_line_counts)
{
	check_eq(group_of("group = \"1\"\ngroup = \"2\"\n"), 2);
}

TEST(comments_and_other_keys_do_not)
{
	check_eq(group_of("#group = \"1\"\ngroups = \"2\"\nsave_group = \"3\"\n"),
		fallback());
}

TEST(values_that_are_no_group)
{
	check_eq(group_of("group = \"no-such-group\"\n"), fallback());
	check_eq(group_of("group = \"\"\n"), fallback());
	check_eq(group_of("group = \"12x\"\n"), fallback());
	check_eq(group_of("group = \"4294967295\"\n"), fallback());
	check_eq(group_of("group = \"99999999999999999999\"\n"), fallback());
}

TEST(no_file)
{
	check_eq(hook_group("/nonexistent/qemu.conf"), fallback());
}
