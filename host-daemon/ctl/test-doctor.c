/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about a host: each failure is provoked, in files of a root of the test
 */

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor.h"
#include "test.h"

static struct doctor doctor;
static struct config *config;

static void start(const char *text)
{
	char *error;

	doctor = (struct doctor){ .root = test_tmpdir(), .pid = 7 };
	if (!text)
		return;
	check_eq(config_new_from_text(&config, "text", text, &error), 0);
	doctor.config = config;
}

static void stop(void)
{
	vgpu_findings_deinit(&doctor.found);
	config_free(config);
	config = NULL;
}

/* Makes a file with its folders below the root. */
static void put(const char *path, const char *text)
{
	char whole[512];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", test_tmpdir(), path);
	for (char *c = whole + strlen(test_tmpdir()) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(whole, 0700);
		*c = '/';
	}
	file = fopen(whole, "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
}

/* The last look has one finding, which has that level, text and, if not ok, an advice. */
static void check_finding(void (*look)(struct doctor *doctor),
	enum vgpu_finding_level level, const char *text)
{
	const size_t n = doctor.found.n;

	look(&doctor);
	check_eq(doctor.found.n, n + 1);
	if (!strstr(doctor.found.list[n].text, text))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"",
			doctor.found.list[n].text, text);
	check_eq(doctor.found.list[n].level, level);
	check((level == VGPU_FINDING_OK) == !doctor.found.list[n].advice);
}

TEST(a_host_without_kvm_is_slow)
{
	start(NULL);
	check_finding(doctor_look_at_kvm, VGPU_FINDING_WARN, "No such file");
	put("/dev/kvm", "");
	check_finding(doctor_look_at_kvm, VGPU_FINDING_OK, "is there");
	check_eq(doctor.found.worst, VGPU_FINDING_WARN);
	stop();
}

TEST(a_kernel_that_disables_io_uring_is_named)
{
	start(NULL);
	put("/proc/sys/kernel/io_uring_disabled", "2\n");
	check_finding(doctor_look_at_io_uring, VGPU_FINDING_FAIL, "is 2");
	put("/proc/sys/kernel/io_uring_disabled", "1\n");
	check_finding(doctor_look_at_io_uring, VGPU_FINDING_WARN, "is 1");
	stop();
}

TEST(a_filter_that_refuses_io_uring_is_found)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	start(NULL);
	check(filter != NULL);
	check_eq(seccomp_rule_add(
			 filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(io_uring_setup), 0),
		0);
	check_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
	check_finding(doctor_look_at_io_uring, VGPU_FINDING_FAIL, "not permitted");
	stop();
}

TEST(a_driver_that_is_required_has_to_be_loaded)
{
	start("[vgpud]\ndriver = nvidia\n[vm a]\nsocket = /a\n");
	check_finding(doctor_look_at_driver, VGPU_FINDING_FAIL, "not loaded");
	stop();
	start("[vgpud]\ndriver = auto\n[vm a]\nsocket = /a\n");
	check_finding(doctor_look_at_driver, VGPU_FINDING_OK, "softgpu serves");
	stop();
	start("[vgpud]\ndriver = soft\n[vm a]\nsocket = /a\n");
	check_finding(doctor_look_at_driver, VGPU_FINDING_OK, "driver = soft");
	stop();
}

TEST(a_driver_has_device_files)
{
	start(NULL);
	put("/proc/driver/nvidia/version", "NVRM version: x\n");
	check_finding(doctor_look_at_driver, VGPU_FINDING_FAIL, "device files");
	put("/dev/nvidiactl", "");
	check_finding(doctor_look_at_driver, VGPU_FINDING_FAIL, "device files");
	put("/dev/nvidia-uvm", "");
	check_finding(doctor_look_at_driver, VGPU_FINDING_OK, "NVRM version: x");
	stop();
}

TEST(a_driver_that_opens_all_memory_to_kernels_is_named)
{
	start(NULL);
	put("/proc/driver/nvidia/version", "NVRM version: x\n");
	put("/dev/nvidiactl", "");
	put("/dev/nvidia-uvm", "");
	put("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n");
	check_finding(doctor_look_at_driver, VGPU_FINDING_OK, "NVRM");
	put("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n");
	doctor_look_at_driver(&doctor);
	check_eq(doctor.found.n, 3);
	check_eq(doctor.found.list[2].level, VGPU_FINDING_WARN);
	check(strstr(doctor.found.list[2].advice, "uvm_disable_hmm=1"));
	stop();
}

TEST(a_host_with_little_memory_is_named)
{
	start("[vm a]\nsocket = /a\n");
	put("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1048575 kB\n");
	check_finding(doctor_look_at_memory, VGPU_FINDING_WARN, "1023 MiB");
	put("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1048576 kB\n");
	check_finding(doctor_look_at_memory, VGPU_FINDING_OK, "1024 MiB");
	stop();
}

TEST(limits_that_exceed_the_memory_together_are_named)
{
	start("[vm a]\nsocket = /a\nhost-memory = 5G\n"
	      "[vm b]\nsocket = /b\nhost-memory = 4G\n");
	put("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 8388608 kB\n");
	doctor_look_at_memory(&doctor);
	check_eq(doctor.found.n, 2);
	check_eq(doctor.found.list[1].level, VGPU_FINDING_WARN);
	check(strstr(doctor.found.list[1].text, "9216 MiB, the host has 8192 MiB"));
	stop();
}

TEST(machines_without_control_groups_are_named)
{
	start(NULL);
	check_finding(doctor_look_at_groups, VGPU_FINDING_WARN, "measurements only");
	put("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	put("/proc/7/cgroup", "0::/a/vgpud.service\n");
	put("/cg/a/vgpud.service/cgroup.subtree_control", "cpu memory\n");
	check_finding(doctor_look_at_groups, VGPU_FINDING_WARN, "measurements only");
	put("/proc/7/cgroup", "0::/a/vgpud.service/vgpud-main\n");
	check_finding(doctor_look_at_groups, VGPU_FINDING_OK, "limits its memory");
	put("/cg/a/vgpud.service/cgroup.subtree_control", "cpu\n");
	check_finding(doctor_look_at_groups, VGPU_FINDING_WARN, "measurements only");
	put("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup cgroup rw,cpu\n");
	check_finding(doctor_look_at_groups, VGPU_FINDING_WARN, "measurements only");
	doctor.pid = 0;
	check_finding(doctor_look_at_groups, VGPU_FINDING_WARN, "not known");
	stop();
}

TEST(huge_pages_have_to_be_reserved)
{
	start("[vm a]\nsocket = /a\nsize = 2G\nhugepages = hugetlb\n");
	check_finding(doctor_look_at_hugepages, VGPU_FINDING_FAIL, "2048 MiB, 0 MiB");
	put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1023\n");
	check_finding(doctor_look_at_hugepages, VGPU_FINDING_FAIL, "2046 MiB");
	put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1024\n");
	check_finding(doctor_look_at_hugepages, VGPU_FINDING_OK, "2048 MiB");
	stop();
}

TEST(transparent_huge_pages_have_to_be_enabled)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

	start("[vm a]\nsocket = /a\nhugepages = transparent\n");
	put(path, "always within_size advise [never] deny force\n");
	check_finding(doctor_look_at_hugepages, VGPU_FINDING_WARN, "no huge pages");
	put(path, "always within_size [advise] never deny force\n");
	check_finding(doctor_look_at_hugepages, VGPU_FINDING_OK, "MiB");
	stop();
}

TEST(few_open_files_are_named)
{
	start("[vm a]\nsocket = /a\n[vm b]\nsocket = /b\n");
	check_finding(doctor_look_at_files, VGPU_FINDING_WARN, "not known");
	put("/proc/7/limits", "Max open files            767       767     files\n");
	check_finding(doctor_look_at_files, VGPU_FINDING_WARN, "767");
	put("/proc/7/limits", "Max open files            768       768     files\n");
	check_finding(doctor_look_at_files, VGPU_FINDING_OK, "768");
	doctor.pid = 0;
	check_finding(doctor_look_at_files, VGPU_FINDING_WARN, "not known");
	stop();
}

/* Puts a program into the PATH, which has no other. */
static void put_program(const char *name, const char *output)
{
	char path[512], text[512];

	snprintf(path, sizeof(path), "/bin/%s", name);
	snprintf(text, sizeof(text), "#!/bin/sh\necho '%s'\n", output);
	put(path, text);
	snprintf(path, sizeof(path), "%s/bin/%s", test_tmpdir(), name);
	check_eq(chmod(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/bin", test_tmpdir());
	check_eq(setenv("PATH", path, 1), 0);
}

TEST(programs_that_are_old_or_missing_are_named)
{
	start(NULL);
	put_program("other", "");
	doctor_look_at_programs(&doctor);
	check_eq(doctor.found.n, 2);
	check_eq(doctor.found.list[0].level, VGPU_FINDING_WARN);
	check_eq(doctor.found.list[1].level, VGPU_FINDING_OK);
	put_program("qemu-system-x86_64", "QEMU emulator version 6.2.0 (x)");
	put_program("virsh", "8.0.0");
	doctor_look_at_programs(&doctor);
	check_eq(doctor.found.list[2].level, VGPU_FINDING_WARN);
	check_str(doctor.found.list[2].text, "version 6.2; nothing before 7 was tried");
	check_eq(doctor.found.list[3].level, VGPU_FINDING_WARN);
	put_program("qemu-system-x86_64", "QEMU emulator version 10.1.0 (x)");
	put_program("virsh", "9.0.0");
	doctor_look_at_programs(&doctor);
	check_eq(doctor.found.list[4].level, VGPU_FINDING_OK);
	check_str(doctor.found.list[4].text, "version 10.1");
	check_eq(doctor.found.list[5].level, VGPU_FINDING_OK);
	stop();
}
