/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submission ring
 *
 * Indices are free-running 64-bit numbers, masked on use. The size is a constant of
 * the protocol, so neither side ever takes a mask from shared memory.
 *
 * Sleeping: the consumer sets consumer_sleeping, a full barrier, then reads tail
 * again; the producer writes tail, a full barrier, then reads the flag.
 * Whichever comes second sees the other's store, so no wake-up is lost. A store followed
 * by a load of another location is the one order that release and acquire do
 * not give: hence seq_cst fences. An emulator may leave a guest's fences out (QEMU's TCG
 * does for a machine with one possible processor): so neither side relies on them.
 * A sleeping consumer wakes to check the ring, and a waiting producer rings again.
 *
 * A fence after each frame would make the producer wait until tail has reached the
 * consumer's cache, which is most of what a frame without a reply costs. So the consumer
 * sets consumer_idle first and polls the ring for VGPU_RING_SETTLE_NS more. A producer
 * that reads 0 there skips the fence: either it stored tail that long before the
 * consumer's last read, so that the store has left its store buffer, or it reads the
 * flag later and sees it. This needs no barrier of the producer at all, which helps if an
 * emulator drops the barriers of its guest (docs/protocol.md). That the time suffices is
 * an assumption about processors: if it fails, the wake-up is late, by the same bounds as
 * any lost one.
 *
 * Cache lines go from one processor to the other, and waiting for them is most of what a
 * call costs. Each side prefetches the lines of the next frame: the
 * producer to write, the consumer to read.
 */

#include <string.h>

#include "vgpu/cpu.h"
#include "vgpu/frame-copy.h"
#include "vgpu/ring.h"

#define RING_MASK ((uint64_t)VGPU_RING_SIZE - 1)
/* The part of a frame that is prefetched: as long as most launches. */
#define NEXT_SIZE 128u

static_assert((VGPU_RING_SIZE & RING_MASK) == 0, "a power of two");
static_assert(VGPU_FRAME_MAX <= VGPU_RING_SIZE / 4, "frames leave room for others");

static uint64_t load_acquire(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void vgpu_ring_producer_init(struct vgpu_ring_producer *producer, void *area)
{
	producer->control = area;
	producer->data = (uint8_t *)area + VGPU_RING_OFF;
	producer->tail = 0;
	producer->head = 0;
}

void vgpu_ring_consumer_init(struct vgpu_ring_consumer *consumer, void *area)
{
	memset(area, 0, sizeof(struct vgpu_channel_control));
	consumer->control = area;
	consumer->data = (const uint8_t *)area + VGPU_RING_OFF;
	consumer->head = 0;
	consumer->tail = 0;
	consumer->reason = NULL;
	consumer->is_idle = false;
}

/* Whether `size` more bytes fit after the tail; reads the consumer's head only if the
 * cached one does not suffice. Partner: vgpu_ring_release(). */
static bool has_room(struct vgpu_ring_producer *producer, uint64_t size)
{
	if (producer->tail + size - producer->head <= VGPU_RING_SIZE)
		return true;
	producer->head = load_acquire(&producer->control->head);
	return producer->tail + size - producer->head <= VGPU_RING_SIZE;
}

struct vgpu_frame *vgpu_ring_reserve(struct vgpu_ring_producer *producer, uint32_t size)
{
	uint64_t offset = producer->tail & RING_MASK, rest = VGPU_RING_SIZE - offset;
	uint32_t padded = vgpu_frame_padded(size);
	struct vgpu_frame *pad;

	if (padded <= rest)
		return has_room(producer, padded)
			       ? (struct vgpu_frame *)(producer->data + offset)
			       : NULL;

	/* The frame is written at the start of the ring; the pad is published with it. */
	if (!has_room(producer, rest + padded))
		return NULL;
	pad = (struct vgpu_frame *)(producer->data + offset);
	*pad = (struct vgpu_frame){ .size = rest, .call = VGPU_CALL_PAD };
	producer->tail += rest;
	return (struct vgpu_frame *)producer->data;
}

/* Asks for the lines of the next frame, which the consumer read a lap ago. */
static void own_next(const struct vgpu_ring_producer *producer)
{
	for (uint64_t i = 0; i < NEXT_SIZE; i += VGPU_CACHE_LINE)
		vgpu_cpu_prefetch_to_write(
			&producer->data[(producer->tail + i) & RING_MASK]);
}

void vgpu_ring_commit(struct vgpu_ring_producer *producer, uint32_t size)
{
	producer->tail += vgpu_frame_padded(size);
	/* Partner: the load of tail in refill(). */
	__atomic_store_n(&producer->control->tail, producer->tail, __ATOMIC_RELEASE);
	own_next(producer);
}

bool vgpu_ring_is_asleep(const struct vgpu_ring_producer *producer)
{
	/* The compiler keeps tail's store in front. Partner: vgpu_ring_announce_idle().
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&producer->control->consumer_idle, __ATOMIC_RELAXED))
		return false;
	/* Partner: the fence in vgpu_ring_prepare_sleep(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&producer->control->consumer_sleeping, __ATOMIC_RELAXED);
}

bool vgpu_ring_is_missed(const struct vgpu_channel_control *control)
{
	/* The consumer releases all that it took before it sleeps. Partners: its stores
	 * in vgpu_ring_release() and vgpu_ring_prepare_sleep(). */
	return __atomic_load_n(&control->consumer_sleeping, __ATOMIC_ACQUIRE) &&
	       load_acquire(&control->head) != load_acquire(&control->tail);
}

static int broken(struct vgpu_ring_consumer *consumer, const char *reason)
{
	consumer->reason = reason;
	return VGPU_RING_E_BROKEN;
}

/* Looks for new frames. Partner: the store of tail in vgpu_ring_commit(). */
static int refill(struct vgpu_ring_consumer *consumer)
{
	uint64_t tail;

	if (consumer->reason)
		return VGPU_RING_E_BROKEN;
	/* If there is a frame, it begins here: its first line comes with the tail's, not
	 * after it. */
	__builtin_prefetch(consumer->data + (consumer->head & RING_MASK));
	tail = load_acquire(&consumer->control->tail);
	if (tail - consumer->head > VGPU_RING_SIZE)
		return broken(consumer, "the tail index is not within the ring");
	if (tail % VGPU_FRAME_ALIGN)
		return broken(consumer, "the tail index is not aligned");
	consumer->tail = tail;
	return tail == consumer->head ? VGPU_RING_E_EMPTY : 0;
}

/*
 * Copies header, then body, and checks the copy: what the guest writes into the
 * ring meanwhile can no longer matter.
 */
static int copy_frame(struct vgpu_ring_consumer *consumer)
{
	uint64_t offset = consumer->head & RING_MASK, rest = VGPU_RING_SIZE - offset;
	uint64_t queued = consumer->tail - consumer->head;
	struct vgpu_frame *frame = (struct vgpu_frame *)consumer->frame;
	const uint8_t *source = consumer->data + offset;

	memcpy(frame, source, sizeof(*frame));
	if (frame->size < sizeof(*frame))
		return broken(consumer, "a frame is smaller than its header");
	if (frame->size > rest || vgpu_frame_padded(frame->size) > queued)
		return broken(consumer, "a frame reaches beyond what was submitted");
	if (frame->call == VGPU_CALL_PAD)
		return 0;
	if (frame->size > VGPU_FRAME_MAX)
		return broken(consumer, "a frame is larger than the largest allowed");
	if (frame->flags & ~_VGPU_FRAME_FLAGS)
		return broken(consumer, "a frame has flags that do not exist");
	vgpu_frame_copy_body(frame, source);
	return 0;
}

int vgpu_ring_next(struct vgpu_ring_consumer *consumer, const struct vgpu_frame **framep)
{
	const struct vgpu_frame *frame = (const struct vgpu_frame *)consumer->frame;
	int r;

	do {
		if (consumer->head == consumer->tail) {
			r = refill(consumer);
			if (r)
				return r;
		}
		r = copy_frame(consumer);
		if (r)
			return r;
		consumer->head += vgpu_frame_padded(frame->size);
	} while (frame->call == VGPU_CALL_PAD);

	if (__builtin_expect(consumer->is_idle, 0)) {
		consumer->is_idle = false;
		__atomic_store_n(&consumer->control->consumer_idle, 0, __ATOMIC_RELAXED);
	}
	*framep = frame;
	return 0;
}

void vgpu_ring_release(struct vgpu_ring_consumer *consumer)
{
	/* Partner: the load of head in has_room(). */
	__atomic_store_n(&consumer->control->head, consumer->head, __ATOMIC_RELEASE);
}

void vgpu_ring_announce_idle(struct vgpu_ring_consumer *consumer)
{
	consumer->is_idle = true;
	/* Partner: the load in vgpu_ring_is_asleep(). */
	__atomic_store_n(&consumer->control->consumer_idle, 1, __ATOMIC_RELAXED);
}

void vgpu_ring_answer(struct vgpu_ring_consumer *consumer)
{
	struct vgpu_channel_control *control = consumer->control;
	const uint32_t asked = __atomic_load_n(&control->asked, __ATOMIC_RELAXED);

	/* Partner: the guest's look at it, some time after it asked. */
	if (asked != __atomic_load_n(&control->answered, __ATOMIC_RELAXED))
		__atomic_store_n(&control->answered, asked, __ATOMIC_RELAXED);
}

bool vgpu_ring_prepare_sleep(struct vgpu_ring_consumer *consumer)
{
	/* Partner: the load in vgpu_ring_is_missed(). */
	__atomic_store_n(&consumer->control->consumer_sleeping, 1, __ATOMIC_RELEASE);
	/* Partner: the fence in vgpu_ring_is_asleep(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return refill(consumer) == VGPU_RING_E_EMPTY;
}

void vgpu_ring_awake(struct vgpu_ring_consumer *consumer)
{
	__atomic_store_n(&consumer->control->consumer_sleeping, 0, __ATOMIC_RELAXED);
}
