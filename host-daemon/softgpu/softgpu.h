/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libvgpu-softgpu.so: a CUDA driver that runs PTX on the CPU
 *
 * The library exports the calls of libcuda that it implements under their usual names,
 * and the functions below for a program that wants more control than the environment
 * gives. A program that does not use them may simply link it in place of libcuda; then
 * these variables are read at cuInit:
 *
 *	VGPU_SOFTGPU_CC		compute capability, "12.1" unless given
 *	VGPU_SOFTGPU_MEMORY	device memory, such as "4G" or "512M"
 *	VGPU_SOFTGPU_THREADS	CPU threads, which are the multiprocessors
 *	VGPU_SOFTGPU_NAME	what cuDeviceGetName() says
 *	VGPU_SOFTGPU_DEVICES	how many devices there are, 1 unless given, at most 8
 *	VGPU_SOFTGPU_TIMEOUT	milliseconds a kernel may run; 0: for ever
 *	VGPU_SOFTGPU_LAUNCH_TIMEOUT	the same for all kernels that one launch starts
 *	VGPU_SOFTGPU_SCHEDULE	long or fair: how long a warp runs before the next
 *	VGPU_SOFTGPU_CHECK	what kernels are watched for: a list of memory, race,
 *				uninitialised and fatal, with commas (docs/softgpu.md);
 *				yes and 1 are memory
 *
 * The address of device memory is its address in this process.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A warp runs until it waits, which is fast, or takes turns of one operation. */
enum softgpu_config_schedule {
	SOFTGPU_CONFIG_LONG = 1,
	SOFTGPU_CONFIG_FAIR,
};

/* Bytes that follow exported memory in its file: what it is, for those that import it. */
#define SOFTGPU_LABEL_SIZE 4096u

/* Fields that are 0 or NULL keep what the environment or the default says. */
struct softgpu_config {
	uint32_t size; /* sizeof(struct softgpu_config) of the caller */
	uint32_t cc;   /* compute capability: 121 for 12.1 */
	uint64_t memory;
	uint32_t n_threads;
	uint32_t n_devices; /* 1 to 8, which look alike */
	uint32_t timeout_ms;
	const char *check; /* as VGPU_SOFTGPU_CHECK */
	const char *name;
	/* Receives what kernels print; called by those that wait for
	 * kernels and by others. Else: stdout. */
	void (*print)(void *data, const char *text, size_t size);
	void *print_data;
	/* Receives messages of failed assertions. Else: stderr. */
	void (*print_error)(void *data, const char *text, size_t size);
	/* Receives why code cannot be loaded, linked or run, on the thread of the call
	 * that is about to fail. The log has it too, but not as often. */
	void (*explain)(void *data, const char *text, size_t size);
	void *explain_data;
	/* Where managed variables lie: memory of the host window (see below) that the
	 * program sees too, aligned to 256 bytes; NULL where there is none. Called while
	 * an image is loaded. Else: device memory, which a native program sees. */
	void *(*managed_alloc)(void *data, uint64_t size);
	void (*managed_free)(void *data, void *memory, uint64_t size);
	void *managed_data;
	uint32_t schedule; /* enum softgpu_config_schedule */
	/* A part of a file in memory, unused so far, from which cuMemCreate() takes what
	 * is not to be exported; its size is a multiple of 64 KiB, 0: there is none, then
	 * softgpu makes files by memfd_create(). The descriptor remains open. */
	int memory_fd;
	uint64_t memory_offset;
	uint64_t memory_size;
	/* Makes a file in memory for `size` bytes of memory that is to be exported, and
	 * SOFTGPU_LABEL_SIZE bytes more; that size is sealed. Return: the descriptor,
	 * which is softgpu's, or -1. Else: memfd_create(). */
	int (*make_file)(void *data, uint64_t size);
	void *make_file_data;
};

/**
 * softgpu_configure() - choose what the device looks like, before cuInit
 *
 * Return: 0, -EINVAL for a value that is out of range, -EBUSY after cuInit.
 */
int softgpu_configure(const struct softgpu_config *config);

/**
 * softgpu_limit_launches() - limit the time of a launch, with all that it starts
 * @ms:		milliseconds in which a thread works on any of its kernels; 0: for ever
 *
 * A launch of a kernel starts that, and what kernels launch; one of a graph all kernels
 * of the graph. Beyond the limit the context fails with CUDA_ERROR_LAUNCH_TIMEOUT. At any
 * time, for launches that have not begun.
 */
void softgpu_limit_launches(uint32_t ms);

/**
 * softgpu_set_window() - set the place of memory, before the first context is made
 * @base:	device memory is allocated in [base, base + size)
 * @size:	0: softgpu reserves a window of its own
 * @host_base:	memory that cuMemHostRegister() may be given and kernels may then
 *		access; mapped by the caller as long as anything is registered in it
 * @host_size:	0: none
 *
 * The caller has reserved [base, base + size) and leaves its contents to softgpu, which
 * maps memory over the reservation. Bases and sizes are multiples of 64 KiB, addresses
 * are above 4 GiB, and the two windows do not overlap.
 *
 * Return: 0, -EINVAL, or -EBUSY once device memory is in use.
 */
int softgpu_set_window(
	uint64_t base, uint64_t size, uint64_t host_base, uint64_t host_size);

/*
 * cuMemHostRegister() also takes memory at addresses of cuMemAddressReserve() where
 * nothing is mapped: the caller has put it there, in whole units of the granularity, and
 * puts ordinary memory, readable and writable, in its place after cuMemHostUnregister().
 */

/**
 * softgpu_export() - make an allocation of cuMemAlloc() available to other processes
 * @address:	in the allocation
 * @basep:	the first byte of what the file holds: the allocation alone, or with other
 *		small ones around it
 * @sizep:	the size of the file, a multiple of what memory can be mapped by
 * @fdp:	the file, which cuMemImportFromShareableHandle() takes; the caller's
 *
 * A file that was not made before is asked from `make_file`. What was exported remains so
 * until it is freed. Kernels and copies under way are stopped for a moment.
 *
 * Return: 0, -EINVAL if nothing is allocated there, -ENOMEM or -errno.
 */
int softgpu_export(uint64_t address, uint64_t *basep, uint64_t *sizep, int *fdp);

#ifdef __cplusplus
}
#endif
