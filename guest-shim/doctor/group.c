/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group: whether the user may open the device
 *
 * A process keeps the groups that it had at login: being added to the group takes effect
 * at the next one, which is the usual reason of a refusal.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/root.h"

#include "doctor/doctor.h"

#define GROUP "vgpu"

/* The user's name below the root; its number where it has none there. */
static void find_user(const struct doctor *doctor, char name[static 64])
{
	FILE *file = vgpu_root_open(doctor->root, "/etc/passwd");
	const struct passwd *user = NULL;

	while (file && (user = fgetpwent(file)) && user->pw_uid != doctor->uid)
		;
	/* Users of a directory service are in no file. */
	if (!user && !*doctor->root)
		user = getpwuid(doctor->uid);
	if (user)
		snprintf(name, 64, "%s", user->pw_name);
	else
		snprintf(name, 64, "%u", (unsigned int)doctor->uid);
	if (file)
		fclose(file);
}

static bool is_member(const struct doctor *doctor, gid_t gid)
{
	for (unsigned int i = 0; i < doctor->n_groups; i++)
		if (doctor->groups[i] == gid)
			return true;
	return false;
}

/* Return: 0 with the number of the group and whether it lists the user, or -ENOENT. */
static int find_group(
	const struct doctor *doctor, const char *user, gid_t *gidp, bool *lists_userp)
{
	FILE *file = vgpu_root_open(doctor->root, "/etc/group");
	const struct group *group = NULL;

	while (file && (group = fgetgrent(file)) && strcmp(group->gr_name, GROUP))
		;
	*lists_userp = false;
	if (group) {
		*gidp = group->gr_gid;
		for (char **member = group->gr_mem; *member; member++)
			*lists_userp |= !strcmp(*member, user);
	}
	if (file)
		fclose(file);
	return group ? 0 : -ENOENT;
}

/* Of an image there is no user to look at. */
static void look_at_image(struct doctor *doctor, int r)
{
	if (r)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "group",
			"run install.sh --root of the guest package, or groupadd "
			"--system " GROUP,
			"there is no group " GROUP ": only root may use the device");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "group", NULL,
			"there is a group " GROUP);
}

void doctor_look_at_group(struct doctor *doctor)
{
	char user[64], advice[256];
	bool lists_user;
	gid_t gid = 0;
	int r;

	find_user(doctor, user);
	r = find_group(doctor, user, &gid, &lists_user);
	if (*doctor->root && doctor->uid == 0) {
		look_at_image(doctor, r);
		return;
	}
	snprintf(advice, sizeof(advice), "usermod -aG " GROUP " %s, then log in again",
		user);
	/* Its files may be open to others, by a rule of the administrator. */
	if (doctor->transport && doctor->uid)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "group", NULL,
			"%s may open the device", user);
	else if (doctor->uid == 0)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "group", NULL,
			r ? "root needs none; there is no group " GROUP " for others"
			  : "root needs none; others have to be in the group " GROUP);
	else if (r)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "group",
			"run install.sh of the guest package, which makes it and has the "
			"option --user",
			"there is no group " GROUP ": only root may use the device");
	else if (is_member(doctor, gid))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "group", NULL,
			"%s is in the group " GROUP, user);
	else if (lists_user)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "group",
			"log out and in again, or start programs by: sg " GROUP
			" COMMAND",
			"%s was added to the group " GROUP " after this login", user);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "group", advice,
			"%s is not in the group " GROUP, user);
}
