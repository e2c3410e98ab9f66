/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver: the kernel's driver vgpu, and what prevents loading it
 *
 * Programs also work without it, by sysfs, unless the kernel is locked down.
 */

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/root.h"

#include "doctor/doctor.h"

/* Return: whether a file below the root matches. */
static bool is_there(const struct doctor *doctor, const char *pattern)
{
	_vgpu_cleanup_(vgpu_freep) char *whole = NULL;
	glob_t found;
	int r;

	if (asprintf(&whole, "%s%s", doctor->root, pattern) < 0) {
		whole = NULL;
		return false;
	}
	r = glob(whole, GLOB_NOSORT, NULL, &found);
	if (!r)
		globfree(&found);
	return !r;
}

/* Whether the module was built: for the running kernel, of an image for any. */
static bool is_built(const struct doctor *doctor, const char *release)
{
	char pattern[256];

	for (const char *const *folder =
			(const char *const[]){ "extra", "updates", "updates/dkms", NULL };
		*folder; folder++) {
		snprintf(pattern, sizeof(pattern), "/lib/modules/%.64s/%s/vgpu.ko*",
			release, *folder);
		if (is_there(doctor, pattern))
			return true;
	}
	return false;
}

/* The mode is the word in brackets. */
static bool is_locked(const struct doctor *doctor)
{
	char line[256];

	return vgpu_root_read_line(doctor->root, "/sys/kernel/security/lockdown", line) &&
	       strchr(line, '[') && !strstr(line, "[none]");
}

static void look_at_absent(struct doctor *doctor, const char *release)
{
	const bool is_source = is_there(doctor, "/usr/src/vgpu-[0-9]*/dkms.conf");

	if (is_locked(doctor))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "driver",
			"load the driver, with a key that is enrolled (mokutil --import "
			"/var/lib/dkms/mok.pub), or switch Secure Boot off",
			"the kernel is locked down, as under Secure Boot, and vgpu is "
			"not loaded: no program may map the device");
	else if (is_built(doctor, release))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"modprobe vgpu; if that fails, dmesg says why",
			"vgpu is built for kernel %s and not loaded: programs use the "
			"device by sysfs, and are not isolated from each other",
			release);
	else if (is_source)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"install dkms and the headers of the kernel, then: dkms "
			"autoinstall && modprobe vgpu",
			"vgpu is not built for kernel %s: programs use the device by "
			"sysfs, and are not isolated from each other",
			release);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"install vgpu-dkms, or the guest package",
			"vgpu is not installed: programs use the device by sysfs, and "
			"are not isolated from each other");
}

/* Of an image: whether it is built for any kernel. */
static void look_at_image(struct doctor *doctor)
{
	if (is_built(doctor, "*"))
		vgpu_findings_add(
			&doctor->found, VGPU_FINDING_OK, "driver", NULL, "vgpu is built");
	else if (is_there(doctor, "/usr/src/vgpu-[0-9]*/dkms.conf"))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"install dkms and the headers of the image's kernel there",
			"the source of vgpu is there, but it is built for no kernel");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"install vgpu-dkms there, or the guest package",
			"vgpu is not installed");
}

void doctor_look_at_driver(struct doctor *doctor)
{
	const bool is_loaded = !vgpu_root_access(doctor->root, "/sys/module/vgpu", F_OK);
	const bool has_file = is_there(doctor, "/dev/vgpu[0-9]*");
	struct utsname kernel;

	if (uname(&kernel) < 0)
		return;
	if (is_loaded && has_file)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "driver", NULL,
			"vgpu is loaded, and has a device");
	else if (is_loaded)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"if this is a container: docker run --device /dev/vgpu0, or the "
			"CDI file of vgpu-cdi; a unit of systemd: DeviceAllow=/dev/vgpu0 "
			"rw and no PrivateDevices=yes; else dmesg says why the driver "
			"has no device",
			"vgpu is loaded, but there is no /dev/vgpu0 here");
	else if (*doctor->root && vgpu_root_access(doctor->root, "/sys/module", F_OK))
		look_at_image(doctor);
	else
		look_at_absent(doctor, kernel.release);
}
