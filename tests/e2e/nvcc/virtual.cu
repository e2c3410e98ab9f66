/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector that grows in place: its addresses are reserved once, memory is mapped as it
 * is needed, and neither kernels nor copies see where one piece ends
 */

#include "driver.h"

/* The driver's functions, as programs that link the runtime alone get them. */
static struct {
	CUresult (*reserve)(
		CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*unreserve)(CUdeviceptr, size_t);
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t,
		const CUmemAllocationProp *, unsigned long long);
	CUresult (*release)(CUmemGenericAllocationHandle);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
		unsigned long long);
	CUresult (*unmap)(CUdeviceptr, size_t);
	CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUresult (*granularity)(
		size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
} driver;

static void find_all()
{
	find(driver.reserve, "cuMemAddressReserve");
	find(driver.unreserve, "cuMemAddressFree");
	find(driver.create, "cuMemCreate");
	find(driver.release, "cuMemRelease");
	find(driver.map, "cuMemMap");
	find(driver.unmap, "cuMemUnmap");
	find(driver.set_access, "cuMemSetAccess");
	find(driver.granularity, "cuMemGetAllocationGranularity");
}

class Vector
{
	CUdeviceptr start = 0;
	size_t reserved, unit, mapped = 0;
	CUmemAllocationProp prop = {};

      public:
	explicit Vector(size_t most)
	{
		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		DRIVER(driver.granularity(
			&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
		reserved = (most + unit - 1) / unit * unit;
		DRIVER(driver.reserve(&start, reserved, 0, 0, 0));
	}

	~Vector()
	{
		DRIVER(driver.unmap(start, mapped));
		DRIVER(driver.unreserve(start, reserved));
	}

	int *data() const
	{
		return (int *)start;
	}

	void grow(size_t size)
	{
		size_t missing = (size + unit - 1) / unit * unit - mapped;
		CUmemGenericAllocationHandle handle;
		CUmemAccessDesc access = { prop.location,
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

		DRIVER(driver.create(&handle, missing, &prop, 0));
		DRIVER(driver.map(start + mapped, missing, 0, handle, 0));
		DRIVER(driver.set_access(start + mapped, missing, &access, 1));
		/* The mapping keeps it. */
		DRIVER(driver.release(handle));
		mapped += missing;
	}
};

__global__ void append(int *values, int first, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		values[first + i] = 3 * (first + i) + 1;
}

int main()
{
	const int n = 1 << 20, n_steps = 5;
	std::vector<int> values(n * n_steps);
	cudaPointerAttributes attributes;
	size_t n_wrong = 0;

	CUDA(cudaFree(0));
	find_all();
	{
		Vector vector(64ull << 20);

		for (int i = 0; i < n_steps; i++) {
			vector.grow((i + 1ull) * n * sizeof(int));
			append<<<n / 256, 256>>>(vector.data(), i * n, n);
		}
		/* Over all pieces, with the runtime's guess of the direction. */
		CUDA(cudaMemcpy(values.data(), vector.data(), values.size() * sizeof(int),
			cudaMemcpyDefault));
		CUDA(cudaPointerGetAttributes(&attributes, vector.data() + n));
		n_wrong += attributes.type != cudaMemoryTypeDevice;
	}
	for (size_t i = 0; i < values.size(); i++)
		n_wrong += values[i] != (int)(3 * i + 1);
	return result("virtual", values.size(), n_wrong);
}
