/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: the ivshmem devices of the machine
 *
 * Whose a device is shows the magic number at the start of its memory, which can be read
 * only while no driver has the device: see way.c for what programs can do with it.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "vgpu/cleanup.h"
#include "vgpu/ring-layout.h"
#include "vgpu/root.h"

#include "doctor/doctor.h"

#define DEVICES "/sys/bus/pci/devices"
#define ADVICE_ATTACH                                                                    \
	"attach one on the host: vgpuctl attach DOMAIN, or QEMU's -device "              \
	"ivshmem-doorbell at the socket of vgpud"

static bool has_number(
	const struct doctor *doctor, const char *device, const char *file, long number)
{
	char path[512], line[256];

	snprintf(path, sizeof(path), DEVICES "/%.255s/%s", device, file);
	return vgpu_root_read_line(doctor->root, path, line) &&
	       strtol(line, NULL, 16) == number;
}

/* The name of the kernel's driver that has the device; empty: none. */
static void read_driver(
	const struct doctor *doctor, const char *device, char name[static 256])
{
	_vgpu_cleanup_(vgpu_freep) char *path = NULL;
	char target[1024];
	const char *slash;
	ssize_t n;

	*name = '\0';
	if (asprintf(&path, "%s" DEVICES "/%s/driver", doctor->root, device) < 0) {
		path = NULL;
		return;
	}
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	slash = strrchr(target, '/');
	snprintf(name, 256, "%.255s", slash ? slash + 1 : target);
}

/* Return: whether it begins with our magic number, or -errno. */
static int read_magic(const struct doctor *doctor, const char *device)
{
	_vgpu_cleanup_(vgpu_freep) char *path = NULL;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	const struct vgpu_shm_header *header;
	struct stat info;
	int is_ours;

	if (asprintf(&path, "%s" DEVICES "/%s/resource2", doctor->root, device) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) < 0)
		return -errno;
	if (info.st_size < (off_t)VGPU_SHM_SIZE_MIN)
		return 0;
	header = mmap(NULL, sizeof(*header), PROT_READ, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return -errno;
	is_ours = header->magic == VGPU_SHM_MAGIC;
	munmap((void *)header, sizeof(*header));
	return is_ours;
}

/* Of a device without a driver. Return: whether it may be ours. */
static bool look_at_memory(struct doctor *doctor, const char *device)
{
	const int r = read_magic(doctor, device);

	if (r == 1)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "device", NULL,
			"PCI device %s, without a driver: programs use it by sysfs",
			device);
	else if (r < 0)
		/* What to do says the look at the way. */
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "device", NULL,
			"PCI device %s, which may be ours: its memory cannot be read",
			device);
	else if (has_number(doctor, device, "enable", 0))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "device",
			"install the udev rule of the guest package, or as root write 1 "
			"to the file enable of the device in " DEVICES,
			"PCI device %s is not enabled: its memory cannot be read",
			device);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "device",
			"leave it to its users; if it is meant for vGPU, start vgpud on "
			"the host before the virtual machine, with the device at the "
			"socket of vgpud",
			"ivshmem device %s is of another use: its memory has not vGPU's "
			"magic number",
			device);
	return r || has_number(doctor, device, "enable", 0);
}

/* Return: whether it may be ours. */
static bool look_at_device(struct doctor *doctor, const char *device)
{
	char driver[256];

	read_driver(doctor, device, driver);
	if (!*driver)
		return look_at_memory(doctor, device);
	if (!strcmp(driver, "vgpu")) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "device", NULL,
			"PCI device %s, of the kernel's driver vgpu", device);
		return true;
	}
	vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "device",
		"if it is meant for vGPU, unbind that driver from it",
		"ivshmem device %s is of the kernel's driver %s", device, driver);
	return false;
}

void doctor_look_at_devices(struct doctor *doctor)
{
	_vgpu_cleanup_(vgpu_freep) char *path = NULL;
	unsigned int n = 0, n_ours = 0;
	struct dirent *entry;
	DIR *folder;

	if (asprintf(&path, "%s" DEVICES, doctor->root) < 0) {
		path = NULL;
		return;
	}
	folder = opendir(path);
	if (!folder) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "device",
			"mount -t sysfs sysfs /sys", "there is no " DEVICES ": %s",
			strerror(errno));
		return;
	}
	while ((entry = readdir(folder))) {
		if (*entry->d_name == '.' ||
			!has_number(doctor, entry->d_name, "vendor", 0x1af4) ||
			!has_number(doctor, entry->d_name, "device", 0x1110))
			continue;
		n++;
		n_ours += look_at_device(doctor, entry->d_name);
	}
	closedir(folder);
	doctor->has_no_device = !n_ours;
	if (!n_ours)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "device",
			ADVICE_ATTACH,
			"this machine has no vGPU device (PCI device 1af4:1110, "
			"ivshmem)%s",
			n ? ", but others of that kind" : "");
}
