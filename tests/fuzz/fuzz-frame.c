/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the consumer of the submission ring
 *
 * The input is what a guest left in its memory: the tail index, then the bytes of the
 * ring from a position that the third word chooses. For any input, the consumer returns
 * frames that meet its contract, ends, and stays within the ring (which the sanitizers
 * check).
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct vgpu_ring_consumer consumer;
static uint8_t *area;

static void promise(bool kept)
{
	if (!kept)
		abort();
}

/* Lays the input into the ring, over its end if need be. */
static void fill(uint64_t start, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size && i < VGPU_RING_SIZE; i++)
		area[VGPU_RING_OFF + (start + i) % VGPU_RING_SIZE] = bytes[i];
}

static void consume_all(void)
{
	const struct vgpu_frame *frame;
	uint64_t head = consumer.head, n_frames = 0;

	while (!vgpu_ring_next(&consumer, &frame)) {
		promise(frame->size >= sizeof(*frame) && frame->size <= VGPU_FRAME_MAX);
		promise(!(frame->flags & ~_VGPU_FRAME_FLAGS));
		promise(frame->call != VGPU_CALL_PAD);
		promise(consumer.head > head && consumer.head <= consumer.tail);
		promise(++n_frames <= VGPU_RING_SIZE / VGPU_FRAME_ALIGN);
		head = consumer.head;
		vgpu_ring_release(&consumer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t words[2];

	if (!area)
		area = mmap(NULL, VGPU_RING_OFF + VGPU_RING_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (size < sizeof(words) || area == MAP_FAILED)
		return 0;
	memcpy(words, data, sizeof(words));
	vgpu_ring_consumer_init(&consumer, area);
	consumer.head = consumer.tail = words[1] % (1ull << 40) * VGPU_FRAME_ALIGN;
	consumer.control->tail = consumer.head + words[0];
	fill(consumer.head, data + sizeof(words), size - sizeof(words));
	consume_all();
	return 0;
}
