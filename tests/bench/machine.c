/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own description
 */

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"

/* Makes of a line what needs no escapes in JSON. */
static void clean(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	for (char *c = line; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = ' ';
}

/* The first line of a file, "unknown" if there is none. */
static void read_line(char *buffer, size_t size, const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(buffer, size, file))
		snprintf(buffer, size, "unknown");
	clean(buffer);
	if (file)
		fclose(file);
}

/* The processor's name as reported by the kernel. */
static void read_cpu(char *buffer, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256], *start;

	snprintf(buffer, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		start = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !start)
			continue;
		clean(line);
		snprintf(buffer, size, "%s", start + 1 + strspn(start + 1, " "));
		break;
	}
	if (file)
		fclose(file);
}

void bench_print_machine(FILE *file, const struct bench_machine *machine)
{
	char cpu[128], thp[64], shared_thp[96], governor[64];
	struct utsname name;

	read_cpu(cpu, sizeof(cpu));
	read_line(thp, sizeof(thp), "/sys/kernel/mm/transparent_hugepage/enabled");
	read_line(shared_thp, sizeof(shared_thp),
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled");
	read_line(governor, sizeof(governor),
		"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	uname(&name);
	fprintf(file,
		"\"cpu\": \"%s\", \"cpus\": %ld, \"kernel\": \"%s\", \"memory\": %llu, "
		"\"load_before\": %.2f, \"load_after\": %.2f, \"thp\": \"%s\", "
		"\"thp_shared\": \"%s\", \"governor\": \"%s\", ",
		cpu, sysconf(_SC_NPROCESSORS_ONLN), name.release,
		(unsigned long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
		machine->load_before, machine->load_after, thp, shared_thp, governor);
}
