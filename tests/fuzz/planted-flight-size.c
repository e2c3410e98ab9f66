/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: a message in the flight recorder is read as if all of it was kept
 *
 * Built beside host-daemon/control/flight-text.c, whose functions it replaces, into the
 * target that must find it.
 */

#include "control/flight.h"

#undef FLIGHT_BODY_SIZE
#define FLIGHT_BODY_SIZE UINT32_MAX
#include "control/flight-text.c"
