/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Types of the CUDA Runtime API
 *
 * Where its layout or its numbers are those of the Driver API, a type is that one's. A
 * test compares each size, offset and number with a toolkit's header; it includes this
 * file into a C++ namespace.
 */

#ifndef VGPU_RUNTIME_CHECK
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#endif

/*
 * Names of types of the Driver API
 */

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUuserObject cudaUserObject_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUfunction cudaFunction_t;
typedef CUarray cudaArray_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef const struct CUarray_st *cudaArray_const_t;
typedef const struct CUmipmappedArray_st *cudaMipmappedArray_const_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef CUuuid cudaUUID_t;
typedef CUhostFn cudaHostFn_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, int status, void *data);
typedef void (*cudaLogsCallback_t)(
	void *data, CUlogLevel level, char *message, size_t size);
typedef CUasyncCallbackHandle cudaAsyncCallbackHandle_t;
typedef CUasyncNotificationInfo cudaAsyncNotificationInfo_t;
typedef CUasyncCallback cudaAsyncCallback;
typedef CUgraphConditionalHandle cudaGraphConditionalHandle;

typedef CUdevice_attribute cudaDeviceAttr;
typedef CUdevice_P2PAttribute cudaDeviceP2PAttr;
typedef CUlimit cudaLimit;
typedef CUfunc_cache cudaFuncCache;
typedef CUsharedconfig cudaSharedMemConfig;
typedef CUfunction_attribute cudaFuncAttribute;
typedef CUjit_option cudaJitOption;
typedef CUlibraryOption cudaLibraryOption;
typedef CUatomicOperation cudaAtomicOperation;
typedef CUmem_advise cudaMemoryAdvise;
typedef CUmem_range_attribute cudaMemRangeAttribute;
typedef CUmemPool_attribute cudaMemPoolAttr;
typedef CUmemAllocationType cudaMemAllocationType;
typedef CUmemAllocationHandleType cudaMemAllocationHandleType;
typedef CUmemAccess_flags cudaMemAccessFlags;
typedef CUgraphMem_attribute cudaGraphMemAttributeType;
typedef CUgraphNodeType cudaGraphNodeType;
typedef CUstreamCaptureMode cudaStreamCaptureMode;
typedef CUstreamCaptureStatus cudaStreamCaptureStatus;
typedef CUlaunchAttributeID cudaLaunchAttributeID;
typedef CUflushGPUDirectRDMAWritesTarget cudaFlushGPUDirectRDMAWritesTarget;
typedef CUflushGPUDirectRDMAWritesScope cudaFlushGPUDirectRDMAWritesScope;
typedef CUdriverProcAddressQueryResult cudaDriverEntryPointQueryResult;
typedef CUaddress_mode cudaTextureAddressMode;
typedef CUfilter_mode cudaTextureFilterMode;
typedef CUresourcetype cudaResourceType;

typedef CUmemLocation cudaMemLocation;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUmemcpyAttributes cudaMemcpyAttributes;
typedef CUDA_MEMCPY3D_BATCH_OP cudaMemcpy3DBatchOp;
typedef CUDA_ARRAY_MEMORY_REQUIREMENTS cudaArrayMemoryRequirements;
typedef CUDA_ARRAY_SPARSE_PROPERTIES cudaArraySparseProperties;
typedef CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUDA_MEMSET_NODE_PARAMS cudaMemsetParams;
typedef CUlaunchAttributeValue cudaLaunchAttributeValue;
typedef CUlaunchAttribute cudaLaunchAttribute;

/*
 * Enumerations of the Runtime API only
 */

typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorCudartUnloading = 4,
	cudaErrorProfilerDisabled = 5,
	cudaErrorProfilerNotInitialized = 6,
	cudaErrorProfilerAlreadyStarted = 7,
	cudaErrorProfilerAlreadyStopped = 8,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInvalidPitchValue = 12,
	cudaErrorInvalidSymbol = 13,
	cudaErrorInvalidHostPointer = 16,
	cudaErrorInvalidDevicePointer = 17,
	cudaErrorInvalidTexture = 18,
	cudaErrorInvalidTextureBinding = 19,
	cudaErrorInvalidChannelDescriptor = 20,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorAddressOfConstant = 22,
	cudaErrorTextureFetchFailed = 23,
	cudaErrorTextureNotBound = 24,
	cudaErrorSynchronizationError = 25,
	cudaErrorInvalidFilterSetting = 26,
	cudaErrorInvalidNormSetting = 27,
	cudaErrorMixedDeviceExecution = 28,
	cudaErrorNotYetImplemented = 31,
	cudaErrorMemoryValueTooLarge = 32,
	cudaErrorStubLibrary = 34,
	cudaErrorInsufficientDriver = 35,
	cudaErrorCallRequiresNewerDriver = 36,
	cudaErrorInvalidSurface = 37,
	cudaErrorDuplicateVariableName = 43,
	cudaErrorDuplicateTextureName = 44,
	cudaErrorDuplicateSurfaceName = 45,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorIncompatibleDriverContext = 49,
	cudaErrorMissingConfiguration = 52,
	cudaErrorPriorLaunchFailure = 53,
	cudaErrorLaunchMaxDepthExceeded = 65,
	cudaErrorLaunchFileScopedTex = 66,
	cudaErrorLaunchFileScopedSurf = 67,
	cudaErrorSyncDepthExceeded = 68,
	cudaErrorLaunchPendingCountExceeded = 69,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorDeviceNotLicensed = 102,
	cudaErrorSoftwareValidityNotEstablished = 103,
	cudaErrorStartupFailure = 127,
	cudaErrorInvalidKernelImage = 200,
	cudaErrorDeviceUninitialized = 201,
	cudaErrorMapBufferObjectFailed = 205,
	cudaErrorUnmapBufferObjectFailed = 206,
	cudaErrorArrayIsMapped = 207,
	cudaErrorAlreadyMapped = 208,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorAlreadyAcquired = 210,
	cudaErrorNotMapped = 211,
	cudaErrorNotMappedAsArray = 212,
	cudaErrorNotMappedAsPointer = 213,
	cudaErrorECCUncorrectable = 214,
	cudaErrorUnsupportedLimit = 215,
	cudaErrorDeviceAlreadyInUse = 216,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorInvalidPtx = 218,
	cudaErrorInvalidGraphicsContext = 219,
	cudaErrorNvlinkUncorrectable = 220,
	cudaErrorJitCompilerNotFound = 221,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorJitCompilationDisabled = 223,
	cudaErrorUnsupportedExecAffinity = 224,
	cudaErrorUnsupportedDevSideSync = 225,
	cudaErrorContained = 226,
	cudaErrorInvalidSource = 300,
	cudaErrorFileNotFound = 301,
	cudaErrorSharedObjectSymbolNotFound = 302,
	cudaErrorSharedObjectInitFailed = 303,
	cudaErrorOperatingSystem = 304,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorIllegalState = 401,
	cudaErrorLossyQuery = 402,
	cudaErrorSymbolNotFound = 500,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorLaunchTimeout = 702,
	cudaErrorLaunchIncompatibleTexturing = 703,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorPeerAccessNotEnabled = 705,
	cudaErrorSetOnActiveProcess = 708,
	cudaErrorContextIsDestroyed = 709,
	cudaErrorAssert = 710,
	cudaErrorTooManyPeers = 711,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorHardwareStackError = 714,
	cudaErrorIllegalInstruction = 715,
	cudaErrorMisalignedAddress = 716,
	cudaErrorInvalidAddressSpace = 717,
	cudaErrorInvalidPc = 718,
	cudaErrorLaunchFailure = 719,
	cudaErrorCooperativeLaunchTooLarge = 720,
	cudaErrorTensorMemoryLeak = 721,
	cudaErrorNotPermitted = 800,
	cudaErrorNotSupported = 801,
	cudaErrorSystemNotReady = 802,
	cudaErrorSystemDriverMismatch = 803,
	cudaErrorCompatNotSupportedOnDevice = 804,
	cudaErrorMpsConnectionFailed = 805,
	cudaErrorMpsRpcFailure = 806,
	cudaErrorMpsServerNotReady = 807,
	cudaErrorMpsMaxClientsReached = 808,
	cudaErrorMpsMaxConnectionsReached = 809,
	cudaErrorMpsClientTerminated = 810,
	cudaErrorCdpNotSupported = 811,
	cudaErrorCdpVersionMismatch = 812,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureInvalidated = 901,
	cudaErrorStreamCaptureMerge = 902,
	cudaErrorStreamCaptureUnmatched = 903,
	cudaErrorStreamCaptureUnjoined = 904,
	cudaErrorStreamCaptureIsolation = 905,
	cudaErrorStreamCaptureImplicit = 906,
	cudaErrorCapturedEvent = 907,
	cudaErrorStreamCaptureWrongThread = 908,
	cudaErrorTimeout = 909,
	cudaErrorGraphExecUpdateFailure = 910,
	cudaErrorExternalDevice = 911,
	cudaErrorInvalidClusterSize = 912,
	cudaErrorFunctionNotLoaded = 913,
	cudaErrorInvalidResourceType = 914,
	cudaErrorInvalidResourceConfiguration = 915,
	cudaErrorUnknown = 999,
	cudaErrorApiFailureBase = 10000,
} cudaError_t;

typedef enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
} cudaMemcpyKind;

typedef enum cudaMemoryType {
	cudaMemoryTypeUnregistered = 0,
	cudaMemoryTypeHost = 1,
	cudaMemoryTypeDevice = 2,
	cudaMemoryTypeManaged = 3,
} cudaMemoryType;

typedef enum cudaTextureReadMode {
	cudaReadModeElementType = 0,
	cudaReadModeNormalizedFloat = 1,
} cudaTextureReadMode;

typedef enum cudaChannelFormatKind {
	cudaChannelFormatKindSigned = 0,
	cudaChannelFormatKindUnsigned = 1,
	cudaChannelFormatKindFloat = 2,
	cudaChannelFormatKindNone = 3,
	cudaChannelFormatKindNV12 = 4,
	cudaChannelFormatKindUnsignedNormalized8X1 = 5,
	cudaChannelFormatKindUnsignedNormalized8X2 = 6,
	cudaChannelFormatKindUnsignedNormalized8X4 = 7,
	cudaChannelFormatKindUnsignedNormalized16X1 = 8,
	cudaChannelFormatKindUnsignedNormalized16X2 = 9,
	cudaChannelFormatKindUnsignedNormalized16X4 = 10,
	cudaChannelFormatKindSignedNormalized8X1 = 11,
	cudaChannelFormatKindSignedNormalized8X2 = 12,
	cudaChannelFormatKindSignedNormalized8X4 = 13,
	cudaChannelFormatKindSignedNormalized16X1 = 14,
	cudaChannelFormatKindSignedNormalized16X2 = 15,
	cudaChannelFormatKindSignedNormalized16X4 = 16,
	cudaChannelFormatKindUnsignedBlockCompressed1 = 17,
	cudaChannelFormatKindUnsignedBlockCompressed1SRGB = 18,
	cudaChannelFormatKindUnsignedBlockCompressed2 = 19,
	cudaChannelFormatKindUnsignedBlockCompressed2SRGB = 20,
	cudaChannelFormatKindUnsignedBlockCompressed3 = 21,
	cudaChannelFormatKindUnsignedBlockCompressed3SRGB = 22,
	cudaChannelFormatKindUnsignedBlockCompressed4 = 23,
	cudaChannelFormatKindSignedBlockCompressed4 = 24,
	cudaChannelFormatKindUnsignedBlockCompressed5 = 25,
	cudaChannelFormatKindSignedBlockCompressed5 = 26,
	cudaChannelFormatKindUnsignedBlockCompressed6H = 27,
	cudaChannelFormatKindSignedBlockCompressed6H = 28,
	cudaChannelFormatKindUnsignedBlockCompressed7 = 29,
	cudaChannelFormatKindUnsignedBlockCompressed7SRGB = 30,
} cudaChannelFormatKind;

/*
 * Structures of the Runtime API only
 */

typedef struct dim3 {
	unsigned int x, y, z;
} dim3;

typedef struct cudaChannelFormatDesc {
	int x;
	int y;
	int z;
	int w;
	cudaChannelFormatKind f;
} cudaChannelFormatDesc;

typedef struct cudaPitchedPtr {
	void *ptr;
	size_t pitch;
	size_t xsize;
	size_t ysize;
} cudaPitchedPtr;

typedef struct cudaExtent {
	size_t width;
	size_t height;
	size_t depth;
} cudaExtent;

typedef struct cudaPos {
	size_t x;
	size_t y;
	size_t z;
} cudaPos;

typedef struct cudaMemcpy3DParms {
	cudaArray_t srcArray;
	cudaPos srcPos;
	cudaPitchedPtr srcPtr;
	cudaArray_t dstArray;
	cudaPos dstPos;
	cudaPitchedPtr dstPtr;
	cudaExtent extent;
	cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct cudaMemcpy3DPeerParms {
	cudaArray_t srcArray;
	cudaPos srcPos;
	cudaPitchedPtr srcPtr;
	int srcDevice;
	cudaArray_t dstArray;
	cudaPos dstPos;
	cudaPitchedPtr dstPtr;
	int dstDevice;
	cudaExtent extent;
} cudaMemcpy3DPeerParms;

typedef struct cudaPointerAttributes {
	cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
	/* Not in CUDA 12. */
	long reserved[8];
} cudaPointerAttributes;

typedef struct cudaFuncAttributes {
	size_t sharedSizeBytes;
	size_t constSizeBytes;
	size_t localSizeBytes;
	int maxThreadsPerBlock;
	int numRegs;
	int ptxVersion;
	int binaryVersion;
	int cacheModeCA;
	int maxDynamicSharedSizeBytes;
	int preferredShmemCarveout;
	int clusterDimMustBeSet;
	int requiredClusterWidth;
	int requiredClusterHeight;
	int requiredClusterDepth;
	int clusterSchedulingPolicyPreference;
	int nonPortableClusterSizeAllowed;
	int reserved[16];
} cudaFuncAttributes;

typedef struct cudaLaunchConfig_st {
	dim3 gridDim;
	dim3 blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef struct cudaResourceDesc {
	cudaResourceType resType;
	union {
		struct {
			cudaArray_t array;
		} array;
		struct {
			cudaMipmappedArray_t mipmap;
		} mipmap;
		struct {
			void *devPtr;
			cudaChannelFormatDesc desc;
			size_t sizeInBytes;
		} linear;
		struct {
			void *devPtr;
			cudaChannelFormatDesc desc;
			size_t width;
			size_t height;
			size_t pitchInBytes;
		} pitch2D;
		struct {
			int reserved[32];
		} reserved; /* not in CUDA 12 */
	} res;
	unsigned int flags; /* not in CUDA 12 */
} cudaResourceDesc;

typedef struct cudaTextureDesc {
	cudaTextureAddressMode addressMode[3];
	cudaTextureFilterMode filterMode;
	cudaTextureReadMode readMode;
	int sRGB;
	float borderColor[4];
	int normalizedCoords;
	unsigned int maxAnisotropy;
	cudaTextureFilterMode mipmapFilterMode;
	float mipmapLevelBias;
	float minMipmapLevelClamp;
	float maxMipmapLevelClamp;
	int disableTrilinearOptimization;
	int seamlessCubemap;
} cudaTextureDesc;

typedef struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
} cudaKernelNodeParams;

typedef struct cudaMemcpyNodeParams {
	int flags;
	int reserved[3];
	cudaMemcpy3DParms copyParams;
} cudaMemcpyNodeParams;

typedef struct cudaGraphNodeParams {
	cudaGraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		cudaKernelNodeParams kernel;
		cudaMemcpyNodeParams memcpy;
		cudaMemsetParams memset;
		cudaHostNodeParams host;
		CUDA_CHILD_GRAPH_NODE_PARAMS graph;
		CUDA_EVENT_WAIT_NODE_PARAMS eventWait;
		CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
		cudaMemAllocNodeParams alloc;
		CUDA_MEM_FREE_NODE_PARAMS free;
		struct {
			cudaGraphConditionalHandle handle;
			CUgraphConditionalNodeType type;
			unsigned int size;
			cudaGraph_t *phGraph_out;
		} conditional;
	};
	long long reserved2;
} cudaGraphNodeParams;

typedef struct cudaDeviceProp {
	char name[256];
	cudaUUID_t uuid;
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem;
	size_t sharedMemPerBlock;
	int regsPerBlock;
	int warpSize;
	size_t memPitch;
	int maxThreadsPerBlock;
	int maxThreadsDim[3];
	int maxGridSize[3];
	size_t totalConstMem;
	int major;
	int minor;
	size_t textureAlignment;
	size_t texturePitchAlignment;
	int multiProcessorCount;
	int integrated;
	int canMapHostMemory;
	int maxTexture1D;
	int maxTexture1DMipmap;
	int maxTexture2D[2];
	int maxTexture2DMipmap[2];
	int maxTexture2DLinear[3];
	int maxTexture2DGather[2];
	int maxTexture3D[3];
	int maxTexture3DAlt[3];
	int maxTextureCubemap;
	int maxTexture1DLayered[2];
	int maxTexture2DLayered[3];
	int maxTextureCubemapLayered[2];
	int maxSurface1D;
	int maxSurface2D[2];
	int maxSurface3D[3];
	int maxSurface1DLayered[2];
	int maxSurface2DLayered[3];
	int maxSurfaceCubemap;
	int maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels;
	int ECCEnabled;
	int pciBusID;
	int pciDeviceID;
	int pciDomainID;
	int tccDriver;
	int asyncEngineCount;
	int unifiedAddressing;
	int memoryBusWidth;
	int l2CacheSize;
	int persistingL2CacheMaxSize;
	int maxThreadsPerMultiProcessor;
	int streamPrioritiesSupported;
	int globalL1CacheSupported;
	int localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor;
	int managedMemory;
	int isMultiGpuBoard;
	int multiGpuBoardGroupID;
	int hostNativeAtomicSupported;
	int pageableMemoryAccess;
	int concurrentManagedAccess;
	int computePreemptionSupported;
	int canUseHostPointerForRegisteredMem;
	int cooperativeLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables;
	int directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor;
	int accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported;
	int sparseCudaArraySupported;
	int hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported;
	int memoryPoolsSupported;
	int gpuDirectRDMASupported;
	unsigned int gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned int memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported;
	int ipcEventSupported;
	int clusterLaunch;
	int unifiedFunctionPointers;
	int deviceNumaConfig;
	int deviceNumaId;
	int mpsEnabled;
	int hostNumaId;
	unsigned int gpuPciDeviceID;
	unsigned int gpuPciSubsystemID;
	int hostNumaMultinodeIpcSupported;
	int reserved[56];
} cudaDeviceProp;

/* Of libcudart.so.12; programs of CUDA 11 know it up to reservedSharedMemPerBlock. */
typedef struct rt_device_prop_12 {
	char name[256];
	cudaUUID_t uuid;
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem;
	size_t sharedMemPerBlock;
	int regsPerBlock;
	int warpSize;
	size_t memPitch;
	int maxThreadsPerBlock;
	int maxThreadsDim[3];
	int maxGridSize[3];
	int clockRate;
	size_t totalConstMem;
	int major;
	int minor;
	size_t textureAlignment;
	size_t texturePitchAlignment;
	int deviceOverlap;
	int multiProcessorCount;
	int kernelExecTimeoutEnabled;
	int integrated;
	int canMapHostMemory;
	int computeMode;
	int maxTexture1D;
	int maxTexture1DMipmap;
	int maxTexture1DLinear;
	int maxTexture2D[2];
	int maxTexture2DMipmap[2];
	int maxTexture2DLinear[3];
	int maxTexture2DGather[2];
	int maxTexture3D[3];
	int maxTexture3DAlt[3];
	int maxTextureCubemap;
	int maxTexture1DLayered[2];
	int maxTexture2DLayered[3];
	int maxTextureCubemapLayered[2];
	int maxSurface1D;
	int maxSurface2D[2];
	int maxSurface3D[3];
	int maxSurface1DLayered[2];
	int maxSurface2DLayered[3];
	int maxSurfaceCubemap;
	int maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels;
	int ECCEnabled;
	int pciBusID;
	int pciDeviceID;
	int pciDomainID;
	int tccDriver;
	int asyncEngineCount;
	int unifiedAddressing;
	int memoryClockRate;
	int memoryBusWidth;
	int l2CacheSize;
	int persistingL2CacheMaxSize;
	int maxThreadsPerMultiProcessor;
	int streamPrioritiesSupported;
	int globalL1CacheSupported;
	int localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor;
	int managedMemory;
	int isMultiGpuBoard;
	int multiGpuBoardGroupID;
	int hostNativeAtomicSupported;
	int singleToDoublePrecisionPerfRatio;
	int pageableMemoryAccess;
	int concurrentManagedAccess;
	int computePreemptionSupported;
	int canUseHostPointerForRegisteredMem;
	int cooperativeLaunch;
	int cooperativeMultiDeviceLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables;
	int directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor;
	int accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported;
	int sparseCudaArraySupported;
	int hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported;
	int memoryPoolsSupported;
	int gpuDirectRDMASupported;
	unsigned int gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned int memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported;
	int ipcEventSupported;
	int clusterLaunch;
	int unifiedFunctionPointers;
	int reserved[63];
} rt_device_prop_12;

typedef rt_device_prop_12 rt_device_prop_11;
