/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox filter: the system calls of a worker, and the permitted values of their
 * arguments
 *
 * An allow-list: a call that is not on it fails with EPERM. In the strict profile each
 * kind is logged once, which distinguishes a mistake in the list from an attack. NVIDIA's
 * threads may block the signal that this needs, so in the driver profile the kernel's
 * audit log records it.
 *
 * A filter sees register values, not the memory to which pointers refer. It sees 64 bits,
 * of which the kernel uses 32 if the argument is an int, so all comparisons are masked.
 *
 * clone3() fails with ENOSYS: its flags are in memory, where a filter cannot see them,
 * and the C library then uses clone().
 */

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/run/sandbox-calls.h"
#include "worker/run/sandbox-filter.h"
#include "worker/run/sandbox.h"

/* Numbers of system calls whose names are logged. */
#define CALLS_MAX 512
#define ALL_BITS UINT32_MAX

/* The flags of a thread, and those that the C library may add; everything else creates a
 * process, a namespace, or a traced thread. */
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define THREAD_MORE                                                                      \
	(CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |     \
		CLONE_CHILD_SETTID | CLONE_DETACHED)

static const char *call_names[CALLS_MAX];
static uint8_t call_logged[CALLS_MAX];

static void release_filter(scmp_filter_ctx filter)
{
	if (filter)
		seccomp_release(filter);
}

VGPU_DEFINE_CLEANUP(scmp_filter_ctx, release_filter);

/* Signal handler for a refused call, in its thread. */
static void handle_refused(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	int call = info->si_syscall;

	context->uc_mcontext.gregs[REG_RAX] = -EPERM;
	if (call < 0 || call >= CALLS_MAX ||
		__atomic_exchange_n(&call_logged[call], 1, __ATOMIC_RELAXED))
		return;
	vgpu_log_warning("the sandbox refuses system call %d (%s), now and from now on",
		call, call_names[call] ? call_names[call] : "unknown");
}

/* The handler must be async-signal-safe, so names are looked up before. */
static int catch_refused(void)
{
	const struct sigaction action = {
		.sa_sigaction = handle_refused,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	for (int i = 0; i < CALLS_MAX; i++)
		call_names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
	return sigaction(SIGSYS, &action, NULL) < 0 ? vgpu_error_origin(-errno) : 0;
}

static int allow_list(scmp_filter_ctx filter, const char *const *names)
{
	int r = 0, call;

	for (; *names && !r; names++) {
		call = seccomp_syscall_resolve_name(*names);
		/* Ignore calls that this architecture does not have. */
		if (call >= 0)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	}
	return r;
}

/* The required value of the bits under the mask of one argument. */
struct pattern {
	unsigned int argument;
	uint64_t mask;
	uint64_t value;
};

static struct scmp_arg_cmp compare(const struct pattern *pattern)
{
	return (struct scmp_arg_cmp){
		.arg = pattern->argument,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = pattern->mask,
		.datum_b = pattern->value,
	};
}

static int allow_masked(scmp_filter_ctx filter, int call, unsigned int argument,
	uint64_t mask, uint64_t value)
{
	const struct pattern pattern = { argument, mask, value };
	const struct scmp_arg_cmp cmp = compare(&pattern);

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &cmp);
}

/* Allows a call if two arguments match their patterns. */
static int allow_both(
	scmp_filter_ctx filter, int call, struct pattern a, struct pattern b)
{
	const struct scmp_arg_cmp cmp[] = { compare(&a), compare(&b) };

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 2, cmp);
}

static int allow_common(scmp_filter_ctx filter)
{
	int r;

	r = allow_list(filter, sandbox_calls_common);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(clone), 0,
			ALL_BITS & ~(uint32_t)THREAD_MORE, THREAD_FLAGS);
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Signals to the process itself, for abort(). */
	if (!r)
		r = allow_masked(filter, SCMP_SYS(tgkill), 0, ALL_BITS, getpid());
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, ALL_BITS, PR_SET_NAME);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, ALL_BITS, PR_GET_NAME);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, ALL_BITS, PR_SET_VMA);
	return r;
}

/*
 * Strict profile
 */

/*
 * Memory must not be executable, and anonymous memory must be private: pages of anonymous
 * shared memory persist after munmap(), and vgpud could not count them.
 */
static int allow_strict_mmap(scmp_filter_ctx filter)
{
	const struct pattern no_code = { 2, PROT_EXEC, 0 };
	const uint32_t kinds[] = { MAP_ANONYMOUS, MAP_SHARED, 0 };
	int r = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !r; i++)
		r = allow_both(filter, SCMP_SYS(mmap), no_code,
			(struct pattern){ 3, MAP_SHARED | MAP_ANONYMOUS, kinds[i] });
	return r;
}

/* Memory files of vgpud: images are sealed before they are checked, and of memory that
 * another process shares the seals are checked. */
static int allow_strict_fcntl(scmp_filter_ctx filter)
{
	static const uint32_t commands[] = { F_ADD_SEALS, F_GET_SEALS, F_DUPFD_CLOEXEC };
	int r = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands) && !r; i++)
		r = allow_masked(filter, SCMP_SYS(fcntl), 1, ALL_BITS, commands[i]);
	return r;
}

static int allow_strict(scmp_filter_ctx filter)
{
	int r;

	r = allow_strict_fcntl(filter);
	if (!r)
		r = allow_strict_mmap(filter);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
	return r;
}

/*
 * Driver profile
 */

/* Not F_SETOWN, F_SETLEASE or F_NOTIFY, which affect other processes. */
static int allow_driver_fcntl(scmp_filter_ctx filter)
{
	static const uint32_t commands[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,
		F_GETFL, F_ADD_SEALS, F_GET_SEALS };
	int r = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands) && !r; i++)
		r = allow_masked(filter, SCMP_SYS(fcntl), 1, ALL_BITS, commands[i]);
	if (!r)
		r = allow_both(filter, SCMP_SYS(fcntl),
			(struct pattern){ 1, ALL_BITS, F_SETFL },
			(struct pattern){ 2, O_ASYNC, 0 });
	return r;
}

/* Existing files may be opened; none may be created. */
static int allow_driver_open(scmp_filter_ctx filter)
{
	const int creates = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
	int r;

	r = allow_masked(filter, SCMP_SYS(open), 1, creates, 0);
	return r ? r : allow_masked(filter, SCMP_SYS(openat), 2, creates, 0);
}

/*
 * All numbers except 0x5400 to 0xffff, the range of the generic requests for descriptors
 * and sockets. FIOASYNC and FIOSETOWN among them send signals to other processes.
 * NVIDIA's requests are above, with an encoded size, and below.
 */
static int allow_driver_ioctl(scmp_filter_ctx filter)
{
	static const struct pattern below[] = {
		{ 1, 0xffffc000, 0x0000 },
		{ 1, 0xfffff000, 0x4000 },
		{ 1, 0xfffffc00, 0x5000 },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(below) / sizeof(*below) && !r; i++)
		r = allow_masked(
			filter, SCMP_SYS(ioctl), 1, below[i].mask, below[i].value);
	for (uint32_t bit = 1u << 16; bit && !r; bit <<= 1)
		r = allow_masked(filter, SCMP_SYS(ioctl), 1, bit, bit);
	return r;
}

/* Limits and affinity of the process itself; threads other than the first must pass 0. */
static int allow_driver_self(scmp_filter_ctx filter)
{
	int r;

	r = allow_masked(filter, SCMP_SYS(prlimit64), 0, ALL_BITS, 0);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(sched_setaffinity), 0, ALL_BITS, 0);
	if (!r)
		r = allow_masked(
			filter, SCMP_SYS(sched_setaffinity), 0, ALL_BITS, getpid());
	return r;
}

static int allow_driver(scmp_filter_ctx filter)
{
	int r;

	r = allow_list(filter, sandbox_calls_driver);
	if (!r)
		r = allow_driver_fcntl(filter);
	if (!r)
		r = allow_driver_open(filter);
	if (!r)
		r = allow_driver_ioctl(filter);
	if (!r)
		r = allow_driver_self(filter);
	return r;
}

int sandbox_filter_load(enum sandbox_profile profile)
{
	const bool strict = profile == SANDBOX_STRICT;
	_vgpu_cleanup_(release_filterp) scmp_filter_ctx filter =
		seccomp_init(strict ? SCMP_ACT_TRAP : SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return vgpu_error_origin(-ENOMEM);
	r = strict ? catch_refused() : 0;
	/* For all threads: the driver may have started some by now. */
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!r && !strict)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	/* A binary tree instead of a list: futex() and write() are frequent. */
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!r)
		r = allow_common(filter);
	if (!r)
		r = strict ? allow_strict(filter) : allow_driver(filter);
	if (!r)
		r = seccomp_load(filter);
	return r ? vgpu_error_origin(r) : 0;
}
