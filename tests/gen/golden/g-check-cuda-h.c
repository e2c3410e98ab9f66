/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* The description against NVIDIA's cuda.h */

#ifndef CHECK_MACROS
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>
#include <stddef.h>

#if CUDA_VERSION != 13000
#error "the description is of CUDA 13.0"
#endif

#define SAME_TYPE(_a, _b) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(_a), _b), #_a)
#define SAME_VALUE(_a, _b) _Static_assert((_a) == (_b), #_a)
#define SAME_SIZE(_a, _b) _Static_assert(sizeof(_a) == sizeof(_b), #_a)
#define SAME_OFFSET(_a, _b, _field) \
	_Static_assert(offsetof(_a, _field) == offsetof(_b, _field), #_a "." #_field)

#ifndef CHECK_MACROS

SAME_TYPE(cuInit, CUresult(unsigned int));
SAME_TYPE(cuNameOf, CUresult(int, const char **));
SAME_TYPE(cuNumberOf, CUresult(const char *, size_t *));
SAME_TYPE(cuNumberOf_ptds, CUresult(const char *, size_t *));
SAME_TYPE(cuNumber, CUresult(const char *, size_t *));
SAME_TYPE(cuStreamGetPriority, CUresult(CUstream, int *));
SAME_TYPE(cuStreamGetPriority_ptsz, CUresult(CUstream, int *));
SAME_TYPE(cuMemsetD16Async, CUresult(CUdeviceptr, unsigned short, size_t, CUstream));
SAME_TYPE(cuMemsetD16Async_ptsz, CUresult(CUdeviceptr, unsigned short, size_t, CUstream));
SAME_TYPE(cuMemAlloc, CUresult(unsigned int *, unsigned int));
SAME_TYPE(cuMemAlloc_v2, CUresult(CUdeviceptr *, size_t));
SAME_TYPE(cuEventDestroy, CUresult(CUevent));
SAME_TYPE(cuEventQuery, CUresult(CUevent));
SAME_TYPE(cuFind, CUresult(size_t *, const char *, int *));
SAME_TYPE(cuLaunch, CUresult(void **, CUstream));
SAME_TYPE(cuLaunch_ptsz, CUresult(void **, CUstream));
SAME_TYPE(cuGraphLaunch, CUresult(CUgraph, CUstream));
SAME_TYPE(cuGraphLaunch_ptsz, CUresult(CUgraph, CUstream));

SAME_VALUE(CUDA_SUCCESS, (CUresult)0ll);
SAME_VALUE(CUDA_ERROR_INVALID_VALUE, (CUresult)1ll);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_WARP_SIZE, (CUdevice_attribute)10ll);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, (CUdevice_attribute)83ll);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_NUMA_ID, (CUdevice_attribute)131ll);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, (CUdevice_attribute)132ll);
SAME_TYPE(CUstream, struct CUstream_st *);
SAME_TYPE(CUevent, struct CUevent_st *);
SAME_TYPE(CUgraph, struct CUgraph_st *);

SAME_VALUE(CU_BOXES, 4);

SAME_TYPE(CUdeviceptr, unsigned long long);
SAME_TYPE(CUhostFn, void (*)(void *userData));
SAME_TYPE(CUcrate, CUbox);

struct check_CUbox {
	int kind;
	union {
		size_t number;
		char text[8];
	} as;
	struct {
		const void *next;
	};
};
SAME_SIZE(CUbox, struct check_CUbox);
SAME_OFFSET(CUbox, struct check_CUbox, kind);
SAME_OFFSET(CUbox, struct check_CUbox, as);
SAME_OFFSET(CUbox, struct check_CUbox, next);

#else /* CHECK_MACROS */

#define TEXT_(_name) #_name
#define TEXT(_name) TEXT_(_name)
#define SAME_NAME(_name, _symbol) \
	_Static_assert(__builtin_strcmp(TEXT(_name), _symbol) == 0, _symbol)

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
SAME_NAME(cuInit, "cuInit");
SAME_NAME(cuNameOf, "cuNameOf");
SAME_NAME(cuNumberOf, "cuNumberOf_ptds");
SAME_NAME(cuNumber, "cuNumber");
SAME_NAME(cuStreamGetPriority, "cuStreamGetPriority_ptsz");
SAME_NAME(cuMemsetD16Async, "cuMemsetD16Async_ptsz");
SAME_NAME(cuMemAlloc, "cuMemAlloc_v2");
SAME_NAME(cuEventDestroy, "cuEventDestroy");
SAME_NAME(cuEventQuery, "cuEventQuery");
SAME_NAME(cuFind, "cuFind");
SAME_NAME(cuLaunch, "cuLaunch_ptsz");
SAME_NAME(cuGraphLaunch, "cuGraphLaunch_ptsz");
#else
SAME_NAME(cuInit, "cuInit");
SAME_NAME(cuNameOf, "cuNameOf");
SAME_NAME(cuNumberOf, "cuNumberOf");
SAME_NAME(cuNumber, "cuNumber");
SAME_NAME(cuStreamGetPriority, "cuStreamGetPriority");
SAME_NAME(cuMemsetD16Async, "cuMemsetD16Async");
SAME_NAME(cuMemAlloc, "cuMemAlloc_v2");
SAME_NAME(cuEventDestroy, "cuEventDestroy");
SAME_NAME(cuEventQuery, "cuEventQuery");
SAME_NAME(cuFind, "cuFind");
SAME_NAME(cuLaunch, "cuLaunch");
SAME_NAME(cuGraphLaunch, "cuGraphLaunch");
#endif

#endif /* CHECK_MACROS */
