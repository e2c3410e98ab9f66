/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: what a stream holds, and those that need no kernel thread
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vgpu/bulk.h"

#include "exec/bits.h"
#include "sched/graph.h"
#include "sched/sched.h"

uint64_t sched_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

const struct softgpu_trace *sched_trace;

static const char *op_name(const struct sched_op *op)
{
	switch (op->kind) {
	case SCHED_COPY:
		return "memory copy";
	case SCHED_FILL:
		return "memory fill";
	case SCHED_LAUNCH:
		return softgpu_kernel_info(op->grid.launch.kernel)->name;
	default:
		return "host function";
	}
}

void sched_op_note(const struct sched_op *op, bool is_end)
{
	if (__builtin_expect(sched_is_traced(), 0))
		sched_trace->note(
			sched_trace->data, op->tag, op->stream->id, op_name(op), is_end);
}

void sched_op_begun(const struct sched *sched, struct sched_op *op)
{
	if (!op->is_pending)
		return;
	op->is_pending = false;
	sched_allowance_unpend(sched->allowance);
}

_Static_assert(offsetof(struct sched_op, run) + sizeof(struct sched_run) <=
		       offsetof(struct sched_op, grid.n_blocks),
	"so much is copied of all operations but launches of kernels");

struct sched_op *sched_op_new(struct sched *sched, const struct sched_op *template)
{
	struct sched_op *op = STAILQ_FIRST(&sched->spare);

	if (op) {
		STAILQ_REMOVE_HEAD(&sched->spare, next);
		sched->n_spare--;
	} else {
		op = malloc(sizeof(*op));
		if (!op)
			return NULL;
	}
	/* The parameters of a launch are most of an operation, and mostly empty. */
	if (template->kind == SCHED_LAUNCH) {
		memcpy(op, template, offsetof(struct sched_op, grid.params));
		if (!template->grid.long_params) {
			memcpy(op->grid.params, template->grid.launch.params,
				template->grid.launch.params_size);
			op->grid.launch.params = op->grid.params;
		}
	} else {
		memcpy(op, template, offsetof(struct sched_op, grid.n_blocks));
	}
	return op;
}

void sched_op_discard(const struct sched_op *op)
{
	if (op->kind == SCHED_LAUNCH)
		free(op->grid.long_params);
	if (op->kind == SCHED_MARK)
		sched_mark_finish(op->mark);
	if (op->kind == SCHED_MARK || op->kind == SCHED_WAIT)
		sched_mark_unref(op->mark);
	if (op->kind == SCHED_GRAPH)
		sched_graph_discard(op);
}

void sched_op_free(struct sched *sched, struct sched_op *op)
{
	sched_op_discard(op);
	if (sched->n_spare >= SCHED_SPARE_MAX) {
		free(op);
		return;
	}
	STAILQ_INSERT_HEAD(&sched->spare, op, next);
	sched->n_spare++;
}

uint64_t sched_op_size(const struct sched_op *op)
{
	if (op->kind == SCHED_COPY)
		return op->copy.width * op->copy.height * op->copy.depth;
	return op->fill.width * op->fill.height * op->fill.element;
}

static void sched_row_run(void *to, const void *from, uint64_t size, bool past_caches)
{
	uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;

	if (a < b + size && b < a + size)
		memmove(to, from, size);
	else if (!past_caches && size < SCHED_PAST_CACHES_MIN)
		vgpu_bulk_copy(to, from, size);
	else
		vgpu_bulk_copy_past_caches(to, from, size);
}

/* Whether this continues a copy in pieces, as through a small staging buffer that is
 * reused, whose total exceeds the caches. */
static bool sched_is_piece(const struct sched_copy *copy, struct sched_stream *stream)
{
	if (copy->height != 1 || copy->depth != 1 || copy->width < SCHED_PIECE_MIN) {
		stream->pieces_size = 0;
		return false;
	}
	if (copy->to != stream->piece_to && copy->from != stream->piece_from)
		stream->pieces_size = 0;
	stream->piece_to = copy->to + copy->width;
	stream->piece_from = copy->from + copy->width;
	stream->pieces_size += copy->width;
	return stream->pieces_size >= SCHED_PIECES_MIN;
}

static void sched_copy_run(const struct sched_copy *copy, struct sched_stream *stream)
{
	const bool past_caches = sched_is_piece(copy, stream);

	for (uint64_t z = 0; z < copy->depth; z++)
		for (uint64_t y = 0; y < copy->height; y++) {
			uint64_t to = copy->to + z * copy->to_slice + y * copy->to_pitch;
			uint64_t from =
				copy->from + z * copy->from_slice + y * copy->from_pitch;

			sched_row_run((void *)(uintptr_t)to,
				(const void *)(uintptr_t)from, copy->width, past_caches);
			softgpu_space_wrote(
				&stream->context->sched->watched, to, copy->width);
		}
}

static void sched_fill_row(void *to, const struct sched_fill *fill)
{
	uint16_t *halves = to;
	uint32_t *words = to;

	switch (fill->element) {
	case 1:
		memset(to, fill->value, fill->width);
		break;
	case 2:
		for (uint64_t i = 0; i < fill->width; i++)
			halves[i] = fill->value;
		break;
	default:
		for (uint64_t i = 0; i < fill->width; i++)
			words[i] = fill->value;
		break;
	}
}

static void sched_fill_run(const struct sched_fill *fill, struct sched_stream *stream)
{
	for (uint64_t y = 0; y < fill->height; y++) {
		uint64_t to = fill->to + y * fill->pitch;

		sched_fill_row((void *)(uintptr_t)to, fill);
		softgpu_space_wrote(&stream->context->sched->watched, to,
			fill->width * fill->element);
	}
}

void sched_op_run(const struct sched_op *op, struct sched_stream *stream)
{
	sched_op_note(op, false);
	if (op->kind == SCHED_COPY)
		sched_copy_run(&op->copy, stream);
	else
		sched_fill_run(&op->fill, stream);
	sched_op_note(op, true);
}

void sched_word_write(const struct sched_word *word)
{
	/* Partner: the waiter for the word, in a guest or in sched_word_is_met(). */
	if (word->size == 4)
		__atomic_store_n((uint32_t *)(uintptr_t)word->address, word->value,
			__ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)(uintptr_t)word->address, word->value,
			__ATOMIC_SEQ_CST);
}

bool sched_word_is_met(const struct sched_word *word)
{
	uint64_t now, value = word->value;
	int64_t ahead;

	if (word->size == 4) {
		now = __atomic_load_n(
			(const uint32_t *)(uintptr_t)word->address, __ATOMIC_SEQ_CST);
		ahead = (int32_t)(now - value);
	} else {
		now = __atomic_load_n(
			(const uint64_t *)(uintptr_t)word->address, __ATOMIC_SEQ_CST);
		ahead = (int64_t)(now - value);
	}
	switch (word->compare) {
	case SCHED_COMPARE_EQ:
		return now == value;
	case SCHED_COMPARE_AND:
		return now & value;
	case SCHED_COMPARE_NOR:
		return ~(now | value) & (word->size == 4 ? UINT32_MAX : UINT64_MAX);
	default:
		return ahead >= 0;
	}
}
