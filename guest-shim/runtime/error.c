/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: their names and sentences, and the last one of each thread
 */

#include "runtime/context.h"
#include "runtime/register.h"
#include "runtime/thread.h"

RT_EXPORT const char *cudaGetErrorName(cudaError_t error);
RT_EXPORT const char *cudaGetErrorString(cudaError_t error);
RT_EXPORT cudaError_t cudaGetLastError(void);
RT_EXPORT cudaError_t cudaPeekAtLastError(void);

struct error {
	cudaError_t code;
	const char *name;
	const char *sentence;
};

#define ERROR(_code, _sentence)                                                          \
	{                                                                                \
		_code, #_code, _sentence                                                 \
	}

/* Ascending. */
static const struct error errors[] = {
	ERROR(cudaSuccess, "no error"),
	ERROR(cudaErrorInvalidValue, "invalid argument"),
	ERROR(cudaErrorMemoryAllocation, "out of memory"),
	ERROR(cudaErrorInitializationError, "the driver could not be initialised"),
	ERROR(cudaErrorCudartUnloading, "the process is ending"),
	ERROR(cudaErrorProfilerDisabled, "profiling is disabled in this process"),
	ERROR(cudaErrorProfilerNotInitialized,
		"the profiler is not initialised (deprecated)"),
	ERROR(cudaErrorProfilerAlreadyStarted,
		"the profiler is running already (deprecated)"),
	ERROR(cudaErrorProfilerAlreadyStopped, "the profiler does not run (deprecated)"),
	ERROR(cudaErrorInvalidConfiguration,
		"invalid grid, block or shared memory of a launch"),
	ERROR(cudaErrorInvalidPitchValue, "invalid pitch"),
	ERROR(cudaErrorInvalidSymbol, "no such device variable"),
	ERROR(cudaErrorInvalidHostPointer, "invalid host pointer (deprecated)"),
	ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer (deprecated)"),
	ERROR(cudaErrorInvalidTexture, "invalid texture"),
	ERROR(cudaErrorInvalidTextureBinding, "the texture is not bound"),
	ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
	ERROR(cudaErrorInvalidMemcpyDirection, "invalid direction of a copy"),
	ERROR(cudaErrorAddressOfConstant, "address of a constant (deprecated)"),
	ERROR(cudaErrorTextureFetchFailed, "a texture fetch failed (deprecated)"),
	ERROR(cudaErrorTextureNotBound, "the texture is not bound (deprecated)"),
	ERROR(cudaErrorSynchronizationError, "synchronisation failed (deprecated)"),
	ERROR(cudaErrorInvalidFilterSetting,
		"linear filtering of a texture that is read as integers"),
	ERROR(cudaErrorInvalidNormSetting,
		"a texture of this format is not readable as normalised floats"),
	ERROR(cudaErrorMixedDeviceExecution,
		"device code in emulation and on a device (deprecated)"),
	ERROR(cudaErrorNotYetImplemented, "not implemented yet (deprecated)"),
	ERROR(cudaErrorMemoryValueTooLarge, "an address is too large (deprecated)"),
	ERROR(cudaErrorStubLibrary, "the driver library is a stub for linking"),
	ERROR(cudaErrorInsufficientDriver,
		"no driver, or one that is too old for this runtime"),
	ERROR(cudaErrorCallRequiresNewerDriver, "the driver lacks this call"),
	ERROR(cudaErrorInvalidSurface, "invalid surface"),
	ERROR(cudaErrorDuplicateVariableName, "several variables have one name"),
	ERROR(cudaErrorDuplicateTextureName, "several textures have one name"),
	ERROR(cudaErrorDuplicateSurfaceName, "several surfaces have one name"),
	ERROR(cudaErrorDevicesUnavailable, "all devices are busy or unavailable"),
	ERROR(cudaErrorIncompatibleDriverContext,
		"the current context is not usable by this runtime"),
	ERROR(cudaErrorMissingConfiguration, "a launch without a configuration"),
	ERROR(cudaErrorPriorLaunchFailure, "an earlier launch failed (deprecated)"),
	ERROR(cudaErrorLaunchMaxDepthExceeded,
		"launches on the device are nested too deep"),
	ERROR(cudaErrorLaunchFileScopedTex,
		"a kernel launched on the device uses a texture of file scope"),
	ERROR(cudaErrorLaunchFileScopedSurf,
		"a kernel launched on the device uses a surface of file scope"),
	ERROR(cudaErrorSyncDepthExceeded,
		"synchronisation on the device is nested too deep"),
	ERROR(cudaErrorLaunchPendingCountExceeded,
		"too many launches of the device are pending"),
	ERROR(cudaErrorInvalidDeviceFunction,
		"no such device function, or none for this device"),
	ERROR(cudaErrorNoDevice, "no device"),
	ERROR(cudaErrorInvalidDevice, "no device of this number"),
	ERROR(cudaErrorDeviceNotLicensed, "the device has no licence"),
	ERROR(cudaErrorSoftwareValidityNotEstablished,
		"the start-up check of the software failed"),
	ERROR(cudaErrorStartupFailure, "the runtime failed to start"),
	ERROR(cudaErrorInvalidKernelImage, "invalid image of device code"),
	ERROR(cudaErrorDeviceUninitialized, "no context, or an invalid one"),
	ERROR(cudaErrorMapBufferObjectFailed, "mapping of a buffer failed"),
	ERROR(cudaErrorUnmapBufferObjectFailed, "unmapping of a buffer failed"),
	ERROR(cudaErrorArrayIsMapped, "the array is mapped"),
	ERROR(cudaErrorAlreadyMapped, "the resource is mapped already"),
	ERROR(cudaErrorNoKernelImageForDevice, "no image of device code for this device"),
	ERROR(cudaErrorAlreadyAcquired, "the resource is acquired already"),
	ERROR(cudaErrorNotMapped, "the resource is not mapped"),
	ERROR(cudaErrorNotMappedAsArray, "the resource is not mapped as an array"),
	ERROR(cudaErrorNotMappedAsPointer, "the resource is not mapped as memory"),
	ERROR(cudaErrorECCUncorrectable, "uncorrectable memory error"),
	ERROR(cudaErrorUnsupportedLimit, "the device does not have this limit"),
	ERROR(cudaErrorDeviceAlreadyInUse, "the device is used by another thread"),
	ERROR(cudaErrorPeerAccessUnsupported, "no access between these devices"),
	ERROR(cudaErrorInvalidPtx, "invalid PTX"),
	ERROR(cudaErrorInvalidGraphicsContext, "invalid graphics context"),
	ERROR(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error"),
	ERROR(cudaErrorJitCompilerNotFound, "the compiler of PTX was not found"),
	ERROR(cudaErrorUnsupportedPtxVersion, "the PTX is newer than the driver"),
	ERROR(cudaErrorJitCompilationDisabled, "compilation of PTX is disabled"),
	ERROR(cudaErrorUnsupportedExecAffinity, "unsupported execution affinity"),
	ERROR(cudaErrorUnsupportedDevSideSync,
		"device code synchronises in an unsupported way"),
	ERROR(cudaErrorContained, "a contained error of the hardware"),
	ERROR(cudaErrorInvalidSource, "invalid source of device code"),
	ERROR(cudaErrorFileNotFound, "file not found"),
	ERROR(cudaErrorSharedObjectSymbolNotFound, "a shared object lacks a symbol"),
	ERROR(cudaErrorSharedObjectInitFailed, "a shared object failed to initialise"),
	ERROR(cudaErrorOperatingSystem, "a call of the operating system failed"),
	ERROR(cudaErrorInvalidResourceHandle, "invalid handle"),
	ERROR(cudaErrorIllegalState,
		"a resource is in a state that does not permit this"),
	ERROR(cudaErrorLossyQuery, "the answer would be incomplete"),
	ERROR(cudaErrorSymbolNotFound, "symbol not found"),
	ERROR(cudaErrorNotReady, "not complete yet"),
	ERROR(cudaErrorIllegalAddress, "a kernel accessed an illegal address"),
	ERROR(cudaErrorLaunchOutOfResources,
		"the kernel needs more registers or threads than there are"),
	ERROR(cudaErrorLaunchTimeout, "a kernel ran for too long"),
	ERROR(cudaErrorLaunchIncompatibleTexturing, "incompatible texturing modes"),
	ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is enabled already"),
	ERROR(cudaErrorPeerAccessNotEnabled, "peer access is not enabled"),
	ERROR(cudaErrorSetOnActiveProcess, "the device is in use already"),
	ERROR(cudaErrorContextIsDestroyed, "the context is destroyed"),
	ERROR(cudaErrorAssert, "an assertion of a kernel failed"),
	ERROR(cudaErrorTooManyPeers, "too many peers"),
	ERROR(cudaErrorHostMemoryAlreadyRegistered, "the memory is registered already"),
	ERROR(cudaErrorHostMemoryNotRegistered, "the memory is not registered"),
	ERROR(cudaErrorHardwareStackError, "stack error of a kernel"),
	ERROR(cudaErrorIllegalInstruction, "illegal instruction in a kernel"),
	ERROR(cudaErrorMisalignedAddress, "a kernel accessed a misaligned address"),
	ERROR(cudaErrorInvalidAddressSpace,
		"a kernel accessed memory of the wrong space"),
	ERROR(cudaErrorInvalidPc, "invalid program counter in a kernel"),
	ERROR(cudaErrorLaunchFailure, "a kernel failed"),
	ERROR(cudaErrorCooperativeLaunchTooLarge,
		"the grid does not fit on the device at once"),
	ERROR(cudaErrorTensorMemoryLeak, "a kernel ended without freeing tensor memory"),
	ERROR(cudaErrorNotPermitted, "not permitted"),
	ERROR(cudaErrorNotSupported, "not supported"),
	ERROR(cudaErrorSystemNotReady, "the system is not ready yet"),
	ERROR(cudaErrorSystemDriverMismatch,
		"the versions of driver and display driver differ"),
	ERROR(cudaErrorCompatNotSupportedOnDevice,
		"the device does not support this kind of compatibility"),
	ERROR(cudaErrorMpsConnectionFailed, "no connection to the MPS server"),
	ERROR(cudaErrorMpsRpcFailure, "a call of the MPS server failed"),
	ERROR(cudaErrorMpsServerNotReady, "the MPS server is not ready"),
	ERROR(cudaErrorMpsMaxClientsReached, "the MPS server has too many clients"),
	ERROR(cudaErrorMpsMaxConnectionsReached,
		"the MPS server has too many connections"),
	ERROR(cudaErrorMpsClientTerminated, "the MPS server ended this client"),
	ERROR(cudaErrorCdpNotSupported, "launches on the device are not supported"),
	ERROR(cudaErrorCdpVersionMismatch,
		"launches on the device are of another version"),
	ERROR(cudaErrorStreamCaptureUnsupported, "not permitted during a capture"),
	ERROR(cudaErrorStreamCaptureInvalidated,
		"an earlier error invalidated the capture"),
	ERROR(cudaErrorStreamCaptureMerge, "two captures would be merged"),
	ERROR(cudaErrorStreamCaptureUnmatched,
		"the capture did not begin in this stream"),
	ERROR(cudaErrorStreamCaptureUnjoined,
		"a stream was not joined before the capture ended"),
	ERROR(cudaErrorStreamCaptureIsolation,
		"a dependency would cross the capture's boundary"),
	ERROR(cudaErrorStreamCaptureImplicit,
		"an implicit dependency on the legacy stream"),
	ERROR(cudaErrorCapturedEvent, "the event was last recorded in a capture"),
	ERROR(cudaErrorStreamCaptureWrongThread, "the capture began in another thread"),
	ERROR(cudaErrorTimeout, "timed out"),
	ERROR(cudaErrorGraphExecUpdateFailure,
		"the graph differs too much for an update"),
	ERROR(cudaErrorExternalDevice, "error of an external device"),
	ERROR(cudaErrorInvalidClusterSize, "invalid size of clusters"),
	ERROR(cudaErrorFunctionNotLoaded, "the function is not loaded"),
	ERROR(cudaErrorInvalidResourceType, "invalid type of resource"),
	ERROR(cudaErrorInvalidResourceConfiguration,
		"invalid configuration of resources"),
	ERROR(cudaErrorUnknown, "unknown error"),
	ERROR(cudaErrorApiFailureBase,
		"the driver returned an unknown code (deprecated)"),
};

static const struct error unknown = {
	.name = "unrecognized error code",
	.sentence = "unrecognized error code",
};

static const struct error *find(cudaError_t code)
{
	size_t low = 0, high = sizeof(errors) / sizeof(errors[0]);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (errors[middle].code == code)
			return &errors[middle];
		if (errors[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return &unknown;
}

const char *cudaGetErrorName(cudaError_t error)
{
	return find(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return find(error)->sentence;
}

/* Even this call starts the runtime, so that a program learns that it does not work. */
cudaError_t cudaPeekAtLastError(void)
{
	int error = rt_enter_init();

	return error ? error : rt_thread.last_error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = cudaPeekAtLastError();

	rt_thread.last_error = 0;
	return error;
}
