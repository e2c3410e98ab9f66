/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that has a handler of signals is not unloaded
 *
 * LIBRARY is one that is made of removal.c alone.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#include "wire/removal.h"

#define PAGE 4096

TEST(the_handler_works_when_its_library_was_closed)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int fd = memfd_create("test", MFD_CLOEXEC);
	__typeof__(&shim_removal_watch) watch;
	bool is_removed = false;
	volatile uint8_t *map;

	check(library != NULL);
	watch = (__typeof__(watch))dlsym(library, "shim_removal_watch");
	check(watch != NULL);
	check_eq(ftruncate(fd, PAGE), 0);
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED);
	check_eq(ftruncate(fd, 0), 0);
	watch((uintptr_t)map, PAGE, &is_removed);
	check_eq(dlclose(library), 0);
	*map = 1;
	check_eq(*map, 1);
	check(is_removed);
	close(fd);
}
