/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doctor: whether a host has what vgpud and its virtual machines need
 *
 * It looks and changes nothing. What the kernel tells is read from its files below a root
 * that tests replace.
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctl/doctor.h"
#include "vgpu/cleanup.h"
#include "vgpu/root.h"
#include "vgpud/cgroup.h"

/* Free memory below which a worker's start may fail. */
#define MEMORY_MIN_KIB (1u << 20)
/* Descriptors of vgpud: for each machine, and for all. */
#define FILES_EACH 256u
#define FILES_ALL 256u
/* Of the kernel's files. */
#define TEXT_MAX (1u << 16)

/*
 * The kernel
 */

void doctor_look_at_kvm(struct doctor *doctor)
{
	const int r = vgpu_root_access(doctor->root, "/dev/kvm", R_OK | W_OK);

	if (!r)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "kvm", NULL,
			"/dev/kvm is there");
	else if (r == -EACCES)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "kvm", NULL,
			"/dev/kvm is there, for other users");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "kvm",
			"enable virtualisation in the firmware and load kvm_intel or "
			"kvm_amd; without it QEMU emulates the processor",
			"/dev/kvm: %s", strerror(-r));
}

void doctor_look_at_io_uring(struct doctor *doctor)
{
	static const char advice[] =
		"set the sysctl kernel.io_uring_disabled to 0, or let the container's "
		"seccomp filter pass io_uring";
	struct io_uring_params params = { 0 };
	char line[256];
	long fd;

	vgpu_root_read_line(doctor->root, "/proc/sys/kernel/io_uring_disabled", line);
	if (*line == '2') {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "io_uring", advice,
			"kernel.io_uring_disabled is 2: vgpud cannot run");
		return;
	}
	if (*line == '1') {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "io_uring", advice,
			"kernel.io_uring_disabled is 1: vgpud has to be root");
		return;
	}
	fd = syscall(SYS_io_uring_setup, 1, &params);
	if (fd >= 0) {
		close((int)fd);
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "io_uring", NULL,
			"it can be set up");
		return;
	}
	vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "io_uring", advice,
		"it cannot be set up: %s", strerror(errno));
}

/*
 * The driver
 */

/* Where kernels can reach all memory of a worker's process. */
static void look_at_hmm(struct doctor *doctor)
{
	char line[256];

	if (vgpu_root_read_line(doctor->root,
		    "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", line) &&
		*line == 'N')
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "driver",
			"load nvidia_uvm with uvm_disable_hmm=1",
			"kernels of a guest can reach all memory of its worker (HMM)");
}

void doctor_look_at_driver(struct doctor *doctor)
{
	const char *choice = doctor->config ? doctor->config->driver : "auto";
	char line[256];

	if (!strcmp(choice, "soft") || !strcmp(choice, "null")) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "driver", NULL,
			"driver = %s", choice);
		return;
	}
	if (!vgpu_root_read_line(doctor->root, "/proc/driver/nvidia/version", line)) {
		vgpu_findings_add(&doctor->found,
			strcmp(choice, "auto") ? VGPU_FINDING_FAIL : VGPU_FINDING_OK,
			"driver",
			strcmp(choice, "auto")
				? "install NVIDIA's driver, or set driver = auto"
				: NULL,
			"NVIDIA's kernel driver is not loaded%s",
			strcmp(choice, "auto") ? "" : ": softgpu serves");
		return;
	}
	if (vgpu_root_access(doctor->root, "/dev/nvidiactl", F_OK) ||
		vgpu_root_access(doctor->root, "/dev/nvidia-uvm", F_OK))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "driver",
			"start nvidia-persistenced, or run nvidia-modprobe -c0 -u",
			"the device files of NVIDIA's driver are missing");
	else
		vgpu_findings_add(
			&doctor->found, VGPU_FINDING_OK, "driver", NULL, "%s", line);
	look_at_hmm(doctor);
}

/*
 * Memory
 */

/* Return: a number of /proc/meminfo; 0: it is not there. */
static uint64_t read_memory(const struct doctor *doctor, const char *key)
{
	FILE *file = vgpu_root_open(doctor->root, "/proc/meminfo");
	char line[256];
	uint64_t value = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtoull(line + strlen(key) + 1, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

void doctor_look_at_memory(struct doctor *doctor)
{
	const uint64_t free_kib = read_memory(doctor, "MemAvailable");
	const uint64_t total = read_memory(doctor, "MemTotal") << 10;
	const struct config_vm *vm;
	uint64_t limits = 0;

	if (free_kib < MEMORY_MIN_KIB)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "memory",
			"end other programs, or lower host-memory of the machines",
			"%" PRIu64 " MiB are available: workers may find too little",
			free_kib >> 10);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "memory", NULL,
			"%" PRIu64 " MiB are available", free_kib >> 10);
	if (!doctor->config)
		return;
	TAILQ_FOREACH(vm, &doctor->config->vms, entry)
		limits += vm->host_memory;
	if (limits > total)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "memory",
			"lower host-memory of some machines",
			"all limits host-memory together are %" PRIu64
			" MiB, the host has %" PRIu64 " MiB",
			limits >> 20, total >> 20);
}

/* Return: the beginning of a file, to be freed, or NULL. */
static char *read_text(const struct doctor *doctor, const char *path)
{
	FILE *file = vgpu_root_open(doctor->root, path);
	char *text = file ? calloc(1, TEXT_MAX) : NULL;

	if (text)
		text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
	if (file)
		fclose(file);
	return text;
}

/* Whether vgpud has divided its control group (vgpud/cgroup.h) so that groups of machines
 * can limit memory. */
static bool has_divided(const struct doctor *doctor)
{
	char path[64], group[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 32];
	_vgpu_cleanup_(vgpu_freep) char *groups = NULL, *mounts = NULL, *enabled = NULL;
	char *last;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", doctor->pid);
	groups = read_text(doctor, path);
	mounts = read_text(doctor, "/proc/self/mountinfo");
	if (!groups || !mounts || !cgroup_find(groups, mounts, group))
		return false;
	last = strrchr(group, '/');
	if (!last || strcmp(last + 1, CGROUP_MAIN))
		return false;
	*last = '\0';
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", group);
	enabled = read_text(doctor, file);
	return enabled && cgroup_has_word(enabled, "memory");
}

void doctor_look_at_groups(struct doctor *doctor)
{
	if (!doctor->pid)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "control-groups",
			"start vgpud and ask again",
			"the control group of vgpud is not known");
	else if (has_divided(doctor))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "control-groups", NULL,
			"each machine has one, which limits its memory");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "control-groups",
			"start vgpud by its unit; see host-memory in vgpud(8)",
			"host-memory is limited by measurements only");
}

static uint64_t sum_sizes(const struct config *config, enum config_hugepages hugepages)
{
	const struct config_vm *vm;
	uint64_t size = 0;

	if (!config)
		return 0;
	TAILQ_FOREACH(vm, &config->vms, entry)
		if (vm->hugepages == hugepages)
			size += vm->size;
	return size;
}

void doctor_look_at_hugepages(struct doctor *doctor)
{
	const uint64_t reserved = sum_sizes(doctor->config, CONFIG_HUGEPAGES_HUGETLB);
	const uint64_t transparent =
		sum_sizes(doctor->config, CONFIG_HUGEPAGES_TRANSPARENT);
	char pages[256], enabled[256];
	uint64_t size;

	vgpu_root_read_line(doctor->root,
		"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", pages);
	vgpu_root_read_line(doctor->root,
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled", enabled);
	size = strtoull(pages, NULL, 10) << 21;
	if (reserved > size)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "hugepages",
			"raise the sysctl vm.nr_hugepages",
			"machines with hugepages = hugetlb take %" PRIu64 " MiB, %" PRIu64
			" MiB are reserved",
			reserved >> 20, size >> 20);
	else if (transparent && strstr(enabled, "[never]"))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "hugepages",
			"write advise to "
			"/sys/kernel/mm/transparent_hugepage/shmem_enabled",
			"the kernel makes no huge pages of shared memory");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "hugepages", NULL,
			"%" PRIu64 " MiB are reserved, %" PRIu64 " MiB needed",
			size >> 20, reserved >> 20);
}

/*
 * Limits and programs
 */

/* Return: the limit of open files of a process; 0: unknown. */
static unsigned long read_files(const struct doctor *doctor, unsigned int pid)
{
	char path[64], line[256];
	unsigned long limit = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/limits", pid);
	file = vgpu_root_open(doctor->root, path);
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Max open files %lu", &limit) == 1)
			break;
	if (file)
		fclose(file);
	return limit;
}

void doctor_look_at_files(struct doctor *doctor)
{
	const unsigned long limit = doctor->pid ? read_files(doctor, doctor->pid) : 0;
	const unsigned int n = doctor->config ? doctor->config->n_vms : 1;
	const unsigned long wanted = FILES_ALL + FILES_EACH * n;

	if (!limit)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "files",
			"start vgpud and ask again", "the limit of vgpud is not known");
	else if (limit < wanted)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "files",
			"raise LimitNOFILE= of vgpud.service, or ulimit -n",
			"vgpud may have %lu open files, its %u machines want %lu", limit,
			n, wanted);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "files", NULL,
			"vgpud may have %lu open files", limit);
}

/* Runs a program of the PATH. Return: the first version in its output; 0: none. */
static unsigned int ask_version(const char *command, unsigned int *minorp)
{
	FILE *output = popen(command, "re");
	unsigned int major = 0;
	char line[256];
	const char *at;

	while (output && fgets(line, sizeof(line), output)) {
		at = line + strcspn(line, "0123456789");
		if (!major && sscanf(at, "%u.%u", &major, minorp) != 2)
			major = 0;
	}
	if (output)
		pclose(output);
	return major;
}

static void look_at_program(struct doctor *doctor, const char *subject,
	const char *command, unsigned int least, bool is_needed)
{
	unsigned int major, minor = 0;

	major = ask_version(command, &minor);
	if (!major && is_needed)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, subject,
			"install it; without it there are only machines that others run",
			"it is not in the PATH");
	else if (!major)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, subject, NULL,
			"it is not in the PATH");
	else if (major < least)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, subject,
			"upgrade it", "version %u.%u; nothing before %u was tried", major,
			minor, least);
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, subject, NULL,
			"version %u.%u", major, minor);
}

void doctor_look_at_programs(struct doctor *doctor)
{
	look_at_program(
		doctor, "qemu", "qemu-system-x86_64 --version 2>/dev/null", 7, true);
	look_at_program(doctor, "libvirt", "virsh --version 2>/dev/null", 9, false);
}
