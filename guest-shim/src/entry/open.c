/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the process: first use, fork, exit
 *
 * Loading the library has no effect; cuInit opens the channel. An ELF destructor closes
 * it: an atexit handler would run before the last calls of a CUDA runtime, which the
 * runtime makes from its own exit handler.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "code/function.h"
#include "code/memo.h"
#include "entry/graph-edit.h"
#include "entry/open.h"
#include "entry/pool-block.h"
#include "memory/arena.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "memory/share.h"
#include "memory/staging.h"
#include "process/call.h"
#include "process/context.h"
#include "process/environment.h"
#include "process/hello.h"
#include "process/print.h"
#include "process/shim.h"
#include "process/stream.h"
#include "process/thread.h"
#include "wait/capture.h"
#include "wait/record.h"
#include "wire/lock.h"
#include "wire/reason.h"
#include "wire/sweep.h"

/* The page that a forked child finds wiped. */
struct process_page {
	uint32_t state; /* enum shim_state */
	uint32_t mark;	/* 1; 0 in a forked child */
};

static struct {
	struct shim_lock lock;
	struct process_page *page;
	/* Inherited by a child, unlike the page. */
	bool was_ready;
} process;

static void set_state(enum shim_state state)
{
	__atomic_store_n(&process.page->state, state, __ATOMIC_RELEASE);
}

/* The child's copies of the descriptors would hide from the host that the parent ended. A
 * fork without these handlers is detected by the wiped page alone. */
static void after_fork_in_child(void)
{
	if (process.was_ready)
		shim_channel.transport.ops->close(&shim_channel.transport);
}

/* What the layers above contexts know of one that is wiped. */
static void drop_context(struct shim_context *context)
{
	shim_share_drop_context(context);
	shim_staging_drop_context(context);
	shim_record_drop_context(context);
	shim_registered_drop_context(context);
	shim_range_drop_context(context);
	shim_pools_drop_context(context);
	shim_function_forget_launches();
	shim_memo_forget_context();
}

/* A thread that ends gives its lane back. */
static void end_lane(struct shim_thread *thread)
{
	shim_call_lane_exit(thread);
	/* The lane's next thread has its own per-thread default stream. */
	shim_memo_forget(VGPU_REMEMBERS_STREAM);
}

static int set_up_once(void)
{
	struct process_page *page;
	int r;

	if (process.page)
		return 0;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return vgpu_error_origin(-errno);
	if (madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK))
		vgpu_log_warning("a fork cannot be told on this kernel: %m");
	shim_context_on_wipe(drop_context);
	r = shim_thread_setup(end_lane, shim_stream_drop_thread);
	if (!r)
		r = -pthread_atfork(NULL, NULL, after_fork_in_child);
	if (!r)
		r = shim_registered_setup();
	if (r)
		return vgpu_error_origin(r);

	page->mark = 1;
	__atomic_store_n(&process.page, page, __ATOMIC_RELEASE);
	__atomic_store_n(&shim_statep, &page->state, __ATOMIC_RELEASE);
	return 0;
}

/* A child of a process that never was ready may start afresh: it has one thread, and a
 * lock that it finds taken belongs to a thread that it does not have. */
static CUresult check_fork(void)
{
	struct process_page *page = __atomic_load_n(&process.page, __ATOMIC_ACQUIRE);

	if (!page || page->mark)
		return CUDA_SUCCESS;
	if (process.was_ready) {
		shim_reason_tell_fork();
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	page->mark = 1;
	process.lock = (struct shim_lock)SHIM_LOCK_INIT;
	return CUDA_SUCCESS;
}

static CUresult result_of_open(int r)
{
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case -ENODEV:
		return CUDA_ERROR_NO_DEVICE;
	case -EPROTO:
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case -EIO:
		return CUDA_ERROR_SYSTEM_NOT_READY;
	case -EAGAIN:
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	case -ENOENT:
	case -EACCES:
	case -ECONNREFUSED:
		/* VGPU_SOCKET is set and the socket does not answer. */
		return CUDA_ERROR_NO_DEVICE;
	default:
		return CUDA_ERROR_NO_DEVICE;
	}
}

/* The sentence if nothing more is known. */
static const char *describe(int r)
{
	return r ? strerror(-r) : "the host did not tell of its devices";
}

/* The host writes what it knows of all devices into the arena at once. */
static CUresult load_devices(void)
{
	struct vgpu_device_info *room =
		shim_arena_alloc(VGPU_DEVICES_MAX * sizeof(*room));
	CUresult result = shim_hello(room);

	if (room)
		shim_arena_free(room);
	return result;
}

static CUresult open_channel(int *rp)
{
	CUresult result;
	int r;

	*rp = r = set_up_once();
	if (r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shim_environment_read();

	*rp = r = shim_channel_open(&shim_channel);
	if (r)
		return result_of_open(r);
	*rp = r = shim_call_setup();
	if (!r)
		*rp = r = shim_arena_setup();
	if (r) {
		shim_channel_abandon(&shim_channel);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* From here on calls can travel; the first ask for the devices. */
	process.was_ready = true;
	set_state(SHIM_READY);
	result = load_devices();
	if (result != CUDA_SUCCESS) {
		set_state(SHIM_NEW);
		process.was_ready = false;
		shim_channel_abandon(&shim_channel);
		return result;
	}
	shim_sweep_start(&shim_channel.transport);
	return CUDA_SUCCESS;
}

static CUresult try_to_open(void)
{
	CUresult result;
	int r = 0;

	shim_reason_setup();
	shim_capture_set_copier(shim_graph_edit_capture);
	shim_reason_forget();
	result = open_channel(&r);
	if (result != CUDA_SUCCESS)
		shim_reason_tell_init(result, describe(r));
	return result;
}

CUresult shim_open(void)
{
	CUresult result;

	if (shim_is_ready())
		return CUDA_SUCCESS;
	if (__atomic_load_n(shim_statep, __ATOMIC_ACQUIRE) == SHIM_CLOSED)
		return CUDA_ERROR_DEINITIALIZED;
	result = check_fork();
	if (result != CUDA_SUCCESS)
		return result;

	shim_lock(&process.lock);
	if (!shim_is_ready())
		result = try_to_open();
	shim_unlock(&process.lock);
	return result;
}

/* Comes after the exit handlers of the program and of every CUDA runtime in it. */
__attribute__((__destructor__)) static void close_at_exit(void)
{
	struct shim_thread *thread;

	if (!shim_is_ready())
		return;
	thread = shim_thread_get();
	if (thread)
		shim_print_finish(thread);
	set_state(SHIM_CLOSED);
	/* What the program still uses, the host is about to have again. */
	shim_registered_drop();
	shim_channel_close(&shim_channel);
}
