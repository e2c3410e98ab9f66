/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI devices in a /sys of the test: ours, foreign ones, none
 */

#include <errno.h>
#include <unistd.h>

#include "doctor/test-files.h"
#include "vgpu/ring-layout.h"

#define DEVICES "/sys/bus/pci/devices/"
#define ONE DEVICES "0000:00:05.0"
#define OTHER DEVICES "0000:00:06.0"

static struct doctor doctor;

static void look(void)
{
	doctor_init(&doctor, test_tmpdir());
	doctor_look_at_devices(&doctor);
}

static void put_device(const char *path, const char *vendor, const char *device)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/vendor", path);
	put(file, vendor);
	snprintf(file, sizeof(file), "%s/device", path);
	put(file, device);
}

static void put_memory(const char *path, uint64_t magic, off_t size)
{
	const struct vgpu_shm_header header = { .magic = magic };
	char file[256];
	FILE *memory;

	snprintf(file, sizeof(file), "%s/resource2", path);
	put(file, "");
	memory = fopen(path_of(file), "we");
	check(memory != NULL);
	check_eq(fwrite(&header, sizeof(header), 1, memory), 1);
	check_eq(fclose(memory), 0);
	check_eq(truncate(path_of(file), size), 0);
}

TEST(a_machine_without_sys_is_named)
{
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "No such file", "mount -t sysfs");
	doctor_deinit(&doctor);
}

TEST(a_machine_without_a_device_is_named)
{
	put_device(ONE, "0x8086\n", "0x1110\n");
	put_device(OTHER, "0x1af4\n", "0x1000\n");
	look();
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_FAIL, "no vGPU device", "attach");
	check(doctor.has_no_device);
	doctor_deinit(&doctor);
}

TEST(a_device_of_the_driver_is_found)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	check_eq(symlink("../../../../bus/pci/drivers/vgpu", path_of(ONE "/driver")), 0);
	look();
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_OK, "0000:00:05.0, of the kernel's driver vgpu",
		NULL);
	check(!doctor.has_no_device);
	doctor_deinit(&doctor);
}

TEST(a_device_with_our_memory_is_found)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	put_memory(ONE, VGPU_SHM_MAGIC, VGPU_SHM_SIZE_MIN);
	look();
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_OK, "by sysfs", NULL);
	doctor_deinit(&doctor);
}

TEST(a_foreign_device_is_named_and_ours_beside_it_found)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	put_memory(ONE, 0x1234, VGPU_SHM_SIZE_MIN);
	look();
	check_eq(doctor.found.n, 2);
	check_last(&doctor, VGPU_FINDING_FAIL, "but others of that kind", "attach");
	doctor_deinit(&doctor);

	put_device(OTHER, "0x1af4\n", "0x1110\n");
	put_memory(OTHER, VGPU_SHM_MAGIC, VGPU_SHM_SIZE_MIN);
	look();
	check_eq(doctor.found.n, 2);
	check_eq(doctor.found.worst, VGPU_FINDING_WARN);
	doctor_deinit(&doctor);
}

TEST(memory_that_is_too_small_is_foreign)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	put_memory(ONE, VGPU_SHM_MAGIC, 4096);
	look();
	check_eq(doctor.found.list[0].level, VGPU_FINDING_WARN);
	check(strstr(doctor.found.list[0].text, "another use"));
	doctor_deinit(&doctor);
}

TEST(a_device_that_another_driver_has_is_named)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	check_eq(symlink("/bus/pci/drivers/vfio-pci", path_of(ONE "/driver")), 0);
	look();
	check_eq(doctor.found.n, 2);
	check_eq(doctor.found.list[0].level, VGPU_FINDING_WARN);
	check(strstr(doctor.found.list[0].text, "vfio-pci"));
	check(strstr(doctor.found.list[0].advice, "unbind"));
	check(doctor.has_no_device);
	doctor_deinit(&doctor);
}

TEST(a_device_that_is_not_enabled_is_named)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	put_memory(ONE, UINT64_MAX, VGPU_SHM_SIZE_MIN);
	put(ONE "/enable", "0\n");
	look();
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_WARN, "not enabled", "udev rule");
	doctor_deinit(&doctor);
}

TEST(a_device_whose_memory_cannot_be_read_may_be_ours)
{
	put_device(ONE, "0x1af4\n", "0x1110\n");
	look();
	check_eq(doctor.found.n, 1);
	check_last(&doctor, VGPU_FINDING_OK, "cannot be read", NULL);
	doctor_deinit(&doctor);
}
