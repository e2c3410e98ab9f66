/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and groups in a root of the test
 */

#include "doctor/test-files.h"

#define ANNA 4242u

static struct doctor doctor;

static void look(uid_t uid, gid_t gid)
{
	doctor_init(&doctor, test_tmpdir());
	doctor.uid = uid;
	doctor.groups[0] = gid;
	doctor.n_groups = 1;
	doctor_look_at_group(&doctor);
	check_eq(doctor.found.n, 1);
}

TEST(without_the_group_only_root_may)
{
	put("/etc/passwd", "anna:x:4242:1:::\n");
	put("/etc/group", "vgpus:x:7:anna\n");
	look(ANNA, 7);
	check_last(&doctor, VGPU_FINDING_FAIL, "no group vgpu", "install.sh");
	doctor_deinit(&doctor);
}

TEST(a_user_outside_of_the_group_is_named)
{
	put("/etc/passwd", "otto:x:4241:1:::\nanna:x:4242:1:::\n");
	put("/etc/group", "anna:x:8:\nvgpu:x:7:otto\n");
	look(ANNA, 8);
	check_last(&doctor, VGPU_FINDING_FAIL, "anna is not in the group",
		"usermod -aG vgpu anna, then log in again");
	doctor_deinit(&doctor);
	look(7777, 8);
	check_last(&doctor, VGPU_FINDING_FAIL, "7777 is not", "usermod");
	doctor_deinit(&doctor);
}

TEST(a_user_who_has_to_log_in_again_is_named)
{
	put("/etc/passwd", "anna:x:4242:1:::\n");
	put("/etc/group", "vgpu:x:7:otto,anna\n");
	look(ANNA, 8);
	check_last(&doctor, VGPU_FINDING_FAIL, "after this login", "log out and in");
	doctor_deinit(&doctor);
	look(ANNA, 7);
	check_last(&doctor, VGPU_FINDING_OK, "anna is in the group", NULL);
	doctor_deinit(&doctor);
}

TEST(a_device_that_could_be_opened_needs_no_group)
{
	put("/etc/passwd", "anna:x:4242:1:::\n");
	doctor_init(&doctor, test_tmpdir());
	doctor.uid = ANNA;
	doctor.transport = "sysfs";
	doctor_look_at_group(&doctor);
	check_last(&doctor, VGPU_FINDING_OK, "anna may open", NULL);
	doctor_deinit(&doctor);
}

TEST(of_an_image_root_looks_for_the_group)
{
	look(0, 0);
	check_last(&doctor, VGPU_FINDING_FAIL, "no group vgpu", "groupadd");
	doctor_deinit(&doctor);
	put("/etc/group", "vgpu:x:7:\n");
	look(0, 0);
	check_last(&doctor, VGPU_FINDING_OK, "there is a group", NULL);
	doctor_deinit(&doctor);
}
