/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to the host, by a /sys and a /dev of the test
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/test-files.h"
#include "vgpu/hello.h"

#define DEVICE "/sys/bus/pci/devices/0000:00:05.0"

static struct doctor doctor;

static void look(void)
{
	doctor_init(&doctor, test_tmpdir());
	unsetenv(VGPU_SOCKET_ENV);
	doctor_look_at_way(&doctor);
}

/* A device with a header of that version of the protocol. Return: its memory. */
static struct vgpu_shm_header *put_device(uint32_t version)
{
	struct vgpu_shm_header *header;
	int fd;

	put(DEVICE "/vendor", "0x1af4\n");
	put(DEVICE "/device", "0x1110\n");
	put(DEVICE "/resource2", "");
	fd = open(path_of(DEVICE "/resource2"), O_RDWR | O_CLOEXEC);
	check(fd >= 0);
	check_eq(ftruncate(fd, VGPU_SHM_SIZE_MIN), 0);
	header = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(header != MAP_FAILED);
	close(fd);
	*header = (struct vgpu_shm_header){
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = version,
		.n_channels = 1,
		.shm_size = VGPU_SHM_SIZE_MIN,
	};
	return header;
}

TEST(a_host_that_is_alive_is_found)
{
	struct vgpu_shm_header *header = put_device(VGPU_PROTOCOL_VERSION);
	const pid_t host = fork();

	if (!host)
		for (;;) {
			__atomic_add_fetch(&header->heartbeat, 1, __ATOMIC_RELAXED);
			usleep(1000);
		}
	check(host > 0);
	look();
	kill(host, SIGKILL);
	waitpid(host, NULL, 0);
	check_last(&doctor, VGPU_FINDING_OK, "alive", NULL);
	check_eq(doctor.found.worst, VGPU_FINDING_OK);
	check_str(doctor.transport, "sysfs");
	check(doctor.is_reached);
	doctor_deinit(&doctor);
}

TEST(a_host_whose_heartbeat_stands_still_is_named)
{
	put_device(VGPU_PROTOCOL_VERSION);
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "heartbeat", "log of vgpud");
	check(!doctor.is_reached);
	doctor_deinit(&doctor);
}

TEST(a_host_of_another_version_is_named)
{
	put_device(VGPU_PROTOCOL_VERSION + 1);
	look();
	check_eq(doctor.found.n, 1);
	check_str(doctor.found.list[0].subject, "version");
	check_last(&doctor, VGPU_FINDING_FAIL, "this vgpu-doctor version",
		"guest package of the host's release");
	doctor_deinit(&doctor);
}

TEST(memory_without_a_host_is_named)
{
	put_device(VGPU_PROTOCOL_VERSION)->magic = 0;
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "no vgpud is behind", "start vgpud");
	doctor_deinit(&doctor);
}

TEST(a_missing_device_is_said_once)
{
	put("/sys/bus/pci/devices/x/vendor", "0x8086\n");
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "no vGPU device", "attach");
	doctor_deinit(&doctor);
	doctor_init(&doctor, test_tmpdir());
	doctor_look_at_devices(&doctor);
	doctor_look_at_way(&doctor);
	check_eq(doctor.found.n, 1);
	doctor_deinit(&doctor);
}

TEST(a_file_that_is_not_of_the_driver_is_named)
{
	test_skip_emulated("fails other files' ioctls with other errors than ENOTTY");
	put("/dev/vgpu0", "");
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "is of another release",
		"load the driver again");
	doctor_deinit(&doctor);
}

/* As a user who is nobody, where the tests are root's. */
static void become_nobody(void)
{
	if (geteuid())
		return;
	check_eq(chmod(test_tmpdir(), 0755), 0);
	check_eq(setgroups(0, NULL), 0);
	check_eq(seteuid(65534), 0);
}

TEST(a_device_of_others_is_named)
{
	put_device(VGPU_PROTOCOL_VERSION);
	check_eq(chmod(path_of(DEVICE "/resource2"), 0), 0);
	become_nobody();
	look();
	check_last(
		&doctor, VGPU_FINDING_FAIL, "this user may not open", "usermod -aG vgpu");
	doctor_deinit(&doctor);
	check(geteuid() != 65534 || !seteuid(0));
}

TEST(a_device_file_of_others_is_named)
{
	put("/dev/vgpu0", "");
	check_eq(chmod(path_of("/dev/vgpu0"), 0), 0);
	become_nobody();
	look();
	check_last(
		&doctor, VGPU_FINDING_FAIL, "this user may not open", "usermod -aG vgpu");
	doctor_deinit(&doctor);
	check(geteuid() != 65534 || !seteuid(0));
}

TEST(a_sys_that_is_read_only_is_named)
{
	const char *sys;

	put_device(VGPU_PROTOCOL_VERSION);
	if (unshare(CLONE_NEWNS))
		test_skip("no mount namespace: %s", strerror(errno));
	sys = path_of("/sys");
	check_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	check_eq(mount(sys, sys, NULL, MS_BIND, NULL), 0);
	check_eq(mount(NULL, sys, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	look();
	check_last(&doctor, VGPU_FINDING_FAIL, "/sys is read-only here", "docker run -v");
	doctor_deinit(&doctor);
	check_eq(umount(path_of("/sys")), 0);
}

TEST(a_socket_that_is_missing_or_unserved_is_named)
{
	doctor_init(&doctor, test_tmpdir());
	setenv(VGPU_SOCKET_ENV, path_of("/none"), 1);
	doctor_look_at_way(&doctor);
	check_last(&doctor, VGPU_FINDING_FAIL, "there is no socket", "start vgpud");
	doctor_deinit(&doctor);
}
