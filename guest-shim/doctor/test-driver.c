/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's driver in a root of the test: loaded, built, missing, locked out
 */

#include <sys/utsname.h>

#include "doctor/test-files.h"

static void check_driver(
	enum vgpu_finding_level level, const char *text, const char *advice)
{
	struct doctor doctor;

	doctor_init(&doctor, test_tmpdir());
	doctor_look_at_driver(&doctor);
	check_eq(doctor.found.n, 1);
	check_last(&doctor, level, text, advice);
	doctor_deinit(&doctor);
}

TEST(a_driver_that_is_loaded_needs_a_device_file)
{
	put("/sys/module/vgpu/initstate", "live\n");
	check_driver(VGPU_FINDING_WARN, "no /dev/vgpu0", "--device /dev/vgpu0");
	put("/dev/vgpu0", "");
	check_driver(VGPU_FINDING_OK, "is loaded", NULL);
}

TEST(each_step_to_a_driver_is_named)
{
	struct utsname kernel;
	char path[256];

	check_eq(uname(&kernel), 0);
	put("/sys/module/other/initstate", "live\n");
	check_driver(VGPU_FINDING_WARN, "not installed", "vgpu-dkms");
	put("/usr/src/vgpu-0.1.0/dkms.conf", "");
	check_driver(VGPU_FINDING_WARN, "not built", "headers");
	snprintf(path, sizeof(path), "/lib/modules/%s/updates/dkms/vgpu.ko.xz",
		kernel.release);
	put(path, "");
	check_driver(VGPU_FINDING_WARN, "not loaded", "modprobe vgpu");
}

TEST(a_kernel_that_is_locked_down_needs_the_driver)
{
	put("/sys/module/other/initstate", "live\n");
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	check_driver(VGPU_FINDING_WARN, "not installed", "vgpu-dkms");
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	check_driver(VGPU_FINDING_FAIL, "locked down", "Secure Boot");
	put("/sys/module/vgpu/initstate", "live\n");
	put("/dev/vgpu3", "");
	check_driver(VGPU_FINDING_OK, "is loaded", NULL);
}

TEST(of_an_image_the_driver_may_be_built_for_any_kernel)
{
	check_driver(VGPU_FINDING_WARN, "not installed", "there");
	put("/usr/src/vgpu-0.1.0/dkms.conf", "");
	check_driver(VGPU_FINDING_WARN, "for no kernel", "headers");
	put("/lib/modules/1.2.3/extra/vgpu.ko", "");
	check_driver(VGPU_FINDING_OK, "is built", NULL);
}
