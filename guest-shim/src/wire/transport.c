/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choice of the transport, and what all of them share
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "wire/clock.h"
#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/transport.h"

static int check_header(const struct vgpu_shm_header *header, uint64_t size)
{
	if (__atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) != VGPU_SHM_MAGIC)
		return -ENXIO;
	if (header->protocol_version != VGPU_PROTOCOL_VERSION) {
		shim_reason_of_version(header->protocol_version);
		return -EPROTO;
	}
	if (header->shm_size > size || header->shm_size < VGPU_SHM_SIZE_MIN ||
		header->n_channels == 0 || header->n_channels > VGPU_CHANNELS_MAX)
		return vgpu_error_origin(-EBADMSG);
	return 0;
}

int shim_transport_map_header(struct shim_transport *transport, uint64_t size)
{
	void *map;

	if (size < VGPU_SHM_SIZE_MIN)
		return -ENXIO;
	map = mmap(NULL, VGPU_EXTENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		transport->shm_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	return shim_transport_take_header(transport, map, size);
}

int shim_transport_take_header(struct shim_transport *transport, void *map, uint64_t size)
{
	int r = check_header(map, size);

	if (r) {
		munmap(map, VGPU_EXTENT_SIZE);
		return r;
	}
	/* A forked child has no business in its parent's channel. */
	madvise(map, VGPU_EXTENT_SIZE, MADV_DONTFORK);
	transport->header = map;
	transport->header_size = VGPU_EXTENT_SIZE;
	transport->shm_size = transport->header->shm_size;
	return 0;
}

void shim_transport_begin_heartbeat(struct shim_transport *transport)
{
	transport->heartbeat = transport->header->heartbeat;
	transport->heartbeat_ns = shim_clock_ns();
}

/* A benign race: each thread stores a heartbeat with a time that is not before it. */
uint64_t shim_transport_heartbeat_ns(struct shim_transport *transport)
{
	uint64_t heartbeat =
		__atomic_load_n(&transport->header->heartbeat, __ATOMIC_RELAXED);
	uint64_t now = shim_clock_ns(), since;

	if (heartbeat != __atomic_load_n(&transport->heartbeat, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&transport->heartbeat_ns, now, __ATOMIC_RELAXED);
		/* Partner: another thread's load, above, after which it sees that time.
		 */
		__atomic_store_n(&transport->heartbeat, heartbeat, __ATOMIC_RELEASE);
		return 0;
	}
	since = __atomic_load_n(&transport->heartbeat_ns, __ATOMIC_RELAXED);
	return now > since ? now - since : 0;
}

static int try_transport(
	struct shim_transport *transport, const struct shim_transport_ops *ops)
{
	int r;

	*transport = (struct shim_transport){
		.ops = ops,
		.shm_fd = -1,
		.socket_fd = -1,
		.doorbell_fds = { -1, -1 },
	};
	r = ops->open(transport);
	if (r < 0)
		vgpu_log_info("transport %s: %s", ops->name, strerror(-r));
	else
		vgpu_log_info("transport %s: open, %llu MiB of shared memory", ops->name,
			(unsigned long long)transport->shm_size >> 20);
	return r;
}

int shim_transport_open(struct shim_transport *transport)
{
	const char *path = getenv(VGPU_SOCKET_ENV);
	int r;

	if (path && *path)
		return try_transport(transport, &shim_transport_socket);

	vgpu_log_info("transport socket: not asked for, %s is not set", VGPU_SOCKET_ENV);
	r = try_transport(transport, &shim_transport_device);
	/* A driver that refuses has the device, and sysfs does not give it out. */
	if (r != -ENOENT)
		return r == -EPROTO || !r ? r : -ENODEV;
	r = try_transport(transport, &shim_transport_sysfs);
	return r == -EPROTO || !r ? r : -ENODEV;
}

void shim_transport_close(struct shim_transport *transport)
{
	if (transport->header)
		munmap(transport->header, transport->header_size);
	transport->header = NULL;
	transport->ops->close(transport);
}
