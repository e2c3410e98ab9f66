/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link: the messages between keeper and broker
 */

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "vgpud/link.h"
#include "control/packet.h"
#include "vgpu/error.h"

static_assert(LINK_FDS_MAX <= PACKET_FDS_MAX, "one packet holds a VM");
static_assert((int)LINK_E_EOF == (int)PACKET_E_EOF, "passed through");
static_assert((int)LINK_E_AGAIN == (int)PACKET_E_AGAIN, "passed through");

int link_send(int fd, const struct link_message *message, const int *fds, size_t n_fds)
{
	return packet_send(fd, message, sizeof(*message), fds, n_fds);
}

int link_send_id(int fd, enum link_type type, uint64_t id)
{
	const struct link_message message = { .type = type, .id = id };

	return link_send(fd, &message, NULL, 0);
}

void link_discard(const int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

int link_receive(
	int fd, struct link_message *message, int fds[LINK_FDS_MAX], size_t *n_fdsp)
{
	size_t size;
	bool cut;
	int r;

	r = packet_receive(
		fd, message, sizeof(*message), &size, fds, LINK_FDS_MAX, n_fdsp, &cut);
	if (r)
		return r;
	if (size == sizeof(*message) && !cut && link_is_sane(message, *n_fdsp))
		return 0;
	link_discard(fds, *n_fdsp);
	*n_fdsp = 0;
	/* Both ends are this program, so descriptors could not be received, or the peer
	 * is compromised. */
	return vgpu_error_origin(size == sizeof(*message) && cut ? -EMFILE : -EPROTO);
}
