/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock: which files a process may still open, by the kernel's own means
 *
 * A ruleset denies all that the running kernel can deny, but for what is allowed by path.
 * It needs no privilege. Kernels before 5.13, and those started without it, have none;
 * later ones can deny more: see landlock(7).
 */

#include <stdint.h>

/* Rights on a file, or on everything below a folder. */
enum {
	LANDLOCK_READ = 1u << 0,
	LANDLOCK_WRITE = 1u << 1, /* existing files: none is created or truncated */
	LANDLOCK_IOCTL = 1u << 2, /* of a device */
};

enum {
	_LANDLOCK_E_SUCCESS,
	LANDLOCK_E_ABSENT, /* this kernel does not have it, or has it disabled */
};

/* The three system calls, so that a test can be a kernel of any age. */
struct landlock_kernel {
	long (*create)(const void *attributes, unsigned long size, uint32_t flags);
	long (*add)(int ruleset, int type, const void *rule, uint32_t flags);
	long (*restrict_self)(int ruleset, uint32_t flags);
};

extern const struct landlock_kernel landlock_kernel;

/* Each rule of a file in /proc keeps a descriptor. */
#define LANDLOCK_KEPT_MAX 16u

struct landlock {
	const struct landlock_kernel *kernel;
	int abi;
	int ruleset;
	/* Files of /proc that rules are about: once the kernel has forgotten such a file
	 * it makes another, which no rule knows. */
	int kept[LANDLOCK_KEPT_MAX];
	unsigned int n_kept;
};

#define LANDLOCK_NULL                                                                    \
	(struct landlock)                                                                \
	{                                                                                \
		.ruleset = -1                                                            \
	}

/* Creates a ruleset that allows nothing. Returns: 0, LANDLOCK_E_ABSENT or -errno. */
int landlock_init(struct landlock *landlock, const struct landlock_kernel *kernel);

/* Allows something; a path that is not there is none. Returns: 0 or -errno. */
int landlock_allow(struct landlock *landlock, const char *path, unsigned int access);

/* The same for a path that is in /proc. */
int landlock_allow_proc(struct landlock *landlock, const char *path);

/* Enforces it, in this thread and those it starts later. The thread must have given up
 * new privileges. Returns: 0 or -errno. */
int landlock_enforce(struct landlock *landlock);

/* Later rulesets can only take rights away: files of /proc, for example. */
void landlock_deinit(struct landlock *landlock);
