/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies with arrays
 *
 * An array has no address, so each of these copies is a message of its own kind. A
 * pageable side is copied through staging blocks, packed, as many rows at a time as fit;
 * a longer row is split. Only the host knows the format of an array, so each message has
 * a reply.
 */

#include <string.h>

#include "vgpu/bulk.h"
#include "vgpu/checked.h"
#include "vgpu/g-driver.pb-c.h"

#include "memory/copy-array.h"
#include "memory/copy.h"
#include "memory/range.h"
#include "memory/staging.h"
#include "process/call.h"
#include "process/stream.h"
#include "wait/capture.h"

static CUresult send_piece(const struct shim_array_box *piece,
	const struct shim_block *block, CUstream stream)
{
	Vgpu__VgpuCopyArrayRequest request = VGPU__VGPU_COPY_ARRAY_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuCopyArray);
	struct vgpu_array_box box = piece->box;

	call.wants_result = true;
	request.stream = (uint64_t)(uintptr_t)stream;
	request.dst_array = (uint64_t)(uintptr_t)piece->to;
	request.src_array = (uint64_t)(uintptr_t)piece->from;
	request.box.data = (uint8_t *)&box;
	request.box.len = sizeof(box);
	request.word = block ? block->word : SHIM_WORD_NONE;
	request.word_value = block ? block->value : 0;
	return shim_call_async(&call, &request.base, stream);
}

/* The side in memory, and the layout of the piece in a block. */
static CUresult push_piece(const struct shim_array_box *piece, CUstream stream)
{
	const struct vgpu_array_box *box = &piece->box;
	struct shim_array_box sent = *piece;
	struct shim_block block;
	CUresult result;

	result = shim_staging_take(
		box->width * box->height, SHIM_BLOCK_TO_DEVICE, stream, &block);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint64_t i = 0; i < box->height; i++)
		vgpu_bulk_copy(block.data + i * box->width,
			shim_pointer(box->from.address + i * box->from.pitch),
			box->width);
	sent.box.from.address = (uint64_t)(uintptr_t)block.data;
	sent.box.from.pitch = box->width;
	sent.box.from.rows = box->height;
	result = send_piece(&sent, &block, stream);
	if (result != CUDA_SUCCESS)
		shim_staging_give_unused(&block);
	return result;
}

static CUresult pull_piece(const struct shim_array_box *piece, CUstream stream)
{
	const struct vgpu_array_box *box = &piece->box;
	struct shim_array_box sent = *piece;
	struct shim_block block;
	CUresult result;

	result = shim_staging_take(
		box->width * box->height, SHIM_BLOCK_FROM_DEVICE, stream, &block);
	if (result != CUDA_SUCCESS)
		return result;
	sent.box.to.address = (uint64_t)(uintptr_t)block.data;
	sent.box.to.pitch = box->width;
	sent.box.to.rows = box->height;
	result = send_piece(&sent, &block, stream);
	if (result != CUDA_SUCCESS) {
		shim_staging_give_unused(&block);
		return result;
	}
	result = shim_staging_wait(
		block.word, block.value, box->width * box->height, stream);
	for (uint64_t i = 0; result == CUDA_SUCCESS && i < box->height; i++)
		vgpu_bulk_copy(shim_pointer(box->to.address + i * box->to.pitch),
			block.data + i * box->width, box->width);
	shim_staging_release(&block);
	return result;
}

static void skip(struct vgpu_array_side *side, uint64_t x, uint64_t y, uint64_t z)
{
	side->address += (z * side->rows + y) * side->pitch + x;
	side->x += x;
	side->y += y;
	side->z += z;
}

/* The piece that begins at some place of the whole. */
static struct shim_array_box piece_at(
	const struct shim_array_box *whole, uint64_t x, uint64_t y, uint64_t z)
{
	struct shim_array_box piece = *whole;

	skip(&piece.box.to, x, y, z);
	skip(&piece.box.from, x, y, z);
	piece.box.width -= x;
	piece.box.height -= y;
	piece.box.depth = 1;
	return piece;
}

static CUresult copy_pieces(const struct shim_array_box *whole, CUstream stream)
{
	const uint64_t fits = SHIM_STAGING_LARGE_SIZE;
	const struct vgpu_array_box *box = &whole->box;
	uint64_t width = box->width < fits ? box->width : fits;
	uint64_t height = fits / width;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t z = 0; z < box->depth; z++)
		for (uint64_t y = 0; y < box->height; y += height)
			for (uint64_t x = 0; x < box->width; x += width) {
				struct shim_array_box piece = piece_at(whole, x, y, z);

				if (piece.box.width > width)
					piece.box.width = width;
				if (piece.box.height > height)
					piece.box.height = height;
				result = whole->to ? push_piece(&piece, stream)
						   : pull_piece(&piece, stream);
				if (result != CUDA_SUCCESS)
					return result;
			}
	return result;
}

/* The copy as a node of a graph has it. */
static CUDA_MEMCPY3D node_of(const struct shim_array_box *box)
{
	const struct vgpu_array_side *to = &box->box.to, *from = &box->box.from;

	return (CUDA_MEMCPY3D){
		.srcXInBytes = from->x,
		.srcY = from->y,
		.srcZ = from->z,
		.srcMemoryType = box->from ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.srcDevice = from->address,
		.srcArray = box->from,
		.srcPitch = from->pitch,
		.srcHeight = from->rows,
		.dstXInBytes = to->x,
		.dstY = to->y,
		.dstZ = to->z,
		.dstMemoryType = box->to ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
		.dstDevice = to->address,
		.dstArray = box->to,
		.dstPitch = to->pitch,
		.dstHeight = to->rows,
		.WidthInBytes = box->box.width,
		.Height = box->box.height,
		.Depth = box->box.depth,
	};
}

/* The address of a side in registered memory becomes the one that the device has. */
static void reach(struct shim_array_box *box)
{
	struct vgpu_array_side *memory = box->to ? &box->box.from : &box->box.to;
	struct shim_side side = {
		.address = memory->address,
		.pitch = memory->pitch,
		.rows = memory->rows,
	};

	shim_side_reach(&side, box->box.width, box->box.height, box->box.depth);
	memory->address = side.address;
}

CUresult shim_copy_array(const struct shim_array_box *given, CUstream stream, bool waits)
{
	struct shim_array_box box = *given;
	bool is_within = box.to && box.from;
	const struct vgpu_array_side *memory = box.to ? &box.box.from : &box.box.to;
	enum shim_place place = SHIM_PLACE_DEVICE;
	CUresult result;

	if (!box.box.width || !box.box.height || !box.box.depth)
		return CUDA_SUCCESS;
	if (!is_within)
		place = shim_copy_place(memory->address);
	if (shim_channel_has_capture()) {
		const CUDA_MEMCPY3D copy = node_of(&box);

		if (shim_capture_copy(
			    stream, place == SHIM_PLACE_PAGEABLE, waits, &copy, &result))
			return result;
	}
	if (place == SHIM_PLACE_PAGEABLE) {
		reach(&box);
		place = shim_copy_place(memory->address);
	}
	if (place == SHIM_PLACE_PAGEABLE)
		return copy_pieces(&box, stream);
	result = send_piece(&box, NULL, stream);
	if (result == CUDA_SUCCESS && waits && place == SHIM_PLACE_ARENA)
		result = shim_stream_synchronize(stream);
	return result;
}
