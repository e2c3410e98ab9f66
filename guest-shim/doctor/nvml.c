/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML: whether libnvidia-ml.so.1 answers
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/nvml.h"

#include "doctor/child.h"

/* clang-format off */
#define FUNCTIONS(_f)                                                                    \
	_f(nvmlInit_v2)                                                                  \
	_f(nvmlShutdown)                                                                 \
	_f(nvmlErrorString)                                                              \
	_f(nvmlSystemGetDriverVersion)                                                   \
	_f(nvmlDeviceGetCount_v2)                                                        \
	_f(nvmlDeviceGetHandleByIndex_v2)                                                \
	_f(nvmlDeviceGetName)                                                            \
	_f(nvmlDeviceGetMemoryInfo)
/* clang-format on */

static struct {
#define MEMBER(_name) __typeof__(&_name) _name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} nvml;

static struct child child;

/* Calls a function of the library. The value: whether it succeeded. */
#define CALL(_name, ...)                                                                 \
	(child_step(&child, #_name), check(#_name, nvml._name(__VA_ARGS__)))

static bool check(const char *function, nvmlReturn_t result)
{
	return child_check(&child, function, (int)result,
		result ? nvml.nvmlErrorString(result) : NULL);
}

static bool find_functions(void)
{
#define FIND(_name)                                                                      \
	nvml._name = (__typeof__(nvml._name))child_find(&child, #_name);                 \
	if (!nvml._name)                                                                 \
		return false;
	FUNCTIONS(FIND)
#undef FIND
	return true;
}

static bool call_device(void)
{
	nvmlDevice_t device;
	nvmlMemory_t memory;
	char name[96] = "";

	if (!CALL(nvmlDeviceGetHandleByIndex_v2, 0, &device) ||
		!CALL(nvmlDeviceGetName, device, name, sizeof(name)) ||
		!CALL(nvmlDeviceGetMemoryInfo, device, &memory))
		return false;
	dprintf(child.out, "name %s\nused %llu\ntotal %llu\n", name,
		(unsigned long long)memory.used >> 20,
		(unsigned long long)memory.total >> 20);
	return true;
}

static void call_all(int out, const void *data)
{
	unsigned int n = 0;
	char version[96] = "";

	if (!child_load(&child, out, "libnvidia-ml.so.1") || !find_functions() ||
		!CALL(nvmlInit_v2) ||
		!CALL(nvmlSystemGetDriverVersion, version, sizeof(version)) ||
		!CALL(nvmlDeviceGetCount_v2, &n))
		return;
	dprintf(out, "version %s\ncount %u\n", version, n);
	if ((n && !call_device()) || !CALL(nvmlShutdown))
		return;
	child_step(&child, "done");
}

static void tell(struct doctor *doctor, const struct probe *probe)
{
	char version[CHILD_FIELD_SIZE], count[32], name[CHILD_FIELD_SIZE], used[32],
		total[32];

	probe_get(probe, "version", version, sizeof(version));
	probe_get(probe, "count", count, sizeof(count));
	if (!probe_get(probe, "name", name, sizeof(name))) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "nvml",
			"see the log of vgpud on the host", "NVML knows no device");
		return;
	}
	probe_get(probe, "used", used, sizeof(used));
	probe_get(probe, "total", total, sizeof(total));
	vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "nvml", NULL,
		"driver %s, %s device%s, the first is %s with %s of %s MiB in use",
		version, count, strcmp(count, "1") ? "s" : "", name, used, total);
}

void doctor_look_at_nvml(struct doctor *doctor)
{
	struct probe probe;

	if (doctor->is_ours && !doctor->is_reached) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "nvml",
			"correct what fails above",
			"not tried: there is no way to a host that answers");
		return;
	}
	if (child_run(doctor, &probe, "nvml", call_all))
		tell(doctor, &probe);
	probe_deinit(&probe);
}
