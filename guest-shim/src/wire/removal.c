/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal: what happens to threads of a process whose device is taken away
 *
 * A device can be detached from a running virtual machine. Then its memory is gone, and
 * any access is a SIGBUS, in the library as in code of the program that uses pinned
 * memory. The program should see its calls fail instead, as those of a session that
 * ended.
 *
 * Places are added and removed by one thread at a time; the handler may run on any. It
 * remains installed, because the program's own may call it, so a library that could be
 * unloaded stays from then on.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#include "wire/removal.h"

#define PAGE ((uint64_t)4096)
/* Header and window. */
#define PLACES_MAX 4

struct place {
	uint64_t address;
	uint64_t size; /* atomic, 0: none is here */
	bool *removed;
};

static struct place places[PLACES_MAX];
static struct sigaction before; /* our handler, SIG_DFL unless the program had one */
static bool is_installed;

static const struct place *find(uint64_t address)
{
	for (unsigned int i = 0; i < PLACES_MAX; i++) {
		/* Partner: the release store of shim_removal_watch(). */
		const uint64_t size = __atomic_load_n(&places[i].size, __ATOMIC_ACQUIRE);

		if (size && address - places[i].address < size)
			return &places[i];
	}
	return NULL;
}

static bool put_memory(uint64_t address)
{
	void *page = (void *)(uintptr_t)(address & ~(PAGE - 1));

	return mmap(page, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signal_number, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(signal_number);
	else
		/* The access is repeated, and ends the process. */
		signal(signal_number, SIG_DFL);
}

/* Returns to the access, which then succeeds. */
static void handle(int signal_number, siginfo_t *info, void *context)
{
	const uint64_t address = (uintptr_t)info->si_addr;
	const struct place *place = find(address);

	if (info->si_code != BUS_ADRERR || !place || !put_memory(address)) {
		pass_on(signal_number, info, context);
		return;
	}
	__atomic_store_n(place->removed, true, __ATOMIC_RELEASE);
}

static void stay_loaded(void)
{
	Dl_info info;

	/* Of a program the loader refuses it, and nothing unloads that. */
	if (dladdr(&is_installed, &info))
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool install(void)
{
	struct sigaction action = {
		.sa_sigaction = handle,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	if (!is_installed) {
		stay_loaded();
		sigemptyset(&action.sa_mask);
		is_installed = !sigaction(SIGBUS, NULL, &before) &&
			       !sigaction(SIGBUS, &action, NULL);
	}
	return is_installed;
}

void shim_removal_watch(uint64_t address, uint64_t size, bool *removed)
{
	struct place *place = places;

	while (place < places + PLACES_MAX && place->size)
		place++;
	if (place == places + PLACES_MAX || !install())
		return;
	place->address = address;
	place->removed = removed;
	/* Partner: the load of the handler. */
	__atomic_store_n(&place->size, size, __ATOMIC_RELEASE);
}

void shim_removal_forget(uint64_t address)
{
	for (unsigned int i = 0; i < PLACES_MAX; i++)
		if (places[i].size && places[i].address == address)
			__atomic_store_n(&places[i].size, 0, __ATOMIC_RELEASE);
}
