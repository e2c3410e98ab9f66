/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA Driver API */

#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__
/* The profiler's three calls are here too. */
#define cuda_profiler_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION 13000
#define CUDAAPI
#define CUDA_CB

#define CU_BOXES 4

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
} CUresult;

typedef enum CUdevice_attribute_enum {
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_NUMA_ID = 131,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
} CUdevice_attribute;

typedef unsigned long long CUdeviceptr;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef void (CUDA_CB *CUhostFn)(void *userData);
typedef struct CUbox_st {
	int kind;
	union {
		size_t number;
		char text[8];
	} as;
	struct {
		const void *next;
	};
} CUbox;

typedef CUbox CUcrate;

#ifndef VGPU_CUDA_INTERNAL

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define VGPU_CUDA_PTDS_(_symbol) _symbol##_ptds
#define VGPU_CUDA_PTSZ_(_symbol) _symbol##_ptsz
#else
#define VGPU_CUDA_PTDS_(_symbol) _symbol
#define VGPU_CUDA_PTSZ_(_symbol) _symbol
#endif

#define cuNumberOf VGPU_CUDA_PTDS_(cuNumberOf)
#define cuStreamGetPriority VGPU_CUDA_PTSZ_(cuStreamGetPriority)
#define cuMemsetD16Async VGPU_CUDA_PTSZ_(cuMemsetD16Async)
#define cuMemAlloc cuMemAlloc_v2
#define cuLaunch VGPU_CUDA_PTSZ_(cuLaunch)
#define cuGraphLaunch VGPU_CUDA_PTSZ_(cuGraphLaunch)

#endif /* VGPU_CUDA_INTERNAL */

CUresult CUDAAPI cuInit(unsigned int Flags);
CUresult CUDAAPI cuNameOf(int number, const char **name);
CUresult CUDAAPI cuNumberOf(const char *name, size_t *number);
CUresult CUDAAPI cuNumberOf_ptds(const char *name, size_t *number);
CUresult CUDAAPI cuNumber(const char *name, size_t *number);
CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority);
CUresult CUDAAPI cuStreamGetPriority_ptsz(CUstream hStream, int *priority);
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream);
CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream);
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cuEventDestroy(CUevent hEvent);
CUresult CUDAAPI cuEventQuery(CUevent hEvent);
CUresult CUDAAPI cuFind(size_t *found, const char *name, int *count);
CUresult CUDAAPI cuLaunch(void **params, CUstream hStream);
CUresult CUDAAPI cuLaunch_ptsz(void **params, CUstream hStream);
CUresult CUDAAPI cuGraphLaunch(CUgraph graph, CUstream hStream);
CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraph graph, CUstream hStream);

#ifdef VGPU_CUDA_INTERNAL

CUresult CUDAAPI cuMemAlloc(unsigned int *dptr, unsigned int bytesize);

#endif /* VGPU_CUDA_INTERNAL */

#ifdef __cplusplus
}
#endif

#endif /* __cuda_cuda_h__ */
