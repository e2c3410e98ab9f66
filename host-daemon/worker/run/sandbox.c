/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: the rights that a worker gives up before it serves a guest
 *
 * There are two steps. Before the driver is loaded, while there is one thread, the worker
 * gives up new privileges, and all files except those that a driver needs
 * (sandbox-files.c). After the driver was initialised, which maps code and communicates
 * with other processes, and before the worker sends READY, so before it reads any byte of
 * a guest, it gets a user id that no other process has (if vgpud is root), limits, and a
 * filter of system calls (sandbox-filter.c). A worker for which either step fails never
 * gets a guest. From then on a compromised worker can compute, use its open descriptors,
 * and exit.
 *
 * No file grows: images are memory files that vgpud created with their final size.
 *
 * The runtime of a sanitizer works in the sandbox, because it has opened its files
 * before. Its reports have addresses instead of names there; `sandbox = no` restores the
 * names.
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
#include "worker/memory/share.h"
#include "worker/run/landlock.h"
#include "worker/run/sandbox-files.h"
#include "worker/run/sandbox-filter.h"
#include "worker/run/sandbox.h"

/* The strict profile opens no file, but memory that processes share is in files: of each
 * softgpu has a duplicate. NVIDIA's driver has some descriptors per context. */
#define STRICT_FDS_MAX (64 + 2 * SHARES_MAX)
#define DRIVER_FDS_MAX 4096

/* Otherwise malloc() opens a file to count processors when threads contend. */
#define ARENAS_MAX 32

static struct landlock landlock = LANDLOCK_NULL;

enum sandbox_profile sandbox_profile(const struct driver *driver)
{
	return driver->set_window ? SANDBOX_STRICT : SANDBOX_DRIVER;
}

/*
 * Identity and limits
 */

/* A worker with its own user id cannot signal or trace other workers, or open their
 * files. */
static int change_user(uid_t uid)
{
	if (!uid)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		setresuid(uid, uid, uid) < 0)
		return vgpu_error_origin(-errno);
	return 0;
}

/* Lowers only: raising a limit needs root, which the worker may not be any more. */
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

	/* A write beyond RLIMIT_FSIZE shall fail, not end the process. */
	signal(SIGXFSZ, SIG_IGN);
	r = limit(RLIMIT_CORE, 0);
	/* No file is written with write(): the log is a pipe, and images are written
	 * through mappings of files that have their final size. */
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

/* The change of user reset the parent-death signal; the parent may have exited since. */
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
	/* No compile caches of a driver on a disk of the host. */
	if (setenv("CUDA_CACHE_DISABLE", "1", 1) < 0)
		return vgpu_error_origin(-errno);
	r = sandbox_files_limit(&landlock, driver);
	return r ? vgpu_error_trace(r) : 0;
}

/* Return: whether the driver may serve guests with this user id; if not, logs why. */
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
	if (!r && !options->outlives)
		r = die_with_parent(parent);
	if (!r && profile == SANDBOX_STRICT)
		r = sandbox_files_end(&landlock);
	if (!r)
		r = set_limits(options, profile);
	/* NVIDIA's driver reads /proc/self, which needs a dumpable process. */
	if (!r && prctl(PR_SET_DUMPABLE, profile != SANDBOX_STRICT) < 0)
		r = vgpu_error_origin(-errno);
	if (!r)
		r = sandbox_filter_load(profile);
	return r ? vgpu_error_trace(r) : 0;
}
