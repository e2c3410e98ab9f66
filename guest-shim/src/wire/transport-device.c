/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport: the kernel's driver, /dev/vgpu0
 *
 * The driver gives each process its own part of the shared memory, cached, makes the
 * steps of the entry in its place, wakes its threads by the device's interrupts, and
 * tells the host when it has ended: see kmod/vgpu-uapi.h. The header and the status can
 * be read; the table of channels is not there.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kmod/vgpu-uapi.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

#include "wire/reason.h"
#include "wire/removal.h"
#include "wire/sentence.h"
#include "wire/transport.h"

#define FOLDER "/dev"
#define NUMBERS_MAX 16u
/* The first version of the driver, and the first that hands minor versions on. */
#define UAPI_VERSION_MIN 1u
#define UAPI_VERSION_MINOR 2u
#define PAGE 4096u
/* Pause after a wait that the driver refuses, so that its caller does not spin. */
#define REFUSED_PAUSE_NS 1000000

static int call(struct shim_transport *transport, unsigned long request, void *argument)
{
	int r;

	do
		r = ioctl(transport->shm_fd, request, argument);
	while (r < 0 && errno == EINTR && request != VGPU_IOC_WAIT);
	if (r < 0 && errno == ENODEV)
		__atomic_store_n(&transport->is_removed, true, __ATOMIC_RELAXED);
	return r < 0 ? -errno : 0;
}

static void device_close(struct shim_transport *transport)
{
	shim_removal_forget(transport->base);
	shim_removal_forget(transport->head);
	transport->shm_fd = vgpu_close(transport->shm_fd);
}

/* What is readable of the memory before the first area, the rest without access. */
static int map_head(struct shim_transport *transport, const struct vgpu_ioc_info *info)
{
	const int fd = transport->shm_fd;
	uint8_t *map = mmap(NULL, VGPU_EXTENT_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uint64_t off = info->status_off;

	if (map == MAP_FAILED)
		return -errno;
	if (off > VGPU_EXTENT_SIZE - VGPU_STATUS_SIZE ||
		mmap(map, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
		(off && mmap(map + off, VGPU_STATUS_SIZE, PROT_READ,
				MAP_SHARED | MAP_FIXED, fd, (off_t)off) == MAP_FAILED)) {
		munmap(map, VGPU_EXTENT_SIZE);
		return vgpu_error_origin(-EIO);
	}
	transport->head = (uintptr_t)map;
	shim_removal_watch(transport->head, VGPU_EXTENT_SIZE, &transport->is_removed);
	return shim_transport_take_header(transport, map, info->shm_size);
}

static int set_up(struct shim_transport *transport)
{
	struct vgpu_ioc_info info = {};
	int r;

	r = call(transport, VGPU_IOC_INFO, &info);
	if (r)
		return r == -ENOTTY ? -EPROTO : r;
	if (info.uapi_version < UAPI_VERSION_MIN ||
		info.protocol_version != VGPU_PROTOCOL_VERSION)
		return -EPROTO;
	transport->uapi_version = info.uapi_version;
	r = map_head(transport, &info);
	if (r)
		return r;
	shim_transport_begin_heartbeat(transport);
	if (!(info.flags & VGPU_INFO_F_INTERRUPTS))
		vgpu_log_info("the device has no interrupts: the kernel polls");
	return 0;
}

static int open_file(struct shim_transport *transport, const char *path)
{
	char text[SHIM_SENTENCE_SIZE];
	int r = 0;

	transport->shm_fd = open(path, O_RDWR | O_CLOEXEC);
	if (transport->shm_fd < 0)
		r = -errno;
	if (r == -ENOENT || r == -ENOTDIR)
		return -ENOENT;
	if (!r)
		r = set_up(transport);
	vgpu_log_info("%s: %s", path, r ? strerror(-r) : "has a vGPU host behind it");
	if (r) {
		device_close(transport);
		shim_sentence_of_driver(text, path, r);
		shim_reason_note(SHIM_REASON_TRANSPORT, "%s", text);
	}
	return r;
}

/* Numbers may have gaps: a device was detached. */
int shim_transport_device_open(struct shim_transport *transport, const char *folder)
{
	int r, worst = -ENOENT;
	char path[256];

	for (unsigned int i = 0; i < NUMBERS_MAX; i++) {
		snprintf(path, sizeof(path), "%s/vgpu%u", folder, i);
		r = open_file(transport, path);
		if (!r)
			return 0;
		if (r != -ENOENT)
			worst = r;
	}
	return worst;
}

static int device_open(struct shim_transport *transport)
{
	return shim_transport_device_open(transport, FOLDER);
}

static int device_offer(struct shim_transport *transport,
	const struct vgpu_channel_entry *hello, uint32_t *numberp)
{
	struct vgpu_ioc_offer offer = {
		.protocol_version = hello->protocol_version,
		.api_version = hello->api_version,
		.features = hello->features,
		.window_base = hello->window_base,
		.window_size = hello->window_size,
	};
	int r;

	/* An older driver refuses what it does not know: then the host takes this library
	 * for one of minor version 0. */
	if (transport->uapi_version >= UAPI_VERSION_MINOR)
		offer.protocol_minor = hello->protocol_minor;
	r = call(transport, VGPU_IOC_OFFER, &offer);

	if (r)
		return r;
	*numberp = offer.channel;
	shim_removal_forget(transport->base);
	transport->base = hello->window_base;
	shim_removal_watch(transport->base, transport->shm_size, &transport->is_removed);
	return 0;
}

/* Threads race here harmlessly: what each stores was so. */
static void device_read_entry(
	struct shim_transport *transport, struct vgpu_channel_entry *entry)
{
	struct vgpu_ioc_state state = {};
	int r = call(transport, VGPU_IOC_STATE, &state);

	if (r == -ENOTCONN)
		return;
	if (r) {
		state.state = VGPU_CHANNEL_DEAD;
		state.reason = r == -EPROTO ? VGPU_REASON_PROTOCOL : VGPU_REASON_HOST;
	}
	entry->reason = state.reason;
	entry->detail = state.detail;
	entry->host_protocol_version = state.host_protocol_version;
	entry->host_api_version = state.host_api_version;
	entry->host_features = state.host_features;
	entry->area_off = state.area_off;
	entry->first_extent = state.first_extent;
	entry->n_extents = state.n_extents;
	entry->worker_pid = state.worker_pid;
	entry->host_protocol_minor = state.host_protocol_minor;
	/* Partner: the acquire load of whoever looks at the state. */
	__atomic_store_n(&entry->state, state.state, __ATOMIC_RELEASE);
}

static int device_accept(struct shim_transport *transport, uint32_t first, uint32_t n)
{
	struct vgpu_ioc_extents extents = { .first = first, .n = n };

	return call(transport, VGPU_IOC_ACCEPT, &extents);
}

/* The kernel rings doorbell 0 itself. */
static void device_doorbell(struct shim_transport *transport, uint32_t number)
{
	if (number != VGPU_DOORBELL_CONTROL && !vgpu_wake_is_lost())
		call(transport, VGPU_IOC_RING, NULL);
}

static void device_sleep(struct shim_transport *transport, const uint32_t *word,
	uint32_t seen, uint32_t timeout_us)
{
	const struct timespec pause = { .tv_nsec = REFUSED_PAUSE_NS };
	const bool is_state = word == &transport->entry.state;
	struct vgpu_ioc_wait wait = {
		.offset = is_state ? 0 : (uintptr_t)word - transport->base,
		.seen = seen,
		.timeout_us = timeout_us,
		.flags = is_state ? VGPU_WAIT_F_STATE : 0,
	};
	int r = call(transport, VGPU_IOC_WAIT, &wait);

	if (r && r != -ETIMEDOUT && r != -EINTR)
		nanosleep(&pause, NULL);
}

static uint64_t device_silence_ns(struct shim_transport *transport)
{
	uint64_t ns = shim_transport_heartbeat_ns(transport);

	return __atomic_load_n(&transport->is_removed, __ATOMIC_RELAXED) ? SHIM_GONE : ns;
}

const struct shim_transport_ops shim_transport_device = {
	.name = "device",
	.open = device_open,
	.offer = device_offer,
	.read_entry = device_read_entry,
	.accept = device_accept,
	.doorbell = device_doorbell,
	.can_be_woken = true,
	.sleep = device_sleep,
	.silence_ns = device_silence_ns,
	.close = device_close,
};
