/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of programs on the C library of older guests
 *
 * The files that the compiler links to a program leave it to glibc 2.34 or later to call
 * the constructors: an older one calls none, and these programs need none.
 */

#include "old.h"

OLD(__libc_start_main, "2.2.5")
