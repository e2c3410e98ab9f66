/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guard: mappings whose pages another process can take away
 *
 * The file of transport plain belongs to QEMU, which cannot seal it, and the guest may
 * have taken QEMU over. If it is truncated while mapped, each access ends the broker by
 * SIGBUS, and the next broker too. Here the signal handler maps zeroes over the whole
 * mapping, and the access that faulted continues with those. The VM is dropped when
 * is_broken is found set later. SIGBUS at any other address ends the process as usual.
 *
 * A file in huge pages is sealed, but QEMU can free its pages, and the kernel may have no
 * others: the same then.
 *
 * The list changes only while no guarded mapping is being accessed, so the handler, which
 * runs only during such an access, finds it consistent.
 */

#include <stdint.h>
#include <sys/mman.h>

#include "broker/guard.h"

static LIST_HEAD(, guard) guards = LIST_HEAD_INITIALIZER(guards);

static void handle_bus_error(int number, siginfo_t *info, void *data)
{
	uintptr_t address = (uintptr_t)info->si_addr, map;
	struct guard *guard;

	LIST_FOREACH(guard, &guards, entry) {
		map = (uintptr_t)guard->map;
		if (address < map || address - map >= guard->size)
			continue;
		if (mmap(guard->map, guard->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			break;
		guard->is_broken = 1;
		return;
	}
	/* The access is repeated, and ends the process then. */
	signal(SIGBUS, SIG_DFL);
}

void guard_begin(struct guard *guard, void *map, size_t size)
{
	const struct sigaction action = {
		.sa_sigaction = handle_bus_error,
		.sa_flags = SA_SIGINFO,
	};

	guard->map = map;
	guard->size = size;
	guard->is_broken = 0;
	LIST_INSERT_HEAD(&guards, guard, entry);
	sigaction(SIGBUS, &action, NULL);
}

void guard_end(struct guard *guard)
{
	if (!guard->map)
		return;
	LIST_REMOVE(guard, entry);
	guard->map = NULL;
}
