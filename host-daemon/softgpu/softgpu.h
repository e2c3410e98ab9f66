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

#include <stdbool.h>
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

/*
 * Device time that a process has used, and the limit up to which it may: memory that
 * somebody else, who shares the CPU among processes, writes and reads at any time.
 *
 * Device time is the CPU time of the threads that run kernels. They stop before a block
 * or, within 2 ms, inside one, when the limit is reached, and continue when it is raised:
 * so a process can use a little more than its limit. All words are atomic; memory that is
 * zero limits nothing.
 */
struct softgpu_allowance {
	/* of who shares */
	uint64_t limit_ns;   /* of used_ns; written before is_limited */
	uint64_t beat_ns;    /* CLOCK_MONOTONIC: renewed at least every
				SOFTGPU_ALLOWANCE_BEAT_NS while there is a limit, or it
				lapses */
	uint32_t is_limited; /* enum softgpu_allowance_limit */
	uint32_t n_changes;  /* a futex: incremented, and woken, after a change that lets
				threads continue */

	/* softgpu's */
	uint64_t used_ns; /* device time so far */
	uint64_t held_ns; /* threads have waited for the limit; sum of all threads */
	uint32_t n_busy;  /* threads that kernels under way could keep busy, whether a
			     CPU runs them or not */
	uint32_t n_held;  /* threads that wait for the limit */
	/* of those who measure the time by events; 0 with softgpu */
	uint64_t devices; /* bits: on which there was work lately */
	uint64_t seen_ns; /* CLOCK_MONOTONIC: there was work, and used_ns counts it until
			     then; 0: there was none */
	/* of who shares, and for the next one: how much of used_ns counts, up to which
	 * value of used_ns; 0: all of it */
	uint64_t counted_ns;
	uint64_t counted_until_ns;
	/* softgpu's: launches of kernels and graphs that were accepted, and have not
	 * begun, plus 1; 0: unknown */
	uint64_t n_pending;
	/* softgpu's: contexts that a kernel has broken, whose calls return it now */
	uint64_t n_faults;
	uint64_t reserved[2];
};

enum softgpu_allowance_limit {
	SOFTGPU_ALLOWANCE_UNLIMITED,
	SOFTGPU_ALLOWANCE_LIMITED,
	SOFTGPU_ALLOWANCE_PAUSED, /* the limit is 0, and does not lapse */
};

#define SOFTGPU_ALLOWANCE_BEAT_NS UINT64_C(200000000)

/* Bytes that follow exported memory in its file: what it is, for those that import it. */
#define SOFTGPU_LABEL_SIZE 4096u

/* Fields that are 0 or NULL keep what the environment or the default says. */
struct softgpu_config {
	uint32_t size; /* sizeof(struct softgpu_config) of the caller */
	uint32_t cc;   /* compute capability: 121 for 12.1 */
	uint64_t memory;
	uint32_t n_threads;
	uint32_t n_devices; /* 1 to 8, which look alike */
	/* Which of them the process sees, and in which order: indices, GPU-UUID or the
	 * beginning of one, with commas. As in CUDA_VISIBLE_DEVICES what follows one that
	 * does not exist is hidden, too. Else: all. */
	const char *visible;
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
	/* NULL: the device is not shared. */
	struct softgpu_allowance *allowance;
	/* Device memory that softgpu takes without a call that names its size: variables
	 * of modules, and heaps of kernels. In multiples of 512 bytes, before it is
	 * taken, with a lock held: they make no calls of softgpu. Return of charge: 0, or
	 * it may not be had. Else: only the device's own limit counts. */
	int (*charge)(void *data, uint32_t device, uint64_t size);
	void (*refund)(void *data, uint32_t device, uint64_t size);
	void *charge_data;
	/* Receives which kernel is about to break a context, and how, once for each
	 * context and before any call returns it; with a lock held: it makes no calls of
	 * softgpu. */
	void (*fault)(void *data, int result, const char *text);
	void *fault_data;
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

/* Who wants to know when work begins and is complete: kernels, copies, fills and calls of
 * the host. */
struct softgpu_trace {
	/* Read at each submission, begin and end: 0: nothing is wanted now. */
	const uint64_t *is_wanted;
	/* Called where work is submitted, on that thread, which may hold a lock: no call
	 * of the API. A number that `note` gets with it. */
	uint64_t (*get_tag)(void *data);
	/* Called on a thread that may hold a lock: no call of the API. The tag is 0 for
	 * what graphs and kernels start. The name is a kernel's, or has a blank. */
	void (*note)(
		void *data, uint64_t tag, uint64_t stream, const char *name, int is_end);
	void *data;
};

/**
 * softgpu_trace() - be told of work, before the first context is made
 * @trace:	remains the caller's, and valid
 */
void softgpu_trace(const struct softgpu_trace *trace);

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

/* Memory at addresses that the process can read and write; the id is never used twice. */
struct softgpu_piece {
	uint64_t address;
	uint64_t size;
	uint64_t id;
};

/**
 * softgpu_list_memory() - list the memory of devices that could be elsewhere for a while
 * @piecesp:	to be freed
 *
 * For a process in which no other thread makes calls meanwhile. Left out are memory that
 * other processes share and memory that is mapped in parts.
 *
 * Return: 0, -ENOMEM, -EBUSY: work is not complete, -ENOTSUP: the program reaches memory
 * of the device window itself, by cuMemHostAlloc() or as managed memory.
 */
int softgpu_list_memory(struct softgpu_piece **piecesp, size_t *n_piecesp);

/* Gives the pages of that memory back to the system after somebody has copied them. They
 * are zeros then, until somebody writes them again; no call may use them before. */
void softgpu_drop_memory(const struct softgpu_piece *pieces, size_t n_pieces);

/* Return: whether that memory is still allocated. */
bool softgpu_has_memory(const struct softgpu_piece *piece);

#ifdef __cplusplus
}
#endif
