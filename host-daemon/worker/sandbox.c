/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: what a worker gives up before it meets a guest
 *
 * It is entered after the driver was loaded and initialised, which needs files and
 * maps code, and before the worker says READY: so no byte of a guest was read yet, and
 * a worker that cannot enter is never given one. From then on a taken-over worker can
 * compute, use the descriptors it holds, and end.
 *
 * In order: a user id that no other process has (where vgpud is root), limits, and a
 * filter of system calls, which is an allow-list. A call that is not on it fails with
 * EPERM. In the strict profile each kind is logged once, which tells a mistake in the
 * list from an attack; NVIDIA's threads may block the signal that takes, so there the
 * kernel's audit log has it.
 *
 * A sanitizer's runtime gets along with that: it opened what it needs before. What it
 * reports from inside has addresses in place of names; `sandbox = no` brings them back.
 *
 * clone3() fails with ENOSYS: its flags lie in memory, where a filter cannot see them,
 * and the C library then uses clone().
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "control.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "worker/sandbox-calls.h"
#include "worker/sandbox.h"

/* Numbers of system calls that have a name in our log. */
#define CALLS_MAX 512
/* Threads: one for each guest thread that blocks, and what the driver takes. */
#define THREADS_MAX (VGPU_SLOTS_MAX + 512)
/* The strict profile opens nothing; NVIDIA's driver holds some per context. */
#define STRICT_FDS_MAX 64
#define DRIVER_FDS_MAX 4096

/* Else malloc() would open a file, to count processors, once threads contend. */
#define ARENAS_MAX 32

/* What a thread of ours is made with; everything else is a process or a namespace. */
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

static const char *call_names[CALLS_MAX];
static uint8_t call_logged[CALLS_MAX];

static void release_filter(scmp_filter_ctx filter)
{
	if (filter)
		seccomp_release(filter);
}

VGPU_DEFINE_CLEANUP(scmp_filter_ctx, release_filter);

enum sandbox_profile sandbox_profile(const struct driver *driver)
{
	return driver->set_window ? SANDBOX_STRICT : SANDBOX_DRIVER;
}

/*
 * Identity and limits
 */

/* Nothing of another worker's can be signalled, traced or opened from here. */
static int change_user(uid_t uid)
{
	if (!uid)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		setresuid(uid, uid, uid) < 0)
		return vgpu_error_origin(-errno);
	return 0;
}

static int limit(int resource, rlim_t value)
{
	const struct rlimit wanted = { value, value };

	return setrlimit(resource, &wanted) < 0 ? vgpu_error_origin(-errno) : 0;
}

static int set_limits(const struct sandbox_options *options, enum sandbox_profile profile)
{
	int r;

	r = limit(RLIMIT_CORE, 0);
	/* The only files that grow here are those of images; the log is a pipe. */
	if (!r && profile == SANDBOX_STRICT)
		r = limit(RLIMIT_FSIZE, CONTROL_IMAGE_SIZE_MAX);
	if (!r)
		r = limit(RLIMIT_NOFILE,
			profile == SANDBOX_STRICT ? STRICT_FDS_MAX : DRIVER_FDS_MAX);
	/* It counts all threads of the user: only a user of its own can have it. */
	if (!r && options->uid)
		r = limit(RLIMIT_NPROC, THREADS_MAX);
	return r;
}

/* A change of user made the kernel forget it; the parent may be gone by now. */
static int die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return vgpu_error_origin(-errno);
	return getppid() == parent ? 0 : -EPIPE;
}

/*
 * Filter
 */

/* Stands in for a refused call, in the thread that made it. */
static void handle_refused(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	int call = info->si_syscall;

	context->uc_mcontext.gregs[REG_RAX] = -EPERM;
	if (call < 0 || call >= CALLS_MAX ||
		__atomic_exchange_n(&call_logged[call], 1, __ATOMIC_RELAXED))
		return;
	vgpu_log_warning("The sandbox refuses system call %d (%s), now and from now on.",
		call, call_names[call] ? call_names[call] : "unknown");
}

/* The handler may run anywhere, so names are looked up before. */
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
		/* A call that this machine does not have is not made either. */
		if (call >= 0)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	}
	return r;
}

/* One bit pattern of one argument decides. */
static int allow_masked(scmp_filter_ctx filter, int call, unsigned int argument,
	uint64_t mask, uint64_t value)
{
	const struct scmp_arg_cmp compare = {
		.arg = argument,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = mask,
		.datum_b = value,
	};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compare);
}

static int allow_common(scmp_filter_ctx filter)
{
	const uint32_t all = UINT32_MAX;
	int r;

	r = allow_list(filter, sandbox_calls_common);
	/* Threads only, and no namespaces with them. */
	if (!r)
		r = allow_masked(filter, SCMP_SYS(clone), 0,
			THREAD_FLAGS | CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS |
				CLONE_NEWPID,
			THREAD_FLAGS);
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Signals to itself, as abort() sends them. */
	if (!r)
		r = allow_masked(filter, SCMP_SYS(tgkill), 0, all, getpid());
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, all, PR_SET_NAME);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, all, PR_GET_NAME);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(prctl), 0, all, PR_SET_VMA);
	return r;
}

static int allow_strict(scmp_filter_ctx filter)
{
	const uint32_t all = UINT32_MAX;
	int r;

	/* Images: memory files that are sealed before they are looked at. */
	r = allow_masked(filter, SCMP_SYS(memfd_create), 1, all,
		MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(fcntl), 1, all, F_ADD_SEALS);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
	if (!r)
		r = allow_masked(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
	return r;
}

static int load_filter(enum sandbox_profile profile)
{
	const bool strict = profile == SANDBOX_STRICT;
	_vgpu_cleanup_(release_filterp) scmp_filter_ctx filter =
		seccomp_init(strict ? SCMP_ACT_TRAP : SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return vgpu_error_origin(-ENOMEM);
	r = strict ? catch_refused() : 0;
	/* For all threads: the driver has its own by now. */
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!r && !strict)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	/* A tree in place of a list: the calls that wake a guest are made often. */
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!r)
		r = allow_common(filter);
	if (!r)
		r = strict ? allow_strict(filter)
			   : allow_list(filter, sandbox_calls_driver);
	if (!r)
		r = seccomp_load(filter);
	return r ? vgpu_error_origin(r) : 0;
}

int sandbox_enter(const struct sandbox_options *options, enum sandbox_profile profile)
{
	const pid_t parent = getppid();
	int r;

	if (options->off)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return vgpu_error_origin(-errno);
	mallopt(M_ARENA_MAX, ARENAS_MAX);
	r = change_user(options->uid);
	if (!r)
		r = die_with_parent(parent);
	if (!r)
		r = set_limits(options, profile);
	/* NVIDIA's driver reads its own /proc/self, which 0 would take away. */
	if (!r && prctl(PR_SET_DUMPABLE, profile != SANDBOX_STRICT) < 0)
		r = vgpu_error_origin(-errno);
	if (!r)
		r = load_filter(profile);
	return r ? vgpu_error_trace(r) : 0;
}
