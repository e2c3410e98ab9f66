/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of programs on the C library of older guests
 *
 * The files that the compiler links to a program leave it to glibc 2.34 or later to call
 * the program's constructors: an older one calls only the function that it is given, and
 * such a function used to be linked to each program. So it is given one here. A newer one
 * calls it too, and then no constructor by itself. Destructors are the loader's in all
 * versions.
 */

#include <stddef.h>

typedef int main_fn(int argc, char **argv, char **environment);
typedef void constructor_fn(int argc, char **argv, char **environment);

/* The linker defines these. */
extern constructor_fn *const __init_array_start[] __attribute__((visibility("hidden")));
extern constructor_fn *const __init_array_end[] __attribute__((visibility("hidden")));

int old_libc_start_main(main_fn *main, int argc, char **argv, constructor_fn *init,
	void (*fini)(void), void (*end_of_loader)(void), void *end_of_stack);
__asm__(".symver old_libc_start_main, __libc_start_main@GLIBC_2.2.5");

int __wrap___libc_start_main(main_fn *main, int argc, char **argv, constructor_fn *init,
	void (*fini)(void), void (*end_of_loader)(void), void *end_of_stack);

static void call_constructors(int argc, char **argv, char **environment)
{
	size_t n = __init_array_end - __init_array_start;

	for (size_t i = 0; i < n; i++)
		__init_array_start[i](argc, argv, environment);
}

int __wrap___libc_start_main(main_fn *main, int argc, char **argv, constructor_fn *init,
	void (*fini)(void), void (*end_of_loader)(void), void *end_of_stack)
{
	return old_libc_start_main(main, argc, argv, init ? init : call_constructors,
		fini, end_of_loader, end_of_stack);
}
