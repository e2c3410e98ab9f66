/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of boxes
 *
 * If the device can access both sides, a box is one message. A pageable side is copied
 * through staging blocks layer by layer, packed, as many rows at a time as fit.
 */

#include <string.h>

#include "vgpu/bulk.h"
#include "vgpu/checked.h"
#include "vgpu/g-driver.pb-c.h"

#include "memory/copy.h"
#include "memory/range.h"
#include "memory/registered.h"
#include "memory/staging.h"
#include "process/call.h"
#include "process/stream.h"
#include "wait/capture.h"

/* The largest pitch that every device allows (CU_DEVICE_ATTRIBUTE_MAX_PITCH); above it,
 * the device's driver decides. */
#define PITCH_MAX INT32_MAX

static bool find_size(const struct shim_side *side, uint64_t width, uint64_t height,
	uint64_t depth, uint64_t *sizep)
{
	uint64_t n_rows;

	return vgpu_mul_u64(side->rows, depth - 1, &n_rows) &&
	       vgpu_add_u64(n_rows, height - 1, &n_rows) &&
	       vgpu_mul_u64(side->pitch, n_rows, sizep) &&
	       vgpu_add_u64(*sizep, width, sizep);
}

bool shim_side_is_held(const struct shim_side *side, uint64_t width, uint64_t height,
	uint64_t depth, bool *is_deniedp)
{
	uint64_t size;

	*is_deniedp = false;
	if (!width || !height || !depth)
		return true;
	return find_size(side, width, height, depth, &size) && side->pitch <= PITCH_MAX &&
	       shim_range_holds(side->address, size, is_deniedp);
}

bool shim_side_is_known(
	const struct shim_side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	bool is_denied;

	return shim_side_is_held(side, width, height, depth, &is_denied) && !is_denied;
}

void shim_side_reach(
	struct shim_side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	uint64_t size;

	if (width && height && depth && find_size(side, width, height, depth, &size))
		side->address = shim_registered_reach(side->address, size);
}

/* A block is no allocation, but certainly good. */
static bool is_known(
	const struct shim_box *box, const struct shim_side *side, bool is_block)
{
	return is_block || shim_side_is_known(side, box->width, box->height, box->depth);
}

static CUresult send_rectangle(
	const struct shim_box *box, const struct shim_block *block, CUstream stream)
{
	Vgpu__CuMemcpy2DAsyncV2Request request = VGPU__CU_MEMCPY2_DASYNC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpy2DAsync_v2);
	bool to_block = block && box->to.address == (uint64_t)(uintptr_t)block->data;

	call.wants_result = !is_known(box, &box->to, to_block) ||
			    !is_known(box, &box->from, block && !to_block);
	request.h_stream = (uint64_t)(uintptr_t)stream;
	request.dst = box->to.address;
	request.dst_pitch = box->to.pitch;
	request.src = box->from.address;
	request.src_pitch = box->from.pitch;
	request.width = box->width;
	request.height = box->height;
	request.word = block ? block->word : SHIM_WORD_NONE;
	request.word_value = block ? block->value : 0;
	return shim_call_async(&call, &request.base, stream);
}

/* Both messages of a box name its fields alike. */
#define SET_BOX(_request, _box, _stream)                                                 \
	do {                                                                             \
		(_request)->h_stream = (uint64_t)(uintptr_t)(_stream);                   \
		(_request)->dst = (_box)->to.address;                                    \
		(_request)->dst_pitch = (_box)->to.pitch;                                \
		(_request)->dst_rows = (_box)->to.rows;                                  \
		(_request)->src = (_box)->from.address;                                  \
		(_request)->src_pitch = (_box)->from.pitch;                              \
		(_request)->src_rows = (_box)->from.rows;                                \
		(_request)->width = (_box)->width;                                       \
		(_request)->height = (_box)->height;                                     \
		(_request)->depth = (_box)->depth;                                       \
	} while (0)

static CUresult send_between_contexts(const struct shim_box *box, CUstream stream)
{
	Vgpu__CuMemcpy3DPeerAsyncRequest request =
		VGPU__CU_MEMCPY3_DPEER_ASYNC_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpy3DPeerAsync);

	call.wants_result =
		!is_known(box, &box->to, false) || !is_known(box, &box->from, false);
	SET_BOX(&request, box, stream);
	request.dst_context = box->to_context;
	request.src_context = box->from_context;
	return shim_call_async(&call, &request.base, stream);
}

static CUresult send_box(const struct shim_box *box, CUstream stream)
{
	Vgpu__CuMemcpy3DAsyncV2Request request = VGPU__CU_MEMCPY3_DASYNC_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemcpy3DAsync_v2);

	if (box->to_context)
		return send_between_contexts(box, stream);
	if (box->depth == 1)
		return send_rectangle(box, NULL, stream);
	call.wants_result =
		!is_known(box, &box->to, false) || !is_known(box, &box->from, false);
	SET_BOX(&request, box, stream);
	request.word = SHIM_WORD_NONE;
	return shim_call_async(&call, &request.base, stream);
}

/* As many rows as fit a block, packed, to the device. */
static CUresult push_rows(const struct shim_box *rows, CUstream stream)
{
	struct shim_box sent = *rows;
	struct shim_block block;
	CUresult result;

	result = shim_staging_take(
		rows->width * rows->height, SHIM_BLOCK_TO_DEVICE, stream, &block);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint64_t i = 0; i < rows->height; i++)
		vgpu_bulk_copy(block.data + i * rows->width,
			shim_pointer(rows->from.address + i * rows->from.pitch),
			rows->width);
	sent.from.address = (uint64_t)(uintptr_t)block.data;
	sent.from.pitch = rows->width;
	result = send_rectangle(&sent, &block, stream);
	if (result != CUDA_SUCCESS)
		shim_staging_give_unused(&block);
	return result;
}

static CUresult pull_rows(const struct shim_box *rows, CUstream stream)
{
	struct shim_box sent = *rows;
	struct shim_block block;
	CUresult result;

	result = shim_staging_take(
		rows->width * rows->height, SHIM_BLOCK_FROM_DEVICE, stream, &block);
	if (result != CUDA_SUCCESS)
		return result;
	sent.to.address = (uint64_t)(uintptr_t)block.data;
	sent.to.pitch = rows->width;
	result = send_rectangle(&sent, &block, stream);
	if (result != CUDA_SUCCESS) {
		shim_staging_give_unused(&block);
		return result;
	}
	result = shim_staging_wait(
		block.word, block.value, rows->width * rows->height, stream);
	for (uint64_t i = 0; result == CUDA_SUCCESS && i < rows->height; i++)
		vgpu_bulk_copy(shim_pointer(rows->to.address + i * rows->to.pitch),
			block.data + i * rows->width, rows->width);
	shim_staging_release(&block);
	return result;
}

typedef CUresult (*copy_rows_fn)(const struct shim_box *rows, CUstream stream);

/* Copies one layer with one pageable side and one on the device: in pieces that fit a
 * block, and row by row if not even one row fits. */
static CUresult copy_layer(
	const struct shim_box *layer, CUstream stream, copy_rows_fn copy_rows)
{
	uint64_t n_fitting = SHIM_STAGING_LARGE_SIZE / layer->width;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t row = 0; row < layer->height && result == CUDA_SUCCESS;) {
		struct shim_box rows = *layer;

		rows.to.address += row * layer->to.pitch;
		rows.from.address += row * layer->from.pitch;
		rows.height = layer->height - row;
		if (n_fitting) {
			rows.height = rows.height < n_fitting ? rows.height : n_fitting;
			result = copy_rows(&rows, stream);
		} else {
			rows.height = 1;
			result = shim_copy(rows.to.address, rows.from.address, rows.width,
				stream, true);
		}
		row += rows.height;
	}
	return result;
}

/* The pieces come one by one, so that the box is good as a whole is found out first. */
static CUresult copy_layers(const struct shim_box *box, const struct shim_side *device,
	CUstream stream, copy_rows_fn copy_rows)
{
	CUresult result = CUDA_SUCCESS;

	if (!is_known(box, device, false))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t z = 0; z < box->depth && result == CUDA_SUCCESS; z++) {
		struct shim_box layer = *box;

		layer.to.address += z * box->to.pitch * box->to.rows;
		layer.from.address += z * box->from.pitch * box->from.rows;
		layer.depth = 1;
		result = copy_layer(&layer, stream, copy_rows);
	}
	return result;
}

/* Neither side is device memory, so only earlier work on the arena has to be awaited. The
 * host does not see the copy, so its addresses are checked here. */
static CUresult copy_on_host(const struct shim_box *box, CUstream stream)
{
	bool to_arena = shim_copy_place(box->to.address) == SHIM_PLACE_ARENA;
	bool from_arena = shim_copy_place(box->from.address) == SHIM_PLACE_ARENA;
	CUresult result = CUDA_SUCCESS;

	if ((to_arena && !is_known(box, &box->to, false)) ||
		(from_arena && !is_known(box, &box->from, false)))
		return CUDA_ERROR_INVALID_VALUE;
	if (to_arena || from_arena)
		result = shim_stream_synchronize(stream);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint64_t z = 0; z < box->depth; z++)
		for (uint64_t y = 0; y < box->height; y++)
			memmove(shim_pointer(box->to.address +
					     (z * box->to.rows + y) * box->to.pitch),
				shim_pointer(box->from.address +
					     (z * box->from.rows + y) * box->from.pitch),
				box->width);
	return CUDA_SUCCESS;
}

static CUresult copy_box(const struct shim_box *box, CUstream stream, bool waits)
{
	enum shim_place to = shim_copy_place(box->to.address),
			from = shim_copy_place(box->from.address);
	CUresult result;

	if (!box->width || !box->height || !box->depth)
		return CUDA_SUCCESS;
	if (to == SHIM_PLACE_PAGEABLE && from == SHIM_PLACE_DEVICE)
		return copy_layers(box, &box->from, stream, pull_rows);
	if (from == SHIM_PLACE_PAGEABLE && to == SHIM_PLACE_DEVICE)
		return copy_layers(box, &box->to, stream, push_rows);
	if (to == SHIM_PLACE_PAGEABLE || from == SHIM_PLACE_PAGEABLE)
		return copy_on_host(box, stream);
	result = send_box(box, stream);
	/* Copies within the device are never waited for. */
	if (result == CUDA_SUCCESS && waits &&
		(to != SHIM_PLACE_DEVICE || from != SHIM_PLACE_DEVICE))
		result = shim_stream_synchronize(stream);
	return result;
}

static bool is_captured(
	const struct shim_box *box, CUstream stream, bool waits, CUresult *resultp)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = box->from.address,
		.srcPitch = box->from.pitch,
		.srcHeight = box->from.rows,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = box->to.address,
		.dstPitch = box->to.pitch,
		.dstHeight = box->to.rows,
		.WidthInBytes = box->width,
		.Height = box->height,
		.Depth = box->depth,
	};

	return shim_capture_copy(stream,
		box->width && box->height && box->depth &&
			(shim_copy_place(box->to.address) == SHIM_PLACE_PAGEABLE ||
				shim_copy_place(box->from.address) ==
					SHIM_PLACE_PAGEABLE),
		waits, &copy, resultp);
}

CUresult shim_copy_box(const struct shim_box *box, CUstream stream, bool waits)
{
	struct shim_box reached = *box;
	CUresult result = CUDA_SUCCESS;

	if (shim_channel_has_capture() && is_captured(box, stream, waits, &result))
		return result;
	shim_side_reach(&reached.to, box->width, box->height, box->depth);
	shim_side_reach(&reached.from, box->width, box->height, box->depth);
	result = copy_box(&reached, stream, waits);
	return result == CUDA_SUCCESS && waits ? shim_copy_settle(reached.to.address,
							 reached.from.address, stream)
					       : result;
}
