/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock: the files that a process may open, enforced by the kernel
 *
 * A ruleset denies all that the running kernel can deny, except what is allowed by path.
 * It needs no privilege. Kernels before 5.13, or with Landlock disabled, lack it; later
 * ones can deny more: see landlock(7).
 */

#include <stdint.h>

/* Rights on a file, or on everything below a folder. */
enum {
	LANDLOCK_READ = 1u << 0,
	LANDLOCK_WRITE = 1u << 1, /* existing files, without creation or truncation */
	LANDLOCK_IOCTL = 1u << 2, /* of a device */
};

enum {
	_LANDLOCK_E_SUCCESS,
	LANDLOCK_E_ABSENT, /* the kernel lacks or has disabled Landlock */
};

/* The three system calls, so that a test can imitate any kernel version. */
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
	/* Open files in /proc that have rules: if the kernel dropped the inode, it would
	 * create another one, without a rule. */
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

/* Allows access to a path; one that does not exist is ignored. Return: 0 or -errno. */
int landlock_allow(struct landlock *landlock, const char *path, unsigned int access);

/* The same for a path in /proc. */
int landlock_allow_proc(struct landlock *landlock, const char *path);

/* Enforces the ruleset in this thread and those that it starts later. The thread must
 * have no_new_privs set. Return: 0 or -errno. */
int landlock_enforce(struct landlock *landlock);

/* Closes the descriptors. Enforcement continues, and later rulesets can only remove
 * rights. */
void landlock_deinit(struct landlock *landlock);
