/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: calls of subroutines
 *
 * Each thread has a stack in two parts. Frames, with arguments and the callee's
 * variables, are in its local memory above the kernel's own part, which kernels can
 * access. Return addresses and saved registers of the caller are in memory that no
 * address of a kernel refers to: whatever a kernel writes, it returns to its caller. Both
 * parts end at the launch's stack size: one more call is a fault.
 *
 * Everything is per lane: lanes of a warp may be in different calls at different depths,
 * be at the same instruction in different activations of one function, and return to
 * different places.
 */

#include "exec/warp.h"

/* On top of the values that a call saved. */
struct record {
	uint32_t call;
	uint32_t return_to; /* instruction */
	uint32_t frame;	    /* the caller's */
	uint32_t inner;	    /* the callee's */
};

static uint8_t *lane_local(const struct warp *w, uint32_t lane)
{
	return w->block->local + (size_t)(w->first_thread + lane) * w->block->local_size;
}

static uint8_t *lane_calls(const struct warp *w, uint32_t lane)
{
	return w->block->calls + (size_t)(w->first_thread + lane) * w->block->calls_size;
}

static void save(
	const struct warp *w, const struct code_call *call, uint32_t lane, uint8_t *to)
{
	const struct code_save *s = &w->block->kernel->saves[call->first_save];

	for (uint32_t i = 0; i < call->n_saves; to += s->size, s++, i++) {
		switch (s->size) {
		case 8:
			memcpy(to, REG(uint64_t, s->slot) + lane, 8);
			break;
		case 4:
			memcpy(to, REG(uint32_t, s->slot) + lane, 4);
			break;
		default:
			*to = w->preds[s->slot] >> lane & 1;
		}
	}
}

static void restore(const struct warp *w, const struct code_call *call, uint32_t lane,
	const uint8_t *from)
{
	const struct code_save *s = &w->block->kernel->saves[call->first_save];

	for (uint32_t i = 0; i < call->n_saves; from += s->size, s++, i++) {
		switch (s->size) {
		case 8:
			memcpy(REG(uint64_t, s->slot) + lane, from, 8);
			break;
		case 4:
			memcpy(REG(uint32_t, s->slot) + lane, from, 4);
			break;
		default:
			w->preds[s->slot] = (w->preds[s->slot] & ~(1u << lane)) |
					    (uint32_t)*from << lane;
		}
	}
}

/* Copies in a lane's local memory. The compiler of the code has checked the places. */
static void move(const struct warp *w, uint32_t lane, uint32_t first, uint32_t n,
	uint32_t from, uint32_t to)
{
	const struct code_move *m = &w->block->kernel->moves[first];
	uint8_t *local = lane_local(w, lane);

	for (uint32_t i = 0; i < n; i++)
		memcpy(local + to + m[i].to, local + from + m[i].from, m[i].size);
}

/* Returns: whether the lane's stack has room for the call; it is in there then. */
static bool enter(struct warp *w, const struct insn *ip, const struct code_call *call,
	uint32_t number, uint32_t subroutine, uint32_t lane)
{
	const struct softgpu_kernel *kernel = w->block->kernel;
	const struct code_subroutine *sub = &kernel->subroutines[subroutine];
	uint32_t inner = w->frame[lane] + call->frame_end, top = w->calls_top[lane];
	struct record record = {
		.call = number,
		.return_to = (uint32_t)(ip + 1 - kernel->code),
		.frame = w->frame[lane],
		.inner = inner,
	};

	if (inner > w->stack_top[lane] || sub->frame_size > w->stack_top[lane] - inner ||
		call->saves_size + sizeof(record) > w->block->calls_size - top)
		return false;
	save(w, call, lane, lane_calls(w, lane) + top);
	top += call->saves_size;
	memcpy(lane_calls(w, lane) + top, &record, sizeof(record));
	w->calls_top[lane] = top + (uint32_t)sizeof(record);
	move(w, lane, call->first_move, call->n_arguments, record.frame, inner);
	w->frame[lane] = inner;
	return true;
}

static uint32_t leave(struct warp *w, uint32_t lane)
{
	struct record record;
	const struct code_call *call;
	uint32_t top = w->calls_top[lane] - (uint32_t)sizeof(record);

	memcpy(&record, lane_calls(w, lane) + top, sizeof(record));
	call = &w->block->kernel->calls[record.call];
	move(w, lane, call->first_move + call->n_arguments, call->n_results, record.inner,
		record.frame);
	top -= call->saves_size;
	restore(w, call, lane, lane_calls(w, lane) + top);
	w->calls_top[lane] = top;
	w->frame[lane] = record.frame;
	return record.return_to;
}

/* Moves each lane of the mask to an instruction of its own; the others continue. */
static const struct insn *scatter(
	struct warp *w, const struct insn *ip, uint32_t mask, const uint32_t *targets)
{
	const struct insn *next = ip + 1, *code = w->block->kernel->code;
	uint32_t rest = mask;

	while (rest) {
		uint32_t lane = (u32)__builtin_ctz(rest), same = 0;

		EACH_SET_LANE(i, rest)
		if (targets[i] == targets[lane])
			same |= lane_bit[i];
		rest &= ~same;
		if (same == w->active)
			next = code + targets[lane];
		else
			softgpu_warp_push(w, code + targets[lane], same);
	}
	if (!w->active) {
		w->event = EVENT_ENDED;
		return LEAVE;
	}
	/* Without loops, recursion alone can take for ever. */
	if (next <= ip && !--w->budget) {
		w->event = EVENT_SPENT;
		w->at = next;
		return LEAVE;
	}
	return next;
}

static const struct insn *overflow(struct warp *w, const struct insn *ip, uint32_t lane)
{
	return warp_fault(w, ip, SOFTGPU_ERROR_HARDWARE_STACK, lane, w->frame[lane],
		"stack overflow");
}

HANDLER(CALL)
{
	const struct softgpu_kernel *kernel = w->block->kernel;
	uint32_t number = (u32)ip->off, targets[LANES];
	const struct code_call *call = &kernel->calls[number];

	EACH_SET_LANE(i, mask)
	{
		if (!enter(w, ip, call, number, call->subroutine, i))
			return overflow(w, ip, i);
		targets[i] = kernel->subroutines[call->subroutine].entry;
	}
	return scatter(w, ip, mask, targets);
}

HANDLER(CALL_POINTER)
{
	const struct softgpu_kernel *kernel = w->block->kernel;
	const uint64_t *pointer = REG(uint64_t, ip->a);
	uint32_t number = (u32)ip->off, targets[LANES];
	const struct code_call *call = &kernel->calls[number];

	EACH_SET_LANE(i, mask)
	{
		uint64_t function = pointer[i] - FUNCTION_HANDLE_BASE;
		uint32_t sub =
			function < call->n_candidates
				? kernel->candidates[call->first_candidate + function]
				: 0;

		if (!sub)
			return warp_fault(w, ip, SOFTGPU_ERROR_INVALID_PC, i, pointer[i],
				"call of what is no function of this type");
		if (!enter(w, ip, call, number, sub - 1, i))
			return overflow(w, ip, i);
		targets[i] = kernel->subroutines[sub - 1].entry;
	}
	return scatter(w, ip, mask, targets);
}

HANDLER(RETURN)
{
	uint32_t targets[LANES];

	EACH_SET_LANE(i, mask)
	targets[i] = leave(w, i);
	return scatter(w, ip, mask, targets);
}

HANDLER(REFUSE)
{
	const struct softgpu_kernel *kernel = w->block->kernel;

	if (!mask)
		return ip + 1;
	return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION,
		(u32)__builtin_ctz(mask), 0, kernel->refusals[ip->off]);
}

HANDLER(FRAME)
{
	uint64_t *d = REG(uint64_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = w->frame[i];
	return ip + 1;
}

/*
 * Memory from the stack: from the upper end of a thread's local memory down to the
 * current frame, whose function imm identifies.
 */

static uint32_t frame_end(const struct warp *w, const struct insn *ip, uint32_t lane)
{
	const struct softgpu_kernel *kernel = w->block->kernel;

	if (!ip->off)
		return kernel->local_size;
	return w->frame[lane] + kernel->subroutines[ip->off - 1].frame_size;
}

HANDLER(ALLOCA)
{
	const uint64_t *size = REG(uint64_t, ip->a);
	uint64_t *d = REG(uint64_t, ip->d);

	EACH_SET_LANE(i, mask)
	{
		uint32_t low = frame_end(w, ip, i), top = w->stack_top[i];

		if (top < low || size[i] > top - low)
			return overflow(w, ip, i);
		top = (top - (u32)size[i]) & ~((1u << ip->reserved) - 1);
		if (top < low)
			return overflow(w, ip, i);
		w->stack_top[i] = top;
		d[i] = top;
	}
	return ip + 1;
}

HANDLER(STACK_GET)
{
	uint64_t *d = REG(uint64_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = w->stack_top[i];
	return ip + 1;
}

/* The operand of stackrestore must come from stacksave, that is, be within the stack. */
HANDLER(STACK_SET)
{
	const uint64_t *a = REG(uint64_t, ip->a);

	EACH_SET_LANE(i, mask)
	{
		if (a[i] < frame_end(w, ip, i) || a[i] > w->block->local_size)
			return warp_fault(w, ip, SOFTGPU_ERROR_HARDWARE_STACK, i, a[i],
				"no place in the stack");
		w->stack_top[i] = (u32)a[i];
	}
	return ip + 1;
}
