/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The execution engine of softgpu, seen from above
 *
 * A parsed PTX module becomes a *program*; each of its entry functions becomes,
 * at its first look-up, a *kernel* in decoded form; a *launch* names a kernel with
 * its shape and arguments; a *scratch* holds what one CPU thread needs to run
 * blocks of a launch, one block at a time.
 *
 *	softgpu_program_new()		once per loaded module and context
 *	softgpu_program_variable()	for each variable: the caller finds device
 *	softgpu_program_place()		memory and sets its address
 *	softgpu_program_fill()		writes initial values (after all are placed)
 *	softgpu_program_kernel()	decodes, or says what is not supported
 *	softgpu_launch_check()		once per launch, in the caller's thread
 *	softgpu_scratch_new()		one per worker thread (per block where all
 *					blocks of a cooperative grid run side by side)
 *	softgpu_run_blocks()		any number of threads, each with its scratch
 *
 * Memory. A device address is the address of the byte in this process. All device memory
 * is in at most SOFTGPU_WINDOWS_MAX windows; each has a map with one byte for each 64 KiB
 * page. The memory manager owns windows and maps; the engine reads them at every access
 * and touches nothing outside. A map byte may change while kernels run: the behaviour of
 * a kernel whose memory is freed while it runs is undefined, but stays within the
 * windows, so memory of a window must stay mapped (readable and writable for the process)
 * as long as a map byte, a launch in flight or a copy may still refer to it.
 *
 * Errors. Functions return a CUDA driver result as an int (0 is success), because their
 * callers report it. Details are in a message or a fault record.
 *
 * Threads. A program may be used from several threads at once: kernels are decoded
 * under a lock inside. A kernel is immutable and lives as long as its program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct softgpu_fault;
struct softgpu_kernel;
struct softgpu_launch;
struct softgpu_program;
struct softgpu_request; /* exec/service.h */
struct softgpu_scratch;
struct softgpu_textures; /* exec/texture.h */

/*
 * The CUDA results that the engine itself produces
 *
 * The CUDA manual documents which fault gives which result: 714 if a stack has no room
 * for a call, 718 for calls and branches to an address without code, 717 for an operation
 * on an address space that does not support it. Of the latter only atomic operations on
 * local memory are possible here, through a generic address; that they raise this fault
 * is known from the nouveau driver (gf100_mp_warp_error, 0x10). The manual does not
 * mention `trap`, and the PTX manual says only that it ends the kernel: 719, the launch
 * failure for unspecific reasons. An old report (ROCm/hip, issue 233) has 715 for it.
 */
enum softgpu_result {
	SOFTGPU_SUCCESS = 0,
	SOFTGPU_ERROR_INVALID_VALUE = 1,
	SOFTGPU_ERROR_OUT_OF_MEMORY = 2,
	SOFTGPU_ERROR_INVALID_PTX = 218,
	SOFTGPU_ERROR_UNSUPPORTED_PTX = 222,
	SOFTGPU_ERROR_INVALID_HANDLE = 400,
	SOFTGPU_ERROR_NOT_FOUND = 500,
	SOFTGPU_ERROR_ILLEGAL_ADDRESS = 700,
	SOFTGPU_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	SOFTGPU_ERROR_LAUNCH_TIMEOUT = 702,
	SOFTGPU_ERROR_ASSERT = 710,
	SOFTGPU_ERROR_HARDWARE_STACK = 714,
	SOFTGPU_ERROR_ILLEGAL_INSTRUCTION = 715,
	SOFTGPU_ERROR_MISALIGNED_ADDRESS = 716,
	SOFTGPU_ERROR_INVALID_ADDRESS_SPACE = 717,
	SOFTGPU_ERROR_INVALID_PC = 718,
	SOFTGPU_ERROR_LAUNCH_FAILED = 719,
	SOFTGPU_ERROR_NOT_SUPPORTED = 801,
};

/*
 * Limits, all of which the device attributes should agree with
 *
 * A block has at most 1024 threads (CUDA); shared memory follows the largest
 * opt-in size of any device (227 KiB); local memory is CUDA's own 512 KiB for a
 * thread; parameters follow CUDA 12.1 (32764 bytes).
 */
#define SOFTGPU_WARP_SIZE 32
#define SOFTGPU_BLOCK_THREADS_MAX 1024
#define SOFTGPU_SHARED_MAX (227u * 1024)
#define SOFTGPU_LOCAL_MAX (512u * 1024)
#define SOFTGPU_PARAMS_MAX 32764u
#define SOFTGPU_ENVREGS 32
/* Blocks of a cluster: CUDA's portable number, and that of the largest devices. */
#define SOFTGPU_CLUSTER_PORTABLE 8u
#define SOFTGPU_CLUSTER_MAX 16u

/*
 * The factor by which CUDA's stack size is multiplied: all values that live across a call
 * are in memory here, with parameters of 16 bytes each, so that frames are larger than
 * those of code for a processor that keeps them in registers.
 */
#define SOFTGPU_STACK_DEFAULT 1024u
#define SOFTGPU_STACK_FACTOR 4u

/*
 * Generic addresses
 *
 * Everything below 4 GiB is outside any global window: it contains the generic ranges of
 * the other spaces. Address 0 and its surroundings are never valid.
 */
#define SOFTGPU_GENERIC_SHARED 0x10000000u
#define SOFTGPU_GENERIC_LOCAL 0x20000000u
#define SOFTGPU_GENERIC_PARAM 0x30000000u
#define SOFTGPU_GENERIC_RANGE 0x01000000u
#define SOFTGPU_GLOBAL_LOWEST 0x100000000u

/*
 * The shared memory of all blocks of a cluster is within the range of shared addresses: a
 * block's own at the beginning, that of the block with rank r also at r + 1 times this
 * distance. An address at SOFTGPU_CLUSTER_NOWHERE times it belongs to no block: one was
 * asked for that the cluster does not have.
 */
#define SOFTGPU_CLUSTER_STRIDE (512u * 1024)
#define SOFTGPU_CLUSTER_NOWHERE 31u

#define SOFTGPU_WINDOWS_MAX 10
#define SOFTGPU_PAGE_SHIFT 16
#define SOFTGPU_PAGE_SIZE (UINT64_C(1) << SOFTGPU_PAGE_SHIFT)

/* Bits of a page map byte, and what an access asks for. */
#define SOFTGPU_READ 1u
#define SOFTGPU_WRITE 2u

/*
 * base and size are multiples of SOFTGPU_PAGE_SIZE, base is at least
 * SOFTGPU_GLOBAL_LOWEST, and pages has size / SOFTGPU_PAGE_SIZE bytes.
 */
struct softgpu_window {
	uint64_t base;
	uint64_t size;
	const uint8_t *pages;
	/* Or NULL: a bit for each byte, atomic; 1: nothing has written it since it was
	 * allocated. For SOFTGPU_CHECK_UNWRITTEN. */
	uint8_t *unwritten;
};

struct softgpu_space {
	uint32_t n_windows;
	struct softgpu_window windows[SOFTGPU_WINDOWS_MAX];
	/* Or NULL: called for addresses within a window but in a closed page. Any
	 * thread. */
	bool (*covers)(void *data, uint64_t address, uint64_t size, unsigned int access);
	/* Or NULL: says what is at an address, for the description of a fault. Any
	 * thread. */
	void (*describe)(void *data, uint64_t address, char *text, size_t size);
	void *data;
};

/* Variables that hold the number of an object, for kernels to use by their name. */
enum softgpu_reference {
	SOFTGPU_NO_REFERENCE,
	SOFTGPU_TEXTURE_REFERENCE,
	SOFTGPU_SURFACE_REFERENCE,
};

/* A variable of the module: .global, .const, .tex. */
struct softgpu_variable {
	const char *name;
	uint64_t size; /* in bytes, 0 never */
	uint32_t align;
	bool is_const;
	bool is_managed;
	bool is_local_symbol; /* neither .visible nor .weak */
	bool has_init;	      /* else it is zero-filled */
	uint8_t reference;    /* enum softgpu_reference */
	uint16_t sampling;    /* of a texture reference: enum ptx_sampling */
};

struct softgpu_message {
	char text[256];
};

struct softgpu_param {
	uint32_t offset;
	uint32_t size;
	uint32_t align;
};

struct softgpu_kernel_info {
	const char *name;
	uint32_t n_params;
	const struct softgpu_param *params;
	uint32_t params_size;
	uint32_t static_shared_size;
	uint32_t local_size;	    /* for each thread */
	uint32_t const_size;	    /* of the whole module */
	uint32_t bound_threads;	    /* what .maxntid/.reqntid say, at most 1024 */
	uint32_t max_threads;	    /* the same, or fewer because of the registers */
	uint32_t required_block[3]; /* all 0 where any shape will do */
	uint32_t required_cluster[3];
	uint32_t max_cluster;	  /* .maxclusterrank: blocks, 0 where it is not written */
	bool is_cluster_explicit; /* a launch has to say the shape of its clusters */
	bool blocks_are_clusters; /* a launch counts its grid in clusters */
	uint32_t n_registers;	  /* 32-bit registers that are live at once, >= 16 */
	uint32_t ptx_version;	  /* of .version: 75 for 7.5 */
	uint32_t target;	  /* of .target: 90 for sm_90 */
	uint32_t n_instructions;
};

/*
 * Services of the runtime for kernels. Any of them may be NULL; data is passed back. They
 * are called from the thread that runs the block.
 */
struct softgpu_hooks {
	void *data;
	/* Text of printf(), already formatted, not terminated. */
	void (*print)(void *data, const char *text, size_t size);
	/* The message of a failed assertion; NULL: as print. */
	void (*print_error)(void *data, const char *text, size_t size);
	/*
	 * Device-side malloc() and free(): an address in a window, or 0. The argument of
	 * free is any number. Both or none; they get `heap`.
	 */
	uint64_t (*malloc)(void *heap, uint64_t size);
	void (*free)(void *heap, uint64_t address);
	void *heap;
	/* Sets the condition of a graph. Return: whether there is such a condition. */
	bool (*set_condition)(void *conditions, uint64_t handle, uint32_t value);
	void *conditions;
	/* Takes a block that has not begun, or a cluster, out of the launch: it never
	 * runs. Return: whether there was one; its number in *numberp. */
	bool (*take_block)(const struct softgpu_launch *launch, uint64_t *numberp);
	/* Carries out a call of the device runtime. Return: a code of exec/service.h. */
	int (*serve)(
		const struct softgpu_launch *launch, struct softgpu_request *request);
};

/*
 * What kernels are watched for besides faults: hazards between warps in shared memory,
 * and loads of memory that nothing has written. Their code is another then, which
 * softgpu_program_watch() asks for.
 */
#define SOFTGPU_CHECK_RACES 1u
#define SOFTGPU_CHECK_UNWRITTEN 2u
#define SOFTGPU_CHECK_FATAL 4u /* a finding ends the kernel, with 719 */

struct softgpu_checks {
	unsigned int kinds;
	/* Called from the thread that runs the block, for each instruction once. */
	void (*report)(void *data, const struct softgpu_fault *finding);
	void *data;
};

/* Which warp of a block runs how long before the next. */
enum softgpu_schedule {
	SOFTGPU_SCHEDULE_LONG, /* until it waits or polls, or its slice is over */
	SOFTGPU_SCHEDULE_FAIR, /* one operation */
};

struct softgpu_launch {
	const struct softgpu_kernel *kernel;
	uint32_t grid[3]; /* in blocks, multiples of the cluster */
	uint32_t block[3];
	uint32_t cluster[3]; /* in blocks; all 0: none, as clusters of one block */
	uint32_t dynamic_shared_size;
	uint32_t stack_size; /* for each thread's calls; 0: SOFTGPU_STACK_DEFAULT */
	uint8_t schedule;    /* enum softgpu_schedule */

	/* The parameter block: offsets as in softgpu_kernel_info.params. */
	const void *params;
	uint32_t params_size;

	const struct softgpu_space *space;
	const struct softgpu_hooks *hooks;	 /* or NULL */
	const struct softgpu_textures *textures; /* or NULL */
	const struct softgpu_checks *checks;	 /* or NULL */
	void *owner; /* the caller's: for hooks that get the launch */

	/* %envreg<n>; NULL reads as 0. 1 and 2 point to the grid-sync workspace. */
	const uint32_t *envreg;
	uint32_t n_sms;
	uint64_t grid_id;

	/*
	 * Looked at every few thousand taken back-edges. *stop is read atomically
	 * (relaxed): once it is not 0, running blocks end with that number as their
	 * CUDA result. The deadline is CLOCK_MONOTONIC in ns, 0 for none: 702.
	 */
	const uint32_t *stop;
	uint64_t deadline_ns;
};

/* Where and why a block ended early. */
struct softgpu_fault {
	int code; /* enum softgpu_result, or the value of *stop */
	const char *kernel;
	uint32_t block[3];
	uint32_t thread[3];
	uint32_t line;	  /* in the PTX text */
	uint64_t address; /* for 700, 716, 717 */
	char text[640];	  /* a sentence for the log */
};

/* The result of softgpu_block_resume(). */
enum softgpu_progress {
	SOFTGPU_BLOCK_DONE,
	SOFTGPU_BLOCK_YIELDED,	 /* it polls: it may wait for others; call again */
	SOFTGPU_BLOCK_PREEMPTED, /* its time is over: call again */
	SOFTGPU_BLOCK_FAULTED,
};

/*
 * How long a block runs, looked at as often as *stop: until the time has come
 * (CLOCK_MONOTONIC) at which it ends where *wanted (relaxed) is not 0, or the last time.
 */
struct softgpu_slice {
	const uint32_t *wanted;
	uint64_t end_ns;
	uint64_t last_ns;
};

/*
 * softgpu_program_new() - prepare a module for execution
 * @programp: the new program
 * @module: parsed module; the program borrows it, it must live longer, and parses and
 *	drops its functions' bodies under the program's lock
 * @messagep: says what is wrong where the result is not 0
 *
 * Resolves the module's variables. No function is decoded yet.
 */
int softgpu_program_new(struct softgpu_program **programp, struct ptx_module *module,
	struct softgpu_message *messagep);
struct softgpu_program *softgpu_program_free(struct softgpu_program *program);

size_t softgpu_program_n_variables(const struct softgpu_program *program);
const struct softgpu_variable *softgpu_program_variable(
	const struct softgpu_program *program, size_t index);

/* Sets the address of a variable. Before the first kernel look-up, for every variable. */
void softgpu_program_place(
	struct softgpu_program *program, size_t index, uint64_t address);

/* Kernels can be watched. Before the first kernel look-up. Return: 0 or 2. */
int softgpu_program_watch(struct softgpu_program *program);

/*
 * Writes a variable's initial value (zeros included) to @to, which has room for its
 * size. References to other variables become the addresses they were placed at.
 */
int softgpu_program_fill(const struct softgpu_program *program, size_t index, void *to,
	struct softgpu_message *messagep);

/* Bodies of subroutines that were decoded; kernels share them. For tests. */
uint64_t softgpu_program_n_subroutines(struct softgpu_program *program);

/* Entry functions, in the order of the text; names for enumeration. */
size_t softgpu_program_n_kernels(const struct softgpu_program *program);
const char *softgpu_program_kernel_name(
	const struct softgpu_program *program, size_t index);

/*
 * softgpu_program_kernel() - find an entry function, decode it if need be
 *
 * Return: 0; 500 where there is no such entry function; 801, 222 or 218 where its
 * code cannot be run, with a message that names the instruction.
 */
int softgpu_program_kernel(struct softgpu_program *program, const char *name,
	const struct softgpu_kernel **kernelp, struct softgpu_message *messagep);

/* Returns: whether PTX may call a function of that name without a definition. */
bool softgpu_has_function(const char *name);

/* Returns: the number among the kernels, as softgpu_program_kernel_name() takes it, of
 * the one whose address in kernels that is, or SIZE_MAX. */
size_t softgpu_program_find_kernel(
	const struct softgpu_program *program, uint64_t address);

/*
 * Returns: whether NVIDIA's driver has a function of that name for kernels that launch
 * others, on which the library that nvcc adds to relocatable programs relies. Here they
 * may be named, and a kernel that calls one is refused.
 */
bool softgpu_is_device_runtime(const char *name);

const struct softgpu_kernel_info *softgpu_kernel_info(
	const struct softgpu_kernel *kernel);

/* Returns: 0, 1 for an impossible shape, 701 for too much of something. */
int softgpu_launch_check(const struct softgpu_launch *launch);

/*
 * softgpu_scratch_new() - memory in which one thread runs blocks
 * @smid: what %smid reads
 *
 * Grows at the first block of a launch to what that needs, and keeps it.
 */
int softgpu_scratch_new(struct softgpu_scratch **scratchp, uint32_t smid);

/* For another thread, whose %smid this is. */
void softgpu_scratch_move(struct softgpu_scratch *scratch, uint32_t smid);
struct softgpu_scratch *softgpu_scratch_free(struct softgpu_scratch *scratch);

/*
 * softgpu_run_blocks() - run the blocks [first, first + count), one after the other
 *
 * Blocks are numbered x first, then y, then z. Threads that share a grid should
 * take ascending ranges from one counter: a block may wait for one before it, never
 * for one after it. In a launch with clusters they are numbers of clusters instead, here
 * and below: the blocks of a cluster run in turn in one scratch.
 *
 * Return: 0, or the fault's code with *faultp filled in.
 */
int softgpu_run_blocks(struct softgpu_scratch *scratch,
	const struct softgpu_launch *launch, uint64_t first, uint64_t count,
	struct softgpu_fault *faultp);

/*
 * The same in steps, for grids whose blocks wait for each other: begin each block in a
 * scratch of its own, then resume them in turn until all are done. The launch must not
 * change until then, except for its deadline while none of them is being resumed. A block
 * that is abandoned needs no call. A block may move to another thread between calls.
 */
int softgpu_block_begin(struct softgpu_scratch *scratch,
	const struct softgpu_launch *launch, uint64_t block,
	struct softgpu_fault *faultp);
enum softgpu_progress softgpu_block_resume(struct softgpu_scratch *scratch,
	const struct softgpu_slice *slice, struct softgpu_fault *faultp);

/* The numbers of its blocks end here. */
static inline uint64_t softgpu_launch_count(const struct softgpu_launch *launch)
{
	uint64_t n = 1;

	for (int i = 0; i < 3; i++)
		n *= launch->grid[i] / (launch->cluster[i] ? launch->cluster[i] : 1);
	return n;
}

/* Bytes that a scratch holds. */
size_t softgpu_scratch_size(const struct softgpu_scratch *scratch);

/*
 * softgpu_space_find() - the window that holds [address, address + size)
 * @size: at least 1
 */
static inline const struct softgpu_window *softgpu_space_find(
	const struct softgpu_space *space, uint64_t address, uint64_t size)
{
	for (uint32_t i = 0; i < space->n_windows; i++) {
		const struct softgpu_window *window = &space->windows[i];
		uint64_t off = address - window->base;

		if (off < window->size && size <= window->size - off)
			return window;
	}
	return NULL;
}

/* Returns: whether the page of @address, which is within the window, permits the
 * access. */
static inline bool softgpu_window_allows(
	const struct softgpu_window *window, uint64_t address, unsigned int access)
{
	const uint8_t *page =
		&window->pages[(address - window->base) >> SOFTGPU_PAGE_SHIFT];

	return (__atomic_load_n(page, __ATOMIC_RELAXED) & access) == access;
}

/*
 * softgpu_space_check() - whether [address, address + size) permits the access
 * @size: 1 to SOFTGPU_PAGE_SIZE: the two ends are looked at, no page lies between
 */
static inline bool softgpu_space_check(const struct softgpu_space *space,
	uint64_t address, uint64_t size, unsigned int access)
{
	const struct softgpu_window *window = softgpu_space_find(space, address, size);

	if (!window)
		return false;
	if (__builtin_expect(
		    softgpu_window_allows(window, address, access) &&
			    softgpu_window_allows(window, address + size - 1, access),
		    1))
		return true;
	return space->covers && space->covers(space->data, address, size, access);
}

/* The same for any size: looks at each page. Empty ranges are allowed everywhere. */
static inline bool softgpu_space_check_range(const struct softgpu_space *space,
	uint64_t address, uint64_t size, unsigned int access)
{
	const struct softgpu_window *window;

	if (!size)
		return true;
	window = softgpu_space_find(space, address, size);
	if (!window)
		return false;
	for (uint64_t at = address; at - address < size;
		at = (at | (SOFTGPU_PAGE_SIZE - 1)) + 1)
		if (!softgpu_window_allows(window, at, access))
			return space->covers &&
			       space->covers(space->data, address, size, access);
	return true;
}
