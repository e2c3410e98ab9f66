/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the guest programs of tests/vm/test-module.sh share: a channel without a library
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kmod/vgpu-uapi.h"
#include "vgpu/hello.h"

#define DEVICE "/dev/vgpu0"
#define PAGE 4096u
#define SECOND_US 1000000u

struct module_channel {
	int fd;
	uint32_t number;
	struct vgpu_ioc_info info;
	struct vgpu_ioc_state state;
	uint8_t *area;
	uint8_t *extents; /* the first grant */
};

/* Fails the program where the condition does not hold. */
#define must(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition)) {                                                     \
			printf("%s:%d: not %s (errno %d)\n", __FILE__, __LINE__,         \
				#_condition, errno);                                     \
			fflush(stdout);                                                  \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

/* Returns: 0 or -errno. */
static inline int module_call(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) ? -errno : 0;
}

static inline void *module_map(int fd, uint64_t off, uint64_t size, int protection)
{
	return mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)off);
}

static inline int module_offer(int fd, uint32_t *numberp)
{
	struct vgpu_ioc_offer offer = {
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.api_version = 13000,
		.window_base = 0x100000000000ull,
		.window_size = 0x400000000000ull,
	};
	int r = module_call(fd, VGPU_IOC_OFFER, &offer);

	*numberp = offer.channel;
	return r;
}

/* Waits until the host has answered. Returns: 0 or -errno of VGPU_IOC_STATE. */
static inline int module_await(int fd, struct vgpu_ioc_state *state)
{
	struct vgpu_ioc_wait wait = {
		.seen = VGPU_CHANNEL_OPENING,
		.timeout_us = SECOND_US / 4,
		.flags = VGPU_WAIT_F_STATE,
	};
	int r;

	do {
		module_call(fd, VGPU_IOC_WAIT, &wait);
		r = module_call(fd, VGPU_IOC_STATE, state);
	} while (!r && state->state == VGPU_CHANNEL_OPENING);
	return r;
}

/* Opens a channel with all of its memory. Returns: 0, or the first -errno. */
static inline int module_open(struct module_channel *channel)
{
	struct vgpu_ioc_extents extents;
	uint64_t off;
	int r;

	*channel = (struct module_channel){ .fd = open(DEVICE, O_RDWR | O_CLOEXEC) };
	if (channel->fd < 0)
		return -errno;
	r = module_call(channel->fd, VGPU_IOC_INFO, &channel->info);
	if (!r)
		r = module_offer(channel->fd, &channel->number);
	if (!r)
		r = module_await(channel->fd, &channel->state);
	if (!r && channel->state.state != VGPU_CHANNEL_OPEN)
		r = -ECONNREFUSED;
	if (r)
		return r;
	extents = (struct vgpu_ioc_extents){ channel->state.first_extent,
		channel->state.n_extents };
	r = module_call(channel->fd, VGPU_IOC_ACCEPT, &extents);
	if (r)
		return r;
	off = channel->info.extents_off + (uint64_t)extents.first * VGPU_EXTENT_SIZE;
	channel->area = module_map(channel->fd, channel->state.area_off, VGPU_AREA_SIZE,
		PROT_READ | PROT_WRITE);
	channel->extents = module_map(channel->fd, off,
		(uint64_t)extents.n * VGPU_EXTENT_SIZE, PROT_READ | PROT_WRITE);
	return channel->area == MAP_FAILED || channel->extents == MAP_FAILED ? -errno : 0;
}

static inline void module_close(struct module_channel *channel)
{
	munmap(channel->area, VGPU_AREA_SIZE);
	munmap(channel->extents, (uint64_t)channel->state.n_extents * VGPU_EXTENT_SIZE);
	close(channel->fd);
}
