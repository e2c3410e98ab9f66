/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: the numbers of a VM are believed, and only its descriptors counted
 *
 * Built instead of host-daemon/vgpud/link-check.c into the target that must find it.
 */

#include "vgpud/link.h"

bool link_is_sane(const struct link_message *message, size_t n_fds)
{
	switch (message->type) {
	case _LINK_NONE:
		return false;
	case LINK_VM:
		return n_fds == 2u + message->vm.n_doorbells + message->vm.n_interrupts;
	case LINK_WORKER:
		return n_fds == 3;
	case LINK_IMAGE:
	case LINK_QUOTA:
	case LINK_SENSORS:
	case LINK_SHARE:
		return n_fds == 1;
	}
	return message->type < _LINK_N && !n_fds;
}
