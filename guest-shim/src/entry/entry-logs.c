/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: the error log
 *
 * They need no cuInit, whose failure is in the log, too.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "process/shim.h"
#include "wire/error-log.h"

CUresult shim_cuLogsRegisterCallback(
	CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
	if (!callbackFunc || !callback_out)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_error_log_listen(callbackFunc, userData, callback_out)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	return shim_error_log_stop(callback) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	if (!iterator_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*iterator_out = shim_error_log_position();
	return CUDA_SUCCESS;
}

CUresult shim_cuLogsDumpToMemory(
	CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	size_t room;

	if (!buffer || !size || !*size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	room = *size < SHIM_ERROR_LOG_DUMP_MAX ? *size : SHIM_ERROR_LOG_DUMP_MAX;
	/* The NUL is one of the bytes written. */
	*size = shim_error_log_read(iterator, buffer, room) + 1;
	return CUDA_SUCCESS;
}

static bool write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		text += n;
		size -= (size_t)n;
	}
	return true;
}

CUresult shim_cuLogsDumpToFile(
	CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	CUlogIterator after = iterator ? *iterator : 0;
	size_t size;

	if (!pathToFile || flags)
		return CUDA_ERROR_INVALID_VALUE;
	text = malloc(SHIM_ERROR_LOG_TEXT_MAX);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = open(pathToFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	size = shim_error_log_read(
		iterator ? &after : NULL, text, SHIM_ERROR_LOG_TEXT_MAX);
	if (!write_all(fd, text, size))
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (iterator)
		*iterator = after;
	return CUDA_SUCCESS;
}
