/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own group: how a control group is divided, with a folder in its place
 *
 * The files are written over, not appended to, so the last word written is at the
 * beginning.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/own-group.h"
#include "test.h"
#include "vgpud/cgroup.h"

static struct held_workers workers;
static struct held_worker worker;
static char root[64], why[OWN_GROUP_WHY_MAX];

static const char *place(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(place(name), "w");

	check(file && fputs(text, file) >= 0 && !fclose(file));
}

static bool begins(const char *name, const char *text)
{
	char line[64] = "";
	FILE *file = fopen(place(name), "r");

	check(file);
	if (!fgets(line, sizeof(line), file))
		*line = '\0';
	fclose(file);
	return !strncmp(line, text, strlen(text));
}

/* A group with this process and one worker. */
static void begin(const char *controllers)
{
	char list[64];

	TAILQ_INIT(&workers);
	worker = (struct held_worker){ .pid = 4711, .pidfd = -1 };
	TAILQ_INSERT_TAIL(&workers, &worker, entry);
	strcpy(root, "/tmp/vgpu-own-group-XXXXXX");
	check(mkdtemp(root));
	put("cgroup.controllers", controllers);
	put("cgroup.subtree_control", "");
	snprintf(list, sizeof(list), "%d\n4711\n", (int)getpid());
	put("cgroup.procs", list);
}

/* What the kernel makes with the group below. */
static void make_main(void)
{
	check_eq(mkdir(place(CGROUP_MAIN), 0755), 0);
	put(CGROUP_MAIN "/cgroup.procs", "");
}

static void end(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", root);
	check_eq(system(command), 0);
}

static bool divide(const char *name, bool may)
{
	return own_group_divide(place(name), &workers, may, why);
}

TEST(this_process_and_workers_are_moved_and_controllers_enabled)
{
	begin("cpu io memory\n");
	make_main();
	check_eq(mkdir(place("vm-old"), 0755), 0);
	check(divide("", true));
	check_str(why, "");
	/* One after the other, this process as 0. */
	check(begins(CGROUP_MAIN "/cgroup.procs", "4711"));
	check(begins("cgroup.subtree_control", "+cpu"));
	/* Threaded, it would keep the controller from being enabled. */
	check(access(place("vm-old"), F_OK) < 0);
	end();
}

TEST(without_permission_nothing_is_moved)
{
	begin("cpu io memory\n");
	make_main();
	check(!divide("", false));
	check(strstr(why, "--own-group"));
	check(begins(CGROUP_MAIN "/cgroup.procs", ""));
	check(begins("cgroup.subtree_control", ""));
	end();
}

TEST(other_processes_keep_it_from_being_divided)
{
	begin("memory\n");
	make_main();
	worker.exited = true;
	check(!divide("", true));
	check(strstr(why, "other processes"));
	check(begins(CGROUP_MAIN "/cgroup.procs", ""));
	end();
}

TEST(without_the_controller_it_is_not_divided)
{
	begin("cpu io hugetlb\n");
	check(!divide("", true));
	check(strstr(why, "no controller memory"));
	check(access(place(CGROUP_MAIN), F_OK) < 0);
	check(!divide("absent", true));
	check(strstr(why, "no control group"));
	end();
}

TEST(what_cannot_be_completed_is_undone)
{
	begin("memory\n");
	/* No file is there, unlike in a group of the kernel's. */
	check(!divide("", true));
	check_str(why, strerror(ENOENT));
	check(access(place(CGROUP_MAIN), F_OK) < 0);
	check(begins("cgroup.subtree_control", ""));
	end();
}

TEST(a_process_in_main_has_it_divided_already)
{
	begin("memory\n");
	make_main();
	/* Others are of no interest: the kernel does not put any there. */
	put("cgroup.procs", "1\n");
	check(divide(CGROUP_MAIN, false));
	check(begins("cgroup.subtree_control", "+memory"));
	check(begins(CGROUP_MAIN "/cgroup.procs", ""));
	end();
}

TEST(a_division_is_undone_by_a_command_of_the_service)
{
	begin("cpu memory\n");
	put("cgroup.subtree_control", "cpu\n");
	/* Threaded groups have it. */
	check_eq(own_group_undo(place(".control")), 0);
	check(begins("cgroup.subtree_control", "cpu"));
	make_main();
	check_eq(own_group_undo(place(".control")), 0);
	check(begins("cgroup.subtree_control", "-cpu"));
	put("cgroup.subtree_control", "memory\n");
	check_eq(own_group_undo(place("")), 0);
	check(begins("cgroup.subtree_control", "-memory"));
	put("cgroup.subtree_control", "pids\n");
	check_eq(own_group_undo(place(".control")), 0);
	check(begins("cgroup.subtree_control", "pids"));
	check_eq(own_group_undo("/nonexistent/x/.control"), -ENOENT);
	end();
}
