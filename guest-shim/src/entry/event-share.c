/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprocess events
 *
 * A process has the places of its own events in blocks of exportable memory, which other
 * processes map as a whole.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/wake.h"

#include "entry/event-share.h"
#include "entry/ipc.h"
#include "entry/share.h"
#include "process/context.h"
#include "process/device.h"
#include "process/thread.h"
#include "wait/capture.h"
#include "wire/channel.h"
#include "wire/lock.h"

#define SLOTS 63u

/* A wait reads the place so often at once, then less and less often. */
#define EAGER_POLLS 20u
#define NAP_MAX_MS 4u

#define BLOCK_SIZE (2ull << 20)
#define BLOCK_EVENTS (BLOCK_SIZE / sizeof(struct place))

/* In device memory. */
struct place {
	uint64_t last;		  /* the number of the last record */
	uint64_t complete[SLOTS]; /* record n: at n mod SLOTS, or a later one */
};

/* Memory with places of events of this process. */
struct block {
	struct block *next;
	uint64_t base;
	uint64_t size;
	CUdevice device;
	uint8_t token[SHIM_TOKEN_SIZE];
	uint32_t next_index; /* where the search for a free one begins */
	uint32_t n_used;
	bool is_used[BLOCK_EVENTS];
};

struct shim_event_share {
	struct block *block; /* NULL: of another process */
	uint32_t index;
	uint64_t address; /* of the place */
	uint64_t first;	  /* records up to this one were of an event before */
};

/* What is in a CUipcEventHandle, which is opaque to programs. */
struct contents {
	uint32_t magic;
	int32_t device; /* the host's number */
	uint8_t token[SHIM_TOKEN_SIZE];
	uint64_t process; /* a random number of the one that exports */
	uint64_t block_size;
	uint64_t index;
	uint64_t first;
};

#define MAGIC 0x65706976u /* "vipe" */

_Static_assert(sizeof(struct contents) <= sizeof(CUipcEventHandle), "it fits in");

/* A stream for the copies of a context: they wait for nothing else. */
struct side {
	struct side *next;
	const struct shim_context *context;
	uint32_t epoch;
	CUstream stream;
};

static struct {
	struct shim_lock lock;
	struct block *blocks;
	struct side *sides;
} events;

/*
 * Access to a place
 */

static bool find_side(const struct shim_context *context, CUstream *streamp)
{
	const struct side *side;

	SHIM_LOCKED(&events.lock);
	for (side = events.sides; side; side = side->next)
		if (side->context == context && side->epoch == context->epoch)
			break;
	*streamp = side ? side->stream : NULL;
	return side;
}

static CUresult side_stream(CUstream *streamp)
{
	struct shim_context *context = shim_thread_context(shim_thread_get());
	struct side *side;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (find_side(context, streamp))
		return CUDA_SUCCESS;
	side = malloc(sizeof(*side));
	if (!side)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*side = (struct side){ .context = context, .epoch = context->epoch };
	result = shim_cuStreamCreate(&side->stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS) {
		free(side);
		return result;
	}
	/* Of two threads, the stream of one is never used. */
	*streamp = side->stream;
	shim_lock(&events.lock);
	side->next = events.sides;
	events.sides = side;
	shim_unlock(&events.lock);
	return CUDA_SUCCESS;
}

static CUresult read_place(const struct shim_event_share *share, struct place *place)
{
	CUstream stream;
	CUresult result;

	result = side_stream(&stream);
	if (result == CUDA_SUCCESS)
		result = shim_cuMemcpyDtoHAsync_v2(
			place, share->address, sizeof(*place), stream);
	return result == CUDA_SUCCESS ? shim_cuStreamSynchronize(stream) : result;
}

static CUresult write_last(const struct shim_event_share *share, uint64_t last)
{
	CUstream stream;
	CUresult result;

	result = side_stream(&stream);
	if (result == CUDA_SUCCESS)
		result = shim_cuMemcpyHtoDAsync_v2(
			share->address, &last, sizeof(last), stream);
	return result == CUDA_SUCCESS ? shim_cuStreamSynchronize(stream) : result;
}

static uint64_t slot(const struct shim_event_share *share, uint64_t record)
{
	return share->address + offsetof(struct place, complete[0]) +
	       record % SLOTS * sizeof(uint64_t);
}

/*
 * Blocks
 */

static CUresult block_fill(struct block *block)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, block->device },
	};
	CUmemGenericAllocationHandle memory;
	CUstream stream;
	CUresult result;

	result = shim_cuMemCreate(&memory, block->size, &prop, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_share_export(memory, block->token);
	if (result == CUDA_SUCCESS)
		result = shim_ipc_map(memory, block->size, block->device, &block->base);
	shim_cuMemRelease(memory);
	if (result == CUDA_SUCCESS)
		result = side_stream(&stream);
	if (result == CUDA_SUCCESS)
		result = shim_cuMemsetD8Async(block->base, 0, block->size, stream);
	return result == CUDA_SUCCESS ? shim_cuStreamSynchronize(stream) : result;
}

static CUresult block_new(CUdevice device, struct block **blockp)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
	};
	struct block *block;
	size_t granularity;
	CUresult result;
	int can = 0;

	result = shim_cuDeviceGetAttribute(&can,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device);
	if (result == CUDA_SUCCESS && !can)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = shim_cuMemGetAllocationGranularity(
			&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS)
		return result;
	block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->device = device;
	block->size = granularity > BLOCK_SIZE ? granularity : BLOCK_SIZE;
	result = block_fill(block);
	if (result != CUDA_SUCCESS) {
		free(block);
		return result;
	}
	*blockp = block;
	return CUDA_SUCCESS;
}

/* With the lock. The place that has been free longest is used again. */
static bool take_place(struct block *block, CUdevice device, uint32_t *indexp)
{
	uint32_t index = block->next_index;

	if (block->device != device || block->n_used == BLOCK_EVENTS)
		return false;
	while (block->is_used[index])
		index = (index + 1) % BLOCK_EVENTS;
	block->is_used[index] = true;
	block->n_used++;
	block->next_index = (index + 1) % BLOCK_EVENTS;
	*indexp = index;
	return true;
}

static bool take(struct shim_event_share *share, CUdevice device)
{
	struct block *block;

	SHIM_LOCKED(&events.lock);
	for (block = events.blocks; block; block = block->next)
		if (take_place(block, device, &share->index))
			break;
	share->block = block;
	return block;
}

static CUresult take_or_grow(struct shim_event_share *share, CUdevice device)
{
	struct block *block;
	CUresult result;

	while (!take(share, device)) {
		result = block_new(device, &block);
		if (result != CUDA_SUCCESS)
			return result;
		shim_lock(&events.lock);
		block->next = events.blocks;
		events.blocks = block;
		shim_unlock(&events.lock);
	}
	share->address = share->block->base + share->index * sizeof(struct place);
	return CUDA_SUCCESS;
}

/*
 * Events
 */

CUresult shim_event_share_new(struct shim_event_share **sharep)
{
	struct shim_context *context = shim_thread_context(shim_thread_get());
	struct shim_event_share *share;
	struct place place;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	share = calloc(1, sizeof(*share));
	if (!share)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = take_or_grow(share, context->device);
	if (result == CUDA_SUCCESS)
		result = read_place(share, &place);
	if (result != CUDA_SUCCESS) {
		shim_event_share_free(share);
		return result;
	}
	share->first = place.last;
	*sharep = share;
	return CUDA_SUCCESS;
}

void shim_event_share_free(struct shim_event_share *share)
{
	if (share && share->block) {
		shim_lock(&events.lock);
		share->block->is_used[share->index] = false;
		share->block->n_used--;
		shim_unlock(&events.lock);
	} else if (share && share->address) {
		shim_ipc_close(share->address);
	}
	free(share);
}

CUresult shim_event_share_export(
	const struct shim_event_share *share, CUipcEventHandle *handle)
{
	struct contents contents = { .magic = MAGIC };

	if (!share->block)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(contents.token, share->block->token, sizeof(contents.token));
	contents.device = shim_device_to_host(share->block->device);
	contents.process = shim_ipc_process();
	contents.block_size = share->block->size;
	contents.index = share->index;
	contents.first = share->first;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &contents, sizeof(contents));
	return CUDA_SUCCESS;
}

CUresult shim_event_share_import(
	const CUipcEventHandle *handle, struct shim_event_share **sharep)
{
	struct shim_context *context = shim_thread_context(shim_thread_get());
	struct shim_event_share *share;
	struct contents contents;
	CUresult result;
	uint64_t base;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* It is another process's: it may be anything. */
	memcpy(&contents, handle, sizeof(contents));
	if (contents.magic != MAGIC || contents.index >= BLOCK_EVENTS ||
		contents.block_size < BLOCK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	if (contents.process == shim_ipc_process())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!shim_device_get(shim_device_from_host(contents.device)))
		return CUDA_ERROR_INVALID_DEVICE;
	share = calloc(1, sizeof(*share));
	if (!share)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_ipc_open(
		contents.token, contents.block_size, context->device, &base);
	if (result != CUDA_SUCCESS) {
		free(share);
		return result;
	}
	share->address = base + contents.index * sizeof(struct place);
	share->first = contents.first;
	*sharep = share;
	return CUDA_SUCCESS;
}

/* A capture cannot record what other processes see. */
static CUresult check_stream(CUstream stream)
{
	return shim_channel_has_capture() && shim_capture_is_active(stream)
		       ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
		       : CUDA_SUCCESS;
}

CUresult shim_event_share_record(struct shim_event_share *share, CUstream stream)
{
	struct place place;
	CUresult result;
	uint64_t record;

	result = check_stream(stream);
	if (result == CUDA_SUCCESS)
		result = read_place(share, &place);
	if (result != CUDA_SUCCESS)
		return result;
	record = place.last + 1;
	if (record > SLOTS)
		result = shim_cuStreamWaitValue64_v2(stream, slot(share, record),
			record - SLOTS, CU_STREAM_WAIT_VALUE_GEQ);
	if (result == CUDA_SUCCESS)
		result = shim_cuStreamWriteValue64_v2(stream, slot(share, record), record,
			CU_STREAM_WRITE_VALUE_DEFAULT);
	/* Whoever learns of the call finds the record. */
	return result == CUDA_SUCCESS ? write_last(share, record) : result;
}

/* Whether the last record is complete. */
static bool is_over(const struct shim_event_share *share, const struct place *place)
{
	return place->last <= share->first ||
	       place->complete[place->last % SLOTS] >= place->last;
}

CUresult shim_event_share_wait(struct shim_event_share *share, CUstream stream)
{
	struct place place;
	CUresult result;

	result = check_stream(stream);
	if (result == CUDA_SUCCESS)
		result = read_place(share, &place);
	if (result != CUDA_SUCCESS || is_over(share, &place))
		return result;
	return shim_cuStreamWaitValue64_v2(
		stream, slot(share, place.last), place.last, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult shim_event_share_query(struct shim_event_share *share)
{
	struct place place;
	CUresult result = read_place(share, &place);

	if (result != CUDA_SUCCESS)
		return result;
	return is_over(share, &place) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult shim_event_share_synchronize(struct shim_event_share *share)
{
	uint32_t n_polls = 0, never = 0;
	struct vgpu_nap nap = {};
	struct place place;
	uint64_t record;
	CUresult result;

	result = read_place(share, &place);
	if (result != CUDA_SUCCESS || is_over(share, &place))
		return result;
	/* What is recorded from now on is not waited for. */
	record = place.last;
	/* Nobody wakes this process. */
	do {
		if (n_polls++ > EAGER_POLLS)
			vgpu_nap_word(&never, 0, vgpu_nap_next(&nap, 1, NAP_MAX_MS));
		result = read_place(share, &place);
	} while (result == CUDA_SUCCESS && place.complete[record % SLOTS] < record);
	return result;
}
