/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages over a SOCK_SEQPACKET socket
 */

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "control/control.h"
#include "control/packet.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

static_assert((int)CONTROL_E_EOF == (int)PACKET_E_EOF, "passed through");
static_assert((int)CONTROL_E_AGAIN == (int)PACKET_E_AGAIN, "passed through");

int control_send(int fd, const struct control_message *message, const int *fds)
{
	assert(message->n_fds <= CONTROL_FDS_MAX);
	return packet_send(fd, message, sizeof(*message), fds, message->n_fds);
}

static bool check_and_terminate(struct control_message *message, size_t size, bool cut)
{
	if (size != sizeof(*message) || cut)
		return false;
	if (message->type == _CONTROL_NONE || message->type >= _CONTROL_N)
		return false;
	if (message->type == CONTROL_READY)
		message->ready.driver[sizeof(message->ready.driver) - 1] = '\0';
	if (message->type == CONTROL_ASSIGN) {
		message->assign.vm[sizeof(message->assign.vm) - 1] = '\0';
		message->assign.guest_comm[sizeof(message->assign.guest_comm) - 1] = '\0';
	}
	return true;
}

typedef int receive_fn(int fd, void *data, size_t size, size_t *sizep, int *fds,
	size_t n_fds_max, size_t *n_fdsp, bool *cutp);

static int receive(int fd, struct control_message *message, int *fds, receive_fn *fn)
{
	size_t size, n_fds;
	bool cut;
	int r;

	for (int i = 0; i < CONTROL_FDS_MAX; i++)
		fds[i] = -1;
	r = fn(fd, message, sizeof(*message), &size, fds, CONTROL_FDS_MAX, &n_fds, &cut);
	if (r)
		return r;
	if (check_and_terminate(message, size, cut) && message->n_fds == n_fds)
		return 0;
	for (int i = 0; i < CONTROL_FDS_MAX; i++)
		fds[i] = vgpu_close(fds[i]);
	return CONTROL_E_INVALID;
}

int control_receive(int fd, struct control_message *message, int *fds)
{
	return receive(fd, message, fds, packet_receive);
}

int control_peek(int fd, struct control_message *message, int *fds)
{
	return receive(fd, message, fds, packet_peek);
}
