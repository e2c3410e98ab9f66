/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shortage: what a host may lack for a while
 */

#include <errno.h>
#include <stdbool.h>

/* Exit status of a broker that the host had no room for (EX_TEMPFAIL of sysexits.h). */
#define EXIT_SHORTAGE 75

/* Whether a failure (-errno) may pass when other processes release resources. */
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
