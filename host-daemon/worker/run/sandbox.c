/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: the rights that a worker gives up before it serves a guest
 *
 * In two steps. Before the driver is loaded, while there is one thread: new privileges,
 * and all files but those that a driver needs (sandbox-files.c). After the driver was
 * initialised, which maps code and talks to other processes, and before the worker says
 * READY, so that no byte of a guest was read yet: a user id that no other process has (if
 * vgpud is root), limits, and a filter of system calls (sandbox-filter.c). A worker for
 * which either step fails is never given a guest. From then on a worker that was taken
 * over can compute, use the descriptors it has, and end.
 *
 * No file grows: images are memory files that vgpud created with their final size.
 *
 * A sanitizer's runtime works inside: it opened what it needs before. Its reports have
 * addresses instead of names there; `sandbox = no` restores the names.
 */

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control/control.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/run/landlock.h"
#include "worker/run/sandbox-files.h"
#include "worker/run/sandbox-filter.h"
#include "worker/run/sandbox.h"

/* The strict profile opens nothing; NVIDIA's driver has some per context. */
#define STRICT_FDS_MAX 64
#define DRIVER_FDS_MAX 4096

/* Else malloc() would open a file, to count processors, once threads contend. */
#define ARENAS_MAX 32

static struct landlock landlock = LANDLOCK_NULL;

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

/* Never more than it was: only root may raise a limit, and it is root no more. */
static int limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return vgpu_error_origin(-errno);
	if (limit.rlim_max > value)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? vgpu_error_origin(-errno) : 0;
}

static int set_limits(const struct sandbox_options *options, enum sandbox_profile profile)
{
	int r;

	/* A file that may not grow is an error to the caller, not the end. */
	signal(SIGXFSZ, SIG_IGN);
	r = limit(RLIMIT_CORE, 0);
	/* Nothing is written to files, memory files included; the log is a pipe, and
	 * images are written by mappings of files that have their final size. */
	if (!r)
		r = limit(RLIMIT_FSIZE, 0);
	if (!r)
		r = limit(RLIMIT_NOFILE,
			profile == SANDBOX_STRICT ? STRICT_FDS_MAX : DRIVER_FDS_MAX);
	/* RLIMIT_NPROC counts all threads of the user: only a worker with its own user
	 * can have it. For others the broker counts. */
	if (!r && options->uid)
		r = limit(RLIMIT_NPROC, CONTROL_THREADS_MAX);
	return r;
}

/* A change of user made the kernel forget it; the parent may be gone by now. */
static int die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return vgpu_error_origin(-errno);
	return getppid() == parent ? 0 : vgpu_error_origin(-EPIPE);
}

int sandbox_begin(
	const struct sandbox_options *options, const struct driver_options *driver)
{
	int r;

	if (options->off)
		return 0;
	/* Caches that a driver would keep for the next process, on a disk of the host. */
	if (setenv("CUDA_CACHE_DISABLE", "1", 1) < 0)
		return vgpu_error_origin(-errno);
	r = sandbox_files_limit(&landlock, driver);
	return r ? vgpu_error_trace(r) : 0;
}

/* Returns: whether the driver may serve guests with the rights of vgpud itself. */
static bool check_separation(
	const struct sandbox_options *options, enum sandbox_profile profile)
{
	if (options->uid || options->unprivileged || profile == SANDBOX_STRICT)
		return true;
	vgpu_log_error("NVIDIA's driver is not used where vgpud is not root: without "
		       "separate user ids, workers that guests have taken over could "
		       "harm each other and other processes and files of this user; run "
		       "vgpud as root, or set allow-unprivileged = yes in [vgpud]");
	return false;
}

int sandbox_enter(const struct sandbox_options *options, enum sandbox_profile profile)
{
	const pid_t parent = getppid();
	int r;

	if (options->off)
		return 0;
	if (!check_separation(options, profile))
		return vgpu_error_origin(-EPERM);
	mallopt(M_ARENA_MAX, ARENAS_MAX);
	r = change_user(options->uid);
	if (!r)
		r = die_with_parent(parent);
	if (!r && profile == SANDBOX_STRICT)
		r = sandbox_files_end(&landlock);
	if (!r)
		r = set_limits(options, profile);
	/* NVIDIA's driver reads its own /proc/self, which 0 would take away. */
	if (!r && prctl(PR_SET_DUMPABLE, profile != SANDBOX_STRICT) < 0)
		r = vgpu_error_origin(-errno);
	if (!r)
		r = sandbox_filter_load(profile);
	return r ? vgpu_error_trace(r) : 0;
}
