/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mover: puts shared memory in the place of the program's own pages, and takes it away
 *
 * The program's pages keep their address; what is behind it becomes pages of the arena,
 * which the device reaches too. Threads that access the memory meanwhile wait in a page
 * fault (userfaultfd(2)), so that no store is lost and no read sees a mixture. In a
 * process that may not have the kernel's own faults handled (CAP_SYS_PTRACE, or
 * vm.unprivileged_userfaultfd), a system call that accesses the memory in that moment
 * returns EFAULT.
 *
 * The calling thread accesses nothing of the memory while it is moved. The functions are
 * not to be called at the same time.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whole pages of the program, and the shared memory for them. */
struct shim_moved {
	uint64_t address;
	uint64_t size;
	uint8_t *home;	 /* where the process has them too */
	int fd;		 /* the shared memory */
	uint64_t offset; /* of `home` in it */
};

/* Returns: whether this kernel lets this process move pages. */
bool shim_mover_is_possible(void);

/*
 * Puts shared pages in the place of private ones, with the same bytes. A child of fork()
 * has none of the pages.
 *
 * Return: 0; -EINVAL if not all of it is mapped for reading and writing; -EOPNOTSUPP if
 * it is not private anonymous memory, or is the stack of this thread, or the kernel
 * does not let the process; -ENOMEM.
 */
int shim_mover_take(const struct shim_moved *moved);

/*
 * Undoes it: private anonymous pages with the bytes that the shared ones have. Addresses
 * at which the program has mapped something else meanwhile stay as they are.
 *
 * @is_freep:	whether nothing else in this process maps the shared memory
 *
 * Return: 0 or -ENOMEM; then some of it is still shared, and another call goes on.
 */
int shim_mover_return(const struct shim_moved *moved, bool *is_freep);
