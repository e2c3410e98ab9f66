/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: memory at chosen addresses, its cost, and registration of memory
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe.h"

#define MIB (1ull << 20)

static const struct {
	const char *name;
	uint64_t address;
} places[] = {
	{ "first_window", 0x100000000000ull },
	{ "first_window_device_part", 0x200000000000ull },
	{ "second_window", 0x550000000000ull },
};

static CUmemAllocationProp device_memory(struct probe *probe)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = probe->device },
	};
}

/* One mapping of `size` bytes at (or near) `address`. Returns: where, or 0. */
static CUdeviceptr map_at(struct probe *probe, const char *name, CUdeviceptr address,
	size_t size, CUmemGenericAllocationHandle *handlep)
{
	CUmemAllocationProp prop = device_memory(probe);
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr got = 0;

	if (!probe_ok(probe, name, cuMemAddressReserve(&got, size, 0, address, 0)))
		return 0;
	if (!probe_ok(probe, name, cuMemCreate(handlep, size, &prop, 0)) ||
		!probe_ok(probe, name, cuMemMap(got, size, 0, *handlep, 0)) ||
		!probe_ok(probe, name, cuMemSetAccess(got, size, &access, 1))) {
		cuMemAddressFree(got, size);
		return 0;
	}
	return got;
}

static void unmap(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle)
{
	cuMemUnmap(address, size);
	cuMemRelease(handle);
	cuMemAddressFree(address, size);
}

/*
 * Can device memory be placed at an address of our choice? With the range free, and
 * with the range reserved by this process (PROT_NONE), as the worker has it.
 */
void probe_window(struct probe *probe)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr got;
	char name[96];
	void *plug;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		for (int plugged = 0; plugged < 2; plugged++) {
			snprintf(name, sizeof(name), "vmm_at_%s_%s", places[i].name,
				plugged ? "reserved" : "free");
			plug = MAP_FAILED;
			if (plugged)
				plug = mmap((void *)places[i].address, 64 * MIB,
					PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
						MAP_FIXED_NOREPLACE,
					-1, 0);
			got = map_at(probe, name, places[i].address, 64 * MIB, &handle);
			if (got) {
				probe_text(probe, name, "asked 0x%llx, got 0x%llx: %s",
					(unsigned long long)places[i].address,
					(unsigned long long)got,
					got == places[i].address ? "as asked"
								 : "elsewhere");
				unmap(got, 64 * MIB, handle);
			}
			if (plug != MAP_FAILED)
				munmap(plug, 64 * MIB);
		}
	}
}

static void cost_of(struct probe *probe, size_t size)
{
	CUmemGenericAllocationHandle handle;
	const int n = size > 64 * MIB ? 20 : 200;
	CUdeviceptr p = 0;
	double start;
	char name[64];
	CUresult r = CUDA_SUCCESS;

	start = probe_now();
	for (int i = 0; i < n && !r; i++) {
		r = cuMemAlloc(&p, size);
		if (!r)
			r = cuMemFree(p);
	}
	snprintf(name, sizeof(name), "mem_alloc_free_%zu_kib", size >> 10);
	if (probe_ok(probe, name, r))
		probe_number(probe, name, (probe_now() - start) / n * 1e9, "ns");

	snprintf(name, sizeof(name), "vmm_map_unmap_%zu_kib", size >> 10);
	if (size < 2 * MIB)
		return; /* below the granularity */
	start = probe_now();
	for (int i = 0; i < n; i++) {
		p = map_at(probe, name, 0, size, &handle);
		if (!p)
			return;
		unmap(p, size, handle);
	}
	probe_number(probe, name, (probe_now() - start) / n * 1e9, "ns");
}

void probe_alloc_cost(struct probe *probe)
{
	CUmemAllocationProp prop = device_memory(probe);
	size_t granularity = 0;

	if (probe_ok(probe, "vmm_granularity",
		    cuMemGetAllocationGranularity(
			    &granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM)))
		probe_number(probe, "vmm_granularity", granularity, "bytes");
	cost_of(probe, 4096);
	cost_of(probe, 2 * MIB);
	cost_of(probe, 64 * MIB);
	cost_of(probe, 1024 * MIB);
}

/* A sealed memfd as the VMs have it, registered in two neighbouring runs. */
void probe_registration(struct probe *probe)
{
	const size_t run = 64 * MIB;
	double start;
	CUdeviceptr p = 0;
	uint8_t *map;
	CUresult r;
	int fd;

	fd = memfd_create("vgpu-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, 2 * run) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		probe_text(probe, "register_sealed_memfd", "no memfd: %m");
		return;
	}
	map = mmap((void *)0x100000000000ull, 2 * run, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		probe_text(probe, "register_sealed_memfd", "no mapping: %m");
		return;
	}
	start = probe_now();
	r = cuMemHostRegister(
		map, run, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (probe_ok(probe, "register_sealed_memfd", r)) {
		probe_number(probe, "register_sealed_memfd", (probe_now() - start) * 1e9,
			"ns for 64 MiB, cold");
		cuMemHostGetDevicePointer(&p, map, 0);
		probe_text(probe, "registered_device_pointer", "%s",
			p == (CUdeviceptr)(uintptr_t)map ? "equal" : "different");
	}
	r = cuMemHostRegister(map + run, run,
		CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	probe_ok(probe, "register_second_run", r);
	if (!r && !cuMemAlloc(&p, 4 * MIB)) {
		memset(map + run - 2 * MIB, 0x5a, 4 * MIB);
		r = cuMemcpyHtoD(p, map + run - 2 * MIB, 4 * MIB);
		if (probe_ok(probe, "copy_across_two_registrations", r))
			probe_text(
				probe, "copy_across_two_registrations", "synchronous ok");
		r = cuMemcpyHtoDAsync(p, map + run - 2 * MIB, 4 * MIB, NULL);
		if (!r)
			r = cuCtxSynchronize();
		if (probe_ok(probe, "async_copy_across_two_registrations", r))
			probe_text(probe, "async_copy_across_two_registrations", "ok");
		cuMemFree(p);
	}
	cuMemHostUnregister(map);
	cuMemHostUnregister(map + run);
	munmap(map, 2 * run);
}
