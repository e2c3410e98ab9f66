/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies
 *
 * Device and worker can access device memory and the arena, and nothing else. Pageable
 * memory is therefore copied through staging blocks: towards the device, the call may
 * return once the data is in a block, because the block's word shows when it is free
 * again; from the device, several blocks are in flight while one is emptied.
 *
 * A copy whose device side is not known to be within one allocation is sent all the same,
 * but with a reply: the worker decides about addresses.
 */

#include <string.h>

#include "vgpu/bulk.h"
#include "vgpu/g-driver.pb-c.h"

#include "memory/copy.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "memory/share.h"
#include "memory/staging.h"
#include "process/call.h"
#include "process/print.h"
#include "process/stream.h"
#include "wait/capture.h"

/*
 * Copies of at least this size use non-temporal stores, into their blocks and out of
 * them. On processors that a hypervisor placed far apart, writing a line that the other
 * one has just read takes twice as long as writing memory; and a graphics card does not
 * profit from data in a cache.
 */
#define PAST_CACHES_MIN (8u << 20)
/* Blocks of one copy that are on their way from the device at a time. */
#define PIPELINE_DEPTH 4u

enum shim_place shim_copy_place(uint64_t address)
{
	if (shim_window_is_arena(&shim_channel.window, address))
		return SHIM_PLACE_ARENA;
	return shim_window_is_device(&shim_channel.window, address) ||
			       shim_range_is_variable(address)
		       ? SHIM_PLACE_DEVICE
		       : SHIM_PLACE_PAGEABLE;
}

/* One copy between arena and device, or within either. The word is optional. */
struct transfer {
	uint64_t to;
	uint64_t from;
	uint64_t size;
	uint32_t word;
	uint64_t value;
};

static CUresult send_to_device(const struct transfer *transfer, CUstream stream)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyHtoDAsync_v2);

	call.wants_result =
		transfer->size && !shim_range_covers(transfer->to, transfer->size);
	request.dst_device = transfer->to;
	request.src_host = transfer->from;
	request.byte_count = transfer->size;
	request.h_stream = (uint64_t)(uintptr_t)stream;
	request.word = transfer->word;
	request.word_value = transfer->value;
	return shim_call_async(&call, &request.base, stream);
}

static CUresult send_from_device(const struct transfer *transfer, CUstream stream)
{
	Vgpu__CuMemcpyDtoHAsyncV2Request request =
		VGPU__CU_MEMCPY_DTO_HASYNC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyDtoHAsync_v2);

	call.wants_result = !shim_range_covers(transfer->from, transfer->size);
	request.dst_host = transfer->to;
	request.src_device = transfer->from;
	request.byte_count = transfer->size;
	request.h_stream = (uint64_t)(uintptr_t)stream;
	request.word = transfer->word;
	request.word_value = transfer->value;
	return shim_call_async(&call, &request.base, stream);
}

/* Within the device or within the arena: without a word. */
static CUresult send_within(const struct transfer *transfer, CUstream stream)
{
	Vgpu__CuMemcpyDtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_DTO_DASYNC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpyDtoDAsync_v2);

	call.wants_result = !shim_range_covers(transfer->to, transfer->size) ||
			    !shim_range_covers(transfer->from, transfer->size);
	request.dst_device = transfer->to;
	request.src_device = transfer->from;
	request.byte_count = transfer->size;
	request.h_stream = (uint64_t)(uintptr_t)stream;
	return shim_call_async(&call, &request.base, stream);
}

static void copy_piece(void *to, const void *from, uint64_t size, bool past_caches)
{
	if (past_caches)
		vgpu_bulk_copy_past_caches(to, from, size);
	else
		vgpu_bulk_copy(to, from, size);
}

static CUresult push_piece(uint64_t to, const uint8_t *from, uint64_t size,
	const struct shim_piece *piece, CUstream stream)
{
	const struct transfer transfer = {
		.to = to,
		.from = (uint64_t)(uintptr_t)piece->data,
		.size = size,
		.word = piece->word,
		.value = piece->value,
	};
	CUresult result;

	vgpu_bulk_copy(piece->data, from, size);
	result = send_to_device(&transfer, stream);
	shim_share_done(piece, result == CUDA_SUCCESS);
	return result;
}

/* Sends pageable memory. It is all in blocks when this returns. */
static CUresult push(uint64_t to, const uint8_t *from, uint64_t size, CUstream stream)
{
	const bool past_caches = size >= PAST_CACHES_MIN;
	struct shim_piece piece;

	if (shim_share_take(size, stream, &piece))
		return push_piece(to, from, size, &piece, stream);
	while (size) {
		struct transfer transfer;
		struct shim_block block;
		CUresult result;

		result = shim_staging_take(size, SHIM_BLOCK_TO_DEVICE, stream, &block);
		if (result != CUDA_SUCCESS)
			return result;
		transfer = (struct transfer){
			.to = to,
			.from = (uint64_t)(uintptr_t)block.data,
			.size = size < block.size ? size : block.size,
			.word = block.word,
			.value = block.value,
		};
		copy_piece(block.data, from, transfer.size, past_caches);
		result = send_to_device(&transfer, stream);
		if (result != CUDA_SUCCESS) {
			shim_staging_give_unused(&block);
			return result;
		}
		to += transfer.size;
		from += transfer.size;
		size -= transfer.size;
	}
	return CUDA_SUCCESS;
}

/* Blocks in flight from the device, oldest first. */
struct pull {
	struct shim_block blocks[PIPELINE_DEPTH];
	uint64_t sizes[PIPELINE_DEPTH];
	uint32_t first;
	uint32_t n;
	/* of the whole copy */
	uint64_t worth_size;
	bool past_caches;
};

/* Asks for the next piece. Return: CUDA_ERROR_NOT_READY where that has to wait until a
 * block of this copy is emptied. */
static CUresult pull_one(struct pull *pull, uint64_t from, uint64_t size, CUstream stream)
{
	uint32_t i = (pull->first + pull->n) % PIPELINE_DEPTH;
	struct shim_block *block = &pull->blocks[i];
	struct transfer transfer;
	CUresult result = CUDA_SUCCESS;

	if (!pull->n)
		result = shim_staging_take(size, SHIM_BLOCK_FROM_DEVICE, stream, block);
	else if (pull->n == PIPELINE_DEPTH ||
		 !shim_staging_try_take(size, SHIM_BLOCK_FROM_DEVICE, stream, block))
		result = CUDA_ERROR_NOT_READY;
	if (result != CUDA_SUCCESS)
		return result;
	pull->sizes[i] = size < block->size ? size : block->size;
	transfer = (struct transfer){
		.to = (uint64_t)(uintptr_t)block->data,
		.from = from,
		.size = pull->sizes[i],
		.word = block->word,
		.value = block->value,
	};
	result = send_from_device(&transfer, stream);
	if (result != CUDA_SUCCESS) {
		shim_staging_give_unused(block);
		return result;
	}
	pull->n++;
	return CUDA_SUCCESS;
}

/* Empties the oldest block. Into one whose wait failed the device may still write. */
static CUresult empty_one(struct pull *pull, uint8_t **top, CUstream stream)
{
	const struct shim_block *block = &pull->blocks[pull->first];
	uint64_t size = pull->sizes[pull->first];
	CUresult result;

	result = shim_staging_wait(block->word, block->value, pull->worth_size, stream);
	if (result == CUDA_SUCCESS)
		copy_piece(*top, block->data, size, pull->past_caches);
	shim_staging_release(block);
	*top += size;
	pull->first = (pull->first + 1) % PIPELINE_DEPTH;
	pull->n--;
	return result;
}

static CUresult pull(uint8_t *to, uint64_t from, uint64_t size, CUstream stream)
{
	struct pull under_way = {
		.worth_size = shim_staging_worth(size),
		.past_caches = size >= PAST_CACHES_MIN,
	};
	CUresult result = CUDA_SUCCESS;

	while (result == CUDA_SUCCESS && (size || under_way.n)) {
		result = size ? pull_one(&under_way, from, size, stream)
			      : CUDA_ERROR_NOT_READY;
		if (result == CUDA_ERROR_NOT_READY) {
			result = empty_one(&under_way, &to, stream);
		} else if (result == CUDA_SUCCESS) {
			uint32_t last =
				(under_way.first + under_way.n - 1) % PIPELINE_DEPTH;

			from += under_way.sizes[last];
			size -= under_way.sizes[last];
		}
	}
	/* After a refusal, what was sent before it is still awaited. */
	while (under_way.n)
		empty_one(&under_way, &to, stream);
	return result;
}

/* Between memories that the device reaches itself. */
static CUresult copy_reachable(
	uint64_t to, uint64_t from, uint64_t size, CUstream stream, bool waits)
{
	bool to_device = shim_copy_place(to) == SHIM_PLACE_DEVICE;
	bool from_device = shim_copy_place(from) == SHIM_PLACE_DEVICE;
	struct transfer transfer = {
		.to = to,
		.from = from,
		.size = size,
		.word = SHIM_WORD_NONE,
	};
	struct shim_thread *thread = shim_thread_get();
	CUresult result;

	if (to_device == from_device) {
		result = send_within(&transfer, stream);
		/* Copies within the device are never waited for. */
		return result == CUDA_SUCCESS && waits && !to_device
			       ? shim_stream_synchronize(stream)
			       : result;
	}
	if (waits && thread && thread->has_lane && !shim_print_is_owed(&shim_channel)) {
		transfer.word = SHIM_WORDS_LANES + thread->lane;
		transfer.value = shim_words_read(transfer.word) + 1;
	}
	result = to_device ? send_to_device(&transfer, stream)
			   : send_from_device(&transfer, stream);
	if (result != CUDA_SUCCESS || !waits)
		return result;
	return transfer.word == SHIM_WORD_NONE
		       ? shim_stream_synchronize(stream)
		       : shim_staging_wait(transfer.word, transfer.value, size, stream);
}

/* Neither side is device memory, so only earlier work on the arena has to be awaited. The
 * host does not see the copy, so its addresses are checked here. */
static CUresult copy_on_host(uint64_t to, uint64_t from, uint64_t size, CUstream stream)
{
	bool to_arena = shim_copy_place(to) == SHIM_PLACE_ARENA;
	bool from_arena = shim_copy_place(from) == SHIM_PLACE_ARENA;
	CUresult result = CUDA_SUCCESS;

	if ((to_arena && !shim_range_covers(to, size)) ||
		(from_arena && !shim_range_covers(from, size)))
		return CUDA_ERROR_INVALID_VALUE;
	if (to_arena || from_arena)
		result = shim_stream_synchronize(stream);
	if (result == CUDA_SUCCESS)
		memmove(shim_pointer(to), shim_pointer(from), size);
	return result;
}

static CUresult copy(
	uint64_t to, uint64_t from, uint64_t size, CUstream stream, bool waits)
{
	enum shim_place to_place = shim_copy_place(to),
			from_place = shim_copy_place(from);

	if (!size)
		return CUDA_SUCCESS;
	if (to_place != SHIM_PLACE_PAGEABLE && from_place != SHIM_PLACE_PAGEABLE)
		return copy_reachable(to, from, size, stream, waits);
	if (to_place == SHIM_PLACE_DEVICE)
		return push(to, shim_pointer(from), size, stream);
	if (from_place == SHIM_PLACE_DEVICE)
		return pull(shim_pointer(to), from, size, stream);
	return copy_on_host(to, from, size, stream);
}

void shim_copy_end_stream(CUstream stream)
{
	struct shim_block block;
	struct transfer transfer = {};

	if (!shim_share_end(stream, &block))
		return;
	transfer.word = block.word;
	transfer.value = block.value;
	/* If the call cannot be sent the blocks are freed with their context. */
	send_to_device(&transfer, stream);
}

CUresult shim_copy_settle(uint64_t to, uint64_t from, CUstream stream)
{
	bool is_pageable = shim_copy_place(to) == SHIM_PLACE_PAGEABLE ||
			   shim_copy_place(from) == SHIM_PLACE_PAGEABLE;

	if (!shim_range_syncs(to, from) &&
		!(is_pageable && shim_print_is_owed(&shim_channel)))
		return CUDA_SUCCESS;
	return shim_stream_synchronize(stream);
}

static bool is_captured(uint64_t to, uint64_t from, uint64_t size, CUstream stream,
	bool waits, CUresult *resultp)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = to,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1,
	};

	return shim_capture_copy(stream,
		size && (shim_copy_place(to) == SHIM_PLACE_PAGEABLE ||
				shim_copy_place(from) == SHIM_PLACE_PAGEABLE),
		waits, &copy, resultp);
}

CUresult shim_copy(uint64_t to, uint64_t from, uint64_t size, CUstream stream, bool waits)
{
	CUresult result = CUDA_SUCCESS;

	if (shim_channel_has_capture() &&
		is_captured(to, from, size, stream, waits, &result))
		return result;
	to = shim_registered_reach(to, size);
	from = shim_registered_reach(from, size);
	result = copy(to, from, size, stream, waits);
	return result == CUDA_SUCCESS && size && waits
		       ? shim_copy_settle(to, from, stream)
		       : result;
}
