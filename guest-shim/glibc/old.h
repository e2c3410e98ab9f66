/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions by an older version than the C library's newest
 */

/* __wrap_NAME goes to NAME of that version. It is a jump: dlopen() and dlsym() look at
 * their caller. */
#define OLD(name, version)                                                               \
	__asm__(".symver old_" #name ", " #name "@GLIBC_" version "\n"                   \
		".pushsection .text\n"                                                   \
		".globl __wrap_" #name "\n"                                              \
		".hidden __wrap_" #name "\n"                                             \
		".type __wrap_" #name ", @function\n"                                    \
		"__wrap_" #name ":\n"                                                    \
		"\tjmp *old_" #name "@GOTPCREL(%rip)\n"                                  \
		".size __wrap_" #name ", . - __wrap_" #name "\n"                         \
		".popsection\n");
