/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Submission ring: many producers in one guest process, one consumer
 *
 * The producer side is not locked here: the caller holds its own lock from
 * reserve to commit. The consumer side trusts nothing: it copies a frame out
 * of the shared memory once, checks the copy, and hands out the copy.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/frame.h"
#include "vgpu/ring-layout.h"

enum {
	_VGPU_RING_E_SUCCESS,
	VGPU_RING_E_EMPTY,  /* the ring is empty */
	VGPU_RING_E_BROKEN, /* indices or a frame that no honest producer writes */
};

struct vgpu_ring_producer {
	struct vgpu_channel_control *control;
	uint8_t *data;
	uint64_t tail; /* next byte to write */
	uint64_t head; /* last head seen: a lower bound of the consumer's */
};

struct vgpu_ring_consumer {
	struct vgpu_channel_control *control;
	const uint8_t *data;
	uint64_t head;	    /* next byte to read; private truth, published on release */
	uint64_t tail;	    /* last tail seen and found sane */
	const char *reason; /* why the ring is broken, once it is */
	bool is_idle;	    /* announced, until the next frame */
	/* Private copy of the frame in hand. */
	uint8_t frame[VGPU_FRAME_MAX] __attribute__((aligned(16)));
};

/* The area is the channel's, as ring-layout.h describes it; the consumer resets it. */
void vgpu_ring_producer_init(struct vgpu_ring_producer *producer, void *area);
void vgpu_ring_consumer_init(struct vgpu_ring_consumer *consumer, void *area);

/*
 * Makes room for a frame of that many bytes (header included, <= VGPU_FRAME_MAX).
 *
 * Return: where to write the frame, or NULL while the ring is full.
 */
struct vgpu_frame *vgpu_ring_reserve(struct vgpu_ring_producer *producer, uint32_t size);

/* Publishes the frame reserved last; its final size may be smaller than reserved. */
void vgpu_ring_commit(struct vgpu_ring_producer *producer, uint32_t size);

/*
 * To be asked after each commit, by the thread that made it; the lock need not be held
 * any more.
 *
 * Return: whether the consumer sleeps and its doorbell must be rung.
 */
bool vgpu_ring_is_asleep(const struct vgpu_ring_producer *producer);

/*
 * Whether the consumer sleeps although there are frames: the doorbell was
 * lost, or is not handled yet. For producers that have waited for some time.
 */
bool vgpu_ring_is_missed(const struct vgpu_channel_control *control);

/*
 * Confirms that the consumer is alive, if the producer asked. Call before each sleep.
 */
void vgpu_ring_answer(struct vgpu_ring_consumer *consumer);

/*
 * Copies the next frame out of the ring.
 *
 * @framep:	on success the private copy, valid until the next call
 *
 * Return: 0, VGPU_RING_E_EMPTY or VGPU_RING_E_BROKEN.
 */
int vgpu_ring_next(struct vgpu_ring_consumer *consumer, const struct vgpu_frame **framep);

/* Gives the space of all frames taken so far back to the producers. */
void vgpu_ring_release(struct vgpu_ring_consumer *consumer);

/* How long the consumer is idle, as announced, before it may go to sleep. Far longer than
 * a store stays in a processor's store buffer. */
#define VGPU_RING_SETTLE_NS 2000u

/*
 * Sleep protocol of the consumer: announce that the ring is idle, look for frames for at
 * least VGPU_RING_SETTLE_NS more, announce the sleep and look again, sleep on the
 * doorbell only if vgpu_ring_prepare_sleep() returned true, and end by vgpu_ring_awake()
 * in either case. The next frame taken ends the idle time.
 */
void vgpu_ring_announce_idle(struct vgpu_ring_consumer *consumer);
bool vgpu_ring_prepare_sleep(struct vgpu_ring_consumer *consumer);
void vgpu_ring_awake(struct vgpu_ring_consumer *consumer);
