/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shortage: resources that a host may lack temporarily
 */

#include <errno.h>
#include <stdbool.h>

/* Exit status of a broker that lacks resources (EX_TEMPFAIL of sysexits.h). */
#define EXIT_SHORTAGE 75

/* Whether an error (-errno) may be temporary, until other processes release resources. */
static inline bool shortage_is(int error)
{
	switch (-error) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
	case EAGAIN:
		return true;
	}
	return false;
}
