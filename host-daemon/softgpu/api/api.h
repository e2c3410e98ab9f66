/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The objects behind the CUDA driver API, and what their files offer each other
 *
 *	device		one per process, made by cuInit
 *	context		primary or explicit: streams, memory and modules of a program
 *	green context	the primary context with a part of the multiprocessors and another
 *			default stream; both its handles are looked up in green.c
 *	module		an image in one context: variables are placed, kernels runnable
 *	library		an image without a context; a module of it is made in each
 *			context that uses one of its kernels
 *	function	a kernel of a module; a kernel is one of a library
 *
 * Locks, in the order in which they are taken: device.lock (contexts), library.lock,
 * context.lock (objects of the context), module.lock (kernels being decoded), those
 * of memory and scheduler. None is held while something waits for the device.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This library exports what cuda.h declares, and softgpu.h. */
#pragma GCC visibility push(default)
#include "vgpu/cuda.h"
#include "softgpu.h"
#pragma GCC visibility pop

#include "api/object.h"
#include "exec/engine.h"
#include "mem/heap.h"
#include "mem/memory.h"
#include "sched/sched.h"

struct capture_event;
struct image;
struct image_log;
struct managed;
struct ptx_module;

#define API_DRIVER_VERSION 13000

/* Limits of a multiprocessor, as compute capability 12.x has them. */
#define API_SM_THREADS 1536u
#define API_SM_BLOCKS 24u
#define API_SM_SHARED (100u << 10)
#define API_SM_REGISTERS 65536u
#define API_BLOCK_SHARED (48u << 10)
#define API_BLOCK_SHARED_OPTIN (99u << 10)
#define API_BLOCK_SHARED_RESERVED 1024u
#define API_GRID_X_MAX 0x7fffffffu
/* The compute capability from which on devices have clusters and use tensor maps. */
#define API_CC_CLUSTER_MIN 90u
#define API_GRID_YZ_MAX 65535u
#define API_BLOCK_Z_MAX 64u
#define API_CONST_MAX (64u << 10)

/* The devices of the process: they are identical and share the threads, and each has its
 * own memory. */
struct device {
	uint32_t n_devices;
	char name[256];
	unsigned int cc; /* 121 for 12.1 */
	uint64_t total_memory;
	uint32_t n_threads;
	uint32_t timeout_ms;
	uint32_t launch_ms; /* of all that a launch starts; 0: for ever */
	uint32_t schedule;  /* enum softgpu_config_schedule; 0: not chosen yet */
	bool has_check;	    /* the configuration says what is checked */
	bool is_checked;    /* each access, to the byte */
	struct softgpu_checks checks; /* constant */
	CUuuid uuids[MEMORY_DEVICES_MAX];
	uint32_t places[MEMORY_DEVICES_MAX]; /* among all, also those not visible */
	char visible[256];		     /* softgpu_config.visible */
	struct softgpu_hooks hooks;
	void *(*managed_alloc)(void *data, uint64_t size);
	void (*managed_free)(void *data, void *memory, uint64_t size);
	void *managed_data;
	void (*explain)(void *data, const char *text, size_t size);
	void *explain_data;
	void (*fault)(void *data, int result, const char *text);
	void *fault_data;
	int memory_fd; /* as in struct softgpu_config */
	uint64_t memory_offset, memory_size;
	int (*make_file)(void *data, uint64_t size);
	void *make_file_data;
	struct softgpu_allowance *allowance; /* or NULL */
	struct memory_charging charging;

	pthread_mutex_t lock; /* for what follows */
	bool has_memory;      /* memory and sched are set up: the first context did */
	uint64_t window_base, window_size, host_base, host_size;
	uint64_t next_context_id;
	struct CUctx_st *primaries[MEMORY_DEVICES_MAX];
	uint64_t n_unloads; /* atomic: how many modules went */

	/* Locked by themselves. */
	struct memory memory;
	struct sched sched;
};

/* Output of kernels that was not fetched yet: a ring of records. */
struct print_fifo {
	pthread_mutex_t lock;
	char *bytes; /* NULL until the first kernel prints */
	size_t size;
	uint64_t head, tail;
};

/* A larger buffer is not asked for by cuCtxSetLimit, but adjusted to. */
#define API_PRINT_FIFO_MAX (16u << 20)

/* Settings, which calls read and write without a lock: each is whole by itself. */
#define setting_get(_setting) __atomic_load_n(&(_setting), __ATOMIC_RELAXED)
#define setting_set(_setting, _value)                                                    \
	__atomic_store_n(&(_setting), (_value), __ATOMIC_RELAXED)

/* A context whose device's memory another context reaches. */
struct peer {
	struct CUctx_st *context; /* NULL: the entry is free */
	uint64_t generation;	  /* of what was in it then */
};

#define CONTEXT_PEERS_MAX 32u

struct CUctx_st {
	struct object object;
	CUdevice device;
	bool is_primary;
	struct peer peers[CONTEXT_PEERS_MAX]; /* device.lock */
	/* The memory its kernels may access: windows of all devices, with size 0 for
	 * those without peer access; sizes are atomic, everything else is constant. */
	struct softgpu_space space;
	unsigned int flags;
	uint64_t id;
	uint32_t n_retains;  /* of a primary context; device.lock */
	bool is_active;	     /* a primary context comes and goes; lock to write, atomic */
	uint64_t generation; /* of what is in it: changes when it is reset; atomic */
	uint32_t n_captures; /* atomic: of its streams that the legacy stream waits for */
	struct sched_context sched;

	pthread_mutex_t lock;	 /* for what follows */
	struct sched_mark *gate; /* new streams wait for it first, or NULL */
	struct objects objects;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;

	struct softgpu_hooks hooks; /* of its kernels; constant */
	struct print_fifo fifo;
	struct heap heap;
	struct heap parameters; /* of launches that kernels are making */
};

struct CUstream_st {
	struct object object;
	struct sched_stream *sched; /* a reference */
	pid_t thread;		    /* the thread whose default stream it is, 0: none */
	CUgreenCtx green;	    /* a reference, or NULL */
};

/* Belongs to a primary context, and so do its streams. */
struct CUgreenCtx_st {
	struct object object;
	struct object face; /* what its CUcontext points to: a part */
	uint64_t id;
	struct sched_sms sms;
	uint32_t n_sms;
	bool is_destroyed;	    /* by cuGreenCtxDestroy */
	struct CUstream_st *stream; /* its default stream; a reference */
	struct sched_mark
		*gate; /* new streams wait for it first, or NULL; context.lock */
};

struct CUevent_st {
	struct object object;
	unsigned int flags;
	pthread_mutex_t lock;
	struct sched_mark *mark; /* the latest record; it has been submitted */
	struct sched_mark *next; /* of a launch that is being made; graph_lock */
	/* That was in a captured stream; graph_lock to write, atomic. */
	struct capture_event *captured;
	bool is_ended; /* graph_lock */
};

struct CUfunc_st {
	struct object object;
	struct CUmod_st *module;
	const char *name;
	const struct softgpu_kernel *kernel; /* NULL until it is decoded */
	const struct softgpu_kernel_info *info;
	uint32_t dynamic_shared_max; /* as set, UINT32_MAX: not set */
	int carveout;
	int cluster_width, cluster_height, cluster_depth; /* as set */
	int allows_larger_clusters, cluster_policy;	  /* as set */
	CUfunc_cache cache_config;
};

struct CUmod_st {
	struct object object;
	/* Atomic: 0 until it ends. Partner: sched_submit_if(), by which launches check
	 * that their objects still exist. */
	uint64_t n_ends;
	struct ptx_module *ptx;
	struct softgpu_program *program;
	uint64_t variables; /* device address of the block they share, 0: none */
	uint64_t *addresses;
	struct managed *managed;      /* the library's, where there is one */
	pthread_mutex_t lock;	      /* for the kernels and references */
	struct reference *references; /* those asked for; reference.c's */
	size_t n_functions;
	struct CUfunc_st *functions;
	struct CUlib_st *library; /* whose it is, a reference; or NULL */
	bool is_in_library;	  /* library.lock */
	TAILQ_ENTRY(CUmod_st) link;
};

struct CUkern_st {
	struct object object;
	struct CUlib_st *library;
	uint32_t ptx_index;	     /* in the library's declarations */
	uint32_t dynamic_shared_max; /* as set for all contexts, UINT32_MAX: not set */
};

struct CUlib_st {
	struct object object;
	struct image *image;
	struct ptx_module *ptx;	 /* declarations: names and parameters */
	struct managed *managed; /* the same in all contexts; NULL: there are none */
	size_t n_kernels;
	struct CUkern_st *kernels;
	pthread_mutex_t lock; /* for the modules */
	bool has_ended;
	TAILQ_HEAD(, CUmod_st) modules;
};

/*
 * Device
 */

extern struct device softgpu_device;

/* Return: 0, NOT_INITIALIZED before cuInit and in a child after fork. */
CUresult device_check(void);

/* Return: 0, NOT_INITIALIZED, INVALID_DEVICE. */
CUresult device_get(CUdevice number);

/* Reports to the caller of the API why the call is about to fail, if a callback is
 * set. */
void device_explain(const char *text);

/* With device.lock: memory and threads, for the first context. */
CUresult device_start(void);

/* The same with device_check() and without the lock: for calls that need no context. */
CUresult device_begin(void);

/* Return: whether there is such an attribute. */
bool device_attribute(CUdevice number, int attribute, int *valuep);

/*
 * Contexts
 */

/* The current context if work can be done in it. Return: 0, or why not. */
CUresult context_current(CUcontext *contextp);

/* The same without looking at faults. */
CUresult context_current_raw(CUcontext *contextp);

/* Makes a new stream wait for the events that all streams of its context wait for, and
 * those of its green context. */
CUresult event_gate(CUcontext context, CUgreenCtx green, struct sched_stream *stream);

/* Whether a launch may record the event in the stream. Return: 0, or why not. */
CUresult event_check_untimed(CUevent event, struct sched_stream *stream);
CUresult event_record(CUevent event, struct sched_stream *stream);

/* The mark of a record that has been submitted, which is the latest one now. */
void event_set_mark(CUevent event, struct sched_mark *mark);

/* Return: a reference to the mark of the latest record, NULL if there is none. */
struct sched_mark *event_mark(CUevent event);

/* Return: whether the context can be worked in. */
bool context_is_active(CUcontext context);
uint64_t context_generation(CUcontext context);

/*
 * Adds an object, which is complete, to its context: its handle is one from now on.
 *
 * Return: 0, OUT_OF_MEMORY, or CONTEXT_IS_DESTROYED where what was in the context when
 *	   the object was begun has gone. Then the object is still the caller's.
 */
CUresult context_add(struct object *object);

/* Takes an object out of its context. Return: whether the caller is to end it: it was
 * in there. */
bool context_remove(struct object *object);

/* Allocates memory that is freed with the context. Return: as context_add(). */
CUresult context_alloc(
	struct range *range, CUcontext context, uint64_t generation, uint64_t *addressp);

/* Return: whether copies of a context, or if NULL of the current one, may access all of
 * that memory, to read or write (SOFTGPU_READ, SOFTGPU_WRITE). */
bool context_reaches(
	CUcontext context, uint64_t address, uint64_t size, unsigned int access);

/* Holds a context. Return: the primary one for a green context, which *greenp is then, or
 * else NULL; NULL for what is no context. */
CUcontext context_hold(CUcontext handle, CUgreenCtx *greenp);

bool context_has_limit(CUlimit limit);

/* Takes from a heap of the context, which gets its memory at the first time. */
uint64_t context_heap_take(
	CUcontext context, struct heap *heap, uint64_t heap_size, uint64_t size);

/* For a new context, before kernels can have its space. */
void context_make_space(CUcontext context);

/* Sets what blocks of kernels that begin from now on may access. */
void context_open_space(CUcontext context);

/* The top of the calling thread's stack, NULL if it is empty. */
CUcontext stack_top(void);

/* The same, held. Return: NULL where it is gone too. Of a green context these are the
 * primary context. */
CUcontext stack_hold(void);

/* Return: the current green context, held, or NULL. */
CUgreenCtx stack_green(void);
CUresult stack_push(CUcontext context);
CUresult stack_pop(CUcontext *contextp);
CUresult stack_set(CUcontext context);

/*
 * Physical memory
 */

/* Return: a reference to the memory of a handle, or NULL. */
struct physical *allocation_memory(CUmemGenericAllocationHandle handle);

/* Return: 0, INVALID_VALUE, INVALID_DEVICE. Places on the host are one:
 * *devicep is RANGE_HOST_ACCESS. */
CUresult location_get(const CUmemLocation *location, uint32_t *devicep);

/*
 * Output of kernels
 */

/* Fills in what the program did not choose. */
void print_setup(struct softgpu_hooks *hooks);

/* For a new context, and for one whose contents go. */
void print_init(CUcontext context);
void print_reset(CUcontext context);
void print_deinit(CUcontext context);

/* Lets what was printed out; at the points that print.c names. */
void print_flush(CUcontext context);
void print_flush_current(void);

/* Return: whether the buffer is made, so that its size is settled. */
bool print_has_begun(CUcontext context);

/*
 * Streams
 */

/* Return: 0, INVALID_HANDLE, or why there is no context. */
CUresult stream_find(CUstream handle, struct sched_stream **streamp);

/* The same for what a stream cannot be asked while it is captured. */
CUresult stream_get(CUstream handle, struct sched_stream **streamp);

/* The same for work: the stream may be captured, and the work is to be then. */
CUresult stream_get_work(CUstream handle, struct sched_stream **streamp);
CUcontext stream_context(const struct sched_stream *stream);

/* In a green context if there is one; @thread: whose default stream it is, 0: none. */
CUresult stream_new(CUstream *streamp, CUcontext context, CUgreenCtx green,
	unsigned int flags, int priority, pid_t thread);

/* The multiprocessors that kernels of the current context can use. */
uint32_t green_current_sms(void);

/* Makes a stream wait for all work of a green context. With context.lock. */
CUresult green_join(CUgreenCtx green, struct sched_stream *stream);

/* Waits for all of it. */
CUresult green_synchronize(CUgreenCtx green);

/* Makes a stream wait for all that another one has now, and for a mark. */
CUresult event_join(struct sched_stream *stream, struct sched_stream *other);
CUresult event_hold(struct sched_stream *stream, struct sched_mark *mark);

/* With context.lock: streams that are yet to come wait for a mark too. */
CUresult event_gate_add(
	CUcontext context, struct sched_mark **gatep, struct sched_mark *mark);

/*
 * Modules, libraries, functions
 */

/* A module of a library, which has checked that bodies are PTX and has the managed
 * variables; without one the module sees to that itself. */
CUresult module_new(CUmodule *modulep, CUcontext context, const struct image *image,
	CUlibrary library, struct image_log *log);
CUresult module_get_variable(
	CUmodule module, const char *name, CUdeviceptr *addressp, size_t *sizep);

/* Ends a module, with what runs in its context. Return: the context's fault, or
 * INVALID_HANDLE where another thread has been here first. */
CUresult module_delete(CUmodule module);

/* Reads an image from a file and appends a NUL; the caller frees it. */
CUresult module_read_file(const char *name, char **textp, size_t *sizep);

/*
 * Managed variables
 *
 * They exist once for all contexts, and before any: each has its place in memory that
 * the program sees. *managedp is NULL if the image has none.
 */
CUresult managed_new(struct managed **managedp, const struct ptx_module *ptx);
void managed_free(struct managed *managed);

/* Writes the initial values of all that depend on no other variable, refuses others. */
CUresult managed_fill(struct managed *managed, struct softgpu_message *message);

/* Return: the address of a managed variable, 0: it is not managed. */
uint64_t managed_find(const struct managed *managed, const char *name, size_t *sizep);

/* The function of a library's kernel in a context; its module is made if need be. */
CUresult library_function(CUkernel kernel, CUcontext context, CUfunction *functionp);
const char *kernel_name(const struct CUkern_st *kernel);

/* A module of a library is unloaded with its context. */
void library_forget(CUmodule module);

/* Accepts a kernel too; it is the function of the current context then. */
CUresult function_get(CUfunction handle, CUfunction *functionp);

/* Decodes the function unless that was done, and reports why it cannot be run. */
CUresult function_load(CUfunction function);

/* The same for a launch by a kernel: the reason goes to the log alone. */
CUresult function_load_logged(CUfunction function);

/* The same for who only looks for it: that it cannot be run is no error yet. */
CUresult function_look_up(CUfunction function);

/* Dynamic shared memory that a launch may ask for. */
uint32_t function_dynamic_shared_max(CUfunction function);

/* The shape of the clusters that every launch has; all 0: none is required. And how many
 * blocks one may have. */
void function_required_cluster(CUfunction function, uint32_t cluster[3]);
uint32_t function_cluster_max(CUfunction function);

/* texture.c: what kernels find objects in */
const struct softgpu_textures *texture_table(void);

/* reference.c: ends those of a module that is unloaded */
void reference_forget(CUmodule module);

/* Blocks of a function that one multiprocessor holds. */
uint32_t occupancy_blocks(
	CUfunction function, uint64_t n_threads, uint64_t dynamic_shared);
