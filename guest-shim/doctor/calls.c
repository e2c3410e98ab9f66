/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: a round trip to the host, and a kernel whose result is checked
 *
 * The kernel gives thread i the value a * x[i] + i, by two registers and one load and
 * store of memory that was copied there and back.
 */

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vgpu/cuda.h"
#include "vgpu/note.h"

#include "doctor/child.h"

#define N_VALUES 1000u
#define N_THREADS 128u
#define FACTOR 7u

static const char ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry scale(.param .u64 values, .param .u32 n,\n"
			  "	.param .u32 factor)\n"
			  "{\n"
			  "	.reg .pred %out;\n"
			  "	.reg .b32 %i, %n, %block, %size, %a, %x;\n"
			  "	.reg .b64 %base, %off;\n"
			  "	mov.u32 %block, %ctaid.x;\n"
			  "	mov.u32 %size, %ntid.x;\n"
			  "	mov.u32 %i, %tid.x;\n"
			  "	mad.lo.u32 %i, %block, %size, %i;\n"
			  "	ld.param.u32 %n, [n];\n"
			  "	setp.ge.u32 %out, %i, %n;\n"
			  "	@%out bra END;\n"
			  "	ld.param.u64 %base, [values];\n"
			  "	cvta.to.global.u64 %base, %base;\n"
			  "	mul.wide.u32 %off, %i, 4;\n"
			  "	add.u64 %base, %base, %off;\n"
			  "	ld.param.u32 %a, [factor];\n"
			  "	ld.global.u32 %x, [%base];\n"
			  "	mad.lo.u32 %x, %a, %x, %i;\n"
			  "	st.global.u32 [%base], %x;\n"
			  "END:\n"
			  "	ret;\n"
			  "}\n";

/* clang-format off */
#define FUNCTIONS(_f)                                                                    \
	_f(cuInit)                                                                       \
	_f(cuDriverGetVersion)                                                           \
	_f(cuGetErrorName)                                                               \
	_f(cuDeviceGetCount)                                                             \
	_f(cuDeviceGet)                                                                  \
	_f(cuDeviceGetName)                                                              \
	_f(cuDevicePrimaryCtxRetain)                                                     \
	_f(cuDevicePrimaryCtxRelease_v2)                                                 \
	_f(cuCtxSetCurrent)                                                              \
	_f(cuCtxSynchronize)                                                             \
	_f(cuMemGetInfo_v2)                                                              \
	_f(cuMemAlloc_v2)                                                                \
	_f(cuMemFree_v2)                                                                 \
	_f(cuMemcpyHtoD_v2)                                                              \
	_f(cuMemcpyDtoH_v2)                                                              \
	_f(cuModuleLoadData)                                                             \
	_f(cuModuleGetFunction)                                                          \
	_f(cuModuleUnload)                                                               \
	_f(cuLaunchKernel)
/* clang-format on */

static struct {
#define MEMBER(_name) __typeof__(&_name) _name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

static struct child child;

/* Calls a function of the driver. The value: whether it succeeded. */
#define CALL(_name, ...)                                                                 \
	(child_step(&child, #_name), check(#_name, driver._name(__VA_ARGS__)))

static bool check(const char *function, CUresult result)
{
	const char *name = NULL;

	if (result)
		driver.cuGetErrorName(result, &name);
	return child_check(&child, function, result, name);
}

static bool find_functions(void)
{
#define FIND(_name)                                                                      \
	driver._name = (__typeof__(driver._name))child_find(&child, #_name);             \
	if (!driver._name)                                                               \
		return false;
	FUNCTIONS(FIND)
#undef FIND
	return true;
}

/* A library that is loaded into every program may have these functions, too. */
static void find_interposer(int out)
{
	void *function = dlsym(RTLD_DEFAULT, "cuInit");
	Dl_info info;

	if (function && dladdr(function, &info) && info.dli_fname)
		dprintf(out, "interposer %s\n", info.dli_fname);
}

static bool find_wrong(const uint32_t *values)
{
	for (uint32_t i = 0; i < N_VALUES; i++)
		if (values[i] != FACTOR * (i ^ 0x55u) + i) {
			dprintf(child.out, "wrong %u %u %u\n", i, values[i],
				FACTOR * (i ^ 0x55u) + i);
			return true;
		}
	return false;
}

static bool run_kernel(CUdeviceptr memory, CUmodule module)
{
	uint32_t values[N_VALUES], n = N_VALUES, factor = FACTOR;
	void *arguments[] = { &memory, &n, &factor };
	CUfunction function;

	for (uint32_t i = 0; i < N_VALUES; i++)
		values[i] = i ^ 0x55u;
	if (!CALL(cuModuleGetFunction, &function, module, "scale") ||
		!CALL(cuMemcpyHtoD_v2, memory, values, sizeof(values)) ||
		!CALL(cuLaunchKernel, function, (N_VALUES + N_THREADS - 1) / N_THREADS, 1,
			1, N_THREADS, 1, 1, 0, NULL, arguments, NULL) ||
		!CALL(cuCtxSynchronize))
		return false;
	memset(values, 0, sizeof(values));
	if (!CALL(cuMemcpyDtoH_v2, values, memory, sizeof(values)))
		return false;
	if (!find_wrong(values))
		dprintf(child.out, "right %u\n", N_VALUES);
	return true;
}

static bool compute(void)
{
	CUdeviceptr memory;
	CUmodule module;

	return CALL(cuMemAlloc_v2, &memory, N_VALUES * sizeof(uint32_t)) &&
	       CALL(cuModuleLoadData, &module, ptx) && run_kernel(memory, module) &&
	       CALL(cuModuleUnload, module) && CALL(cuMemFree_v2, memory);
}

static bool call_device(void)
{
	size_t free_size, total;
	char name[256] = "";
	CUcontext context;
	CUdevice device;

	if (!CALL(cuDeviceGet, &device, 0) ||
		!CALL(cuDeviceGetName, name, sizeof(name), device))
		return false;
	dprintf(child.out, "name %s\n", name);
	if (!CALL(cuDevicePrimaryCtxRetain, &context, device) ||
		!CALL(cuCtxSetCurrent, context) ||
		!CALL(cuMemGetInfo_v2, &free_size, &total))
		return false;
	dprintf(child.out, "free %zu\ntotal %zu\n", free_size >> 20, total >> 20);
	return compute() && CALL(cuDevicePrimaryCtxRelease_v2, device);
}

static void call_all(int out, const void *data)
{
	int version, n = 0;

	find_interposer(out);
	if (!child_load(&child, out, "libcuda.so.1") || !find_functions() ||
		!CALL(cuInit, 0) || !CALL(cuDriverGetVersion, &version) ||
		!CALL(cuDeviceGetCount, &n))
		return;
	dprintf(out, "version %d.%d\ncount %d\n", version / 1000, version % 1000 / 10, n);
	if (n && !call_device())
		return;
	child_step(&child, "done");
}

/*
 * What the child found
 */

static void look_at_interposer(struct doctor *doctor, const struct probe *probe)
{
	char path[CHILD_FIELD_SIZE];

	if (probe_get(probe, "interposer", path, sizeof(path)))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "libcuda",
			"unset LD_PRELOAD, unless a tool shall see the calls",
			"%s is loaded into every program and has cuInit, too: programs "
			"that are linked with libcuda call that",
			path);
}

/* The loader may know more than its files tell. */
static void look_at_path(struct doctor *doctor, const struct probe *probe)
{
	char path[PATH_MAX], note[128];
	struct stat info, expected;
	bool is_ours;

	if (!probe_get(probe, "path", path, sizeof(path)) || stat(path, &info) ||
		(*doctor->libcuda && !stat(doctor->libcuda, &expected) &&
			info.st_dev == expected.st_dev && info.st_ino == expected.st_ino))
		return;
	is_ours = !vgpu_note_read_path(path, note, sizeof(note));
	vgpu_findings_add(&doctor->found, is_ours ? VGPU_FINDING_OK : VGPU_FINDING_FAIL,
		"libcuda",
		is_ours ? NULL : "LD_DEBUG=libs vgpu-doctor shows where the loader looks",
		"the loader gave %s to vgpu-doctor, which is%s of vGPU", path,
		is_ours ? "" : " not");
}

static void look_at_device(struct doctor *doctor, const struct probe *probe)
{
	char name[CHILD_FIELD_SIZE], version[32], count[32], free_mib[32], total[32];

	probe_get(probe, "version", version, sizeof(version));
	if (!probe_get(probe, "name", name, sizeof(name))) {
		if (probe_get(probe, "count", count, sizeof(count)))
			vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "call",
				"unset CUDA_VISIBLE_DEVICES, or see the log of vgpud on "
				"the host",
				"cuInit succeeds, and there is no device");
		return;
	}
	probe_get(probe, "count", count, sizeof(count));
	vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "call", NULL,
		"CUDA %s, %s device%s, the first is %s", version, count,
		strcmp(count, "1") ? "s" : "", name);
	if (probe_get(probe, "free", free_mib, sizeof(free_mib)) &&
		probe_get(probe, "total", total, sizeof(total)))
		vgpu_findings_add(&doctor->found,
			strcmp(free_mib, "0") ? VGPU_FINDING_OK : VGPU_FINDING_WARN,
			"memory",
			strcmp(free_mib, "0")
				? NULL
				: "end programs, or raise device-memory = on the host",
			"%s of %s MiB of device memory are free", free_mib, total);
}

static void look_at_kernel(struct doctor *doctor, const struct probe *probe)
{
	char text[CHILD_FIELD_SIZE];

	if (probe_get(probe, "right", text, sizeof(text)))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "kernel", NULL,
			"a kernel has run, and its %s results are right", text);
	else if (probe_get(probe, "wrong", text, sizeof(text)))
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "kernel",
			"do not trust results of this device; report it, with this "
			"output",
			"a kernel has run, and a result is wrong (index, value, what it "
			"should be: %s)",
			text);
}

void doctor_look_at_calls(struct doctor *doctor)
{
	struct probe probe;

	if (doctor->is_ours && !doctor->is_reached) {
		vgpu_findings_add(&doctor->found, VGPU_FINDING_WARN, "call",
			"correct what fails above",
			"not tried: there is no way to a host that answers");
		return;
	}
	child_run(doctor, &probe, "call", call_all);
	look_at_path(doctor, &probe);
	look_at_interposer(doctor, &probe);
	look_at_device(doctor, &probe);
	look_at_kernel(doctor, &probe);
	probe_deinit(&probe);
}
