/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doorbell: an eventfd shared with the guest's side
 */

#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>

#include "broker/doorbell.h"
#include "vgpu/error.h"

int doorbell_take(int fd)
{
	uint64_t count;
	struct iovec to = { .iov_base = &count, .iov_len = sizeof(count) };

	if (preadv2(fd, &to, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN)
		return vgpu_error_origin(-errno);
	return 0;
}
