/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: asynchronous copies and their barriers
 *
 * A copy is complete when its instruction is: PTX lets it be any time before a wait. So
 * groups of copies are hints, and what waits for them does not wait.
 */

#include "lower/lower.h"

int lower_absolute_address(
	struct lowering *l, unsigned int i, unsigned int space, uint32_t *valuep)
{
	struct lower_address address;
	int r = lower_address(l, i, space, &address);
	uint32_t base, t;

	if (r)
		return r;
	base = lower_space_base(
		space == PTX_SPACE_SHARED_CLUSTER ? PTX_SPACE_SHARED : space);
	*valuep = address.value;
	if (!base && !address.off)
		return 0;
	if (base) {
		/* The sum has 32 bits in a small space. */
		t = lower_temporary(l, CLASS_32);
		lower_emit(l, OP_LOW_64, t, address.value, 0, 0);
		lower_emit(
			l, OP_ADD_32, t, t, lower_constant(l, CLASS_32, address.off), 0);
		*valuep = lower_temporary(l, CLASS_64);
		lower_emit(l, OP_EXT_U32_64, *valuep, t, 0, 0);
		lower_emit(l, OP_ADD_64, *valuep, *valuep,
			lower_constant(l, CLASS_64, base), 0);
		return l->error;
	}
	*valuep = lower_temporary(l, CLASS_64);
	lower_emit(l, OP_ADD_64, *valuep, address.value,
		lower_constant(l, CLASS_64, (uint64_t)(int64_t)(int32_t)address.off), 0);
	return l->error;
}

static void set_address(struct operation *o, const struct lower_address *address)
{
	o->imm = address->off;
	o->reserved |= address->space;
}

int lower_complete(struct lowering *l, unsigned int i, uint32_t size)
{
	struct lower_address barrier;
	struct operation *o;
	int r = lower_address(l, i, PTX_SPACE_SHARED, &barrier);

	if (r)
		return r;
	o = lower_emit(l, OP_MBARRIER_COMPLETE, 0, barrier.value, size, 0);
	set_address(o, &barrier);
	/* Others are stores of the warp's own. */
	if (ptx_op_family(l->instr->op) == PTX_FAMILY_ASYNC)
		o->reserved |= MBARRIER_OF_COPY;
	return l->error;
}

/* How many of the bytes are copied; the others become zeros. The fourth operand is their
 * number, or a predicate to ignore the source, or a cache policy. */
static uint32_t copied_bytes(struct lowering *l, uint32_t size)
{
	const struct ptx_operand *operand = &l->operands[3];
	uint32_t all = lower_constant(l, CLASS_32, size), t;
	unsigned int class = CLASS_NONE;

	if (!lower_has_operand(l, 3))
		return all;
	if (operand->kind == PTX_OPERAND_REG)
		class = l->values[l->frame->first_register + operand->index].class;
	if (class == CLASS_64)
		return all;
	if (class != CLASS_PRED)
		return lower_source(l, 3, PTX_TYPE_U32);
	t = lower_temporary(l, CLASS_32);
	lower_emit(l, OP_SELP_32, t, lower_constant(l, CLASS_32, 0), all,
		lower_predicate(l, 3));
	return t;
}

/* cp.async [to], [from], size */
static int copy(struct lowering *l)
{
	const struct ptx_operand *size = &l->operands[2];
	struct lower_address to;
	struct operation *o;
	uint32_t from, n;
	int r;

	if (l->instr->spaces[0] != PTX_SPACE_SHARED ||
		l->instr->spaces[1] != PTX_SPACE_GLOBAL ||
		size->kind != PTX_OPERAND_INT ||
		(size->imm != 4 && size->imm != 8 && size->imm != 16))
		return lower_unsupported(l);
	r = lower_address(l, 0, PTX_SPACE_SHARED, &to);
	if (!r)
		r = lower_absolute_address(l, 1, PTX_SPACE_GLOBAL, &from);
	if (r)
		return r;
	n = copied_bytes(l, (uint32_t)size->imm);
	o = lower_emit(l, OP_CP_ASYNC, 0, to.value, from, n);
	o->reserved = (uint16_t)(size->imm - 1);
	set_address(o, &to);
	return l->error;
}

/* cp.async.mbarrier.arrive: the copies before it have come. Without .noinc the barrier
 * counts that arrival and expects it, too. */
static int arrive_for_copies(struct lowering *l)
{
	struct lower_address barrier;
	int r = lower_address(l, 0, l->instr->spaces[0], &barrier);

	if (!r && l->cache->is_watched)
		set_address(lower_emit(l, OP_COPIES_SIGNAL, 0, barrier.value, 0, 0),
			&barrier);
	if (r || l->instr->mode != PTX_MODE_ASYNC_NOINC)
		return r;
	set_address(lower_emit(l, OP_MBARRIER_ARRIVE, lower_temporary(l, CLASS_64),
			    barrier.value, lower_constant(l, CLASS_32, 1), 0),
		&barrier);
	return l->error;
}

/*
 * mbarrier
 */

/* One with an operand behind the address. */
static int change(struct lowering *l, enum op op)
{
	struct lower_address barrier;
	int r = lower_address(l, 0, l->instr->spaces[0], &barrier);
	uint32_t count;

	if (r)
		return r;
	count = op == OP_MBARRIER_INVAL ? lower_constant(l, CLASS_32, 0)
					: lower_source(l, 1, PTX_TYPE_U32);
	set_address(lower_emit(l, op, 0, barrier.value, count, 0), &barrier);
	return l->error;
}

static int arrive(struct lowering *l, enum op op)
{
	bool expects = l->instr->mode == PTX_MODE_ASYNC_EXPECT_TX;
	bool is_sink = l->operands[0].kind == PTX_OPERAND_NONE;
	uint32_t count = VALUE_NONE, state;
	struct lower_address barrier;
	int r = lower_address(l, 1, l->instr->spaces[0], &barrier);

	if (r)
		return r;
	if (lower_has_operand(l, 2))
		count = lower_source(l, 2, PTX_TYPE_U32);
	if (expects) {
		set_address(lower_emit(l, OP_MBARRIER_EXPECT, 0, barrier.value, count, 0),
			&barrier);
		count = VALUE_NONE;
	}
	if (count == VALUE_NONE)
		count = lower_constant(l, CLASS_32, 1);
	state = is_sink ? lower_temporary(l, CLASS_64)
			: lower_destination(l, 0, PTX_TYPE_B64);
	set_address(lower_emit(l, op, state, barrier.value, count, 0), &barrier);
	return l->error;
}

static int wait(struct lowering *l)
{
	bool has_parity = l->instr->mode == PTX_MODE_ASYNC_PARITY;
	struct lower_address barrier;
	uint32_t phase, d;
	struct operation *o;
	int r = lower_address(l, 1, l->instr->spaces[0], &barrier);

	if (r)
		return r;
	phase = lower_source(l, 2, has_parity ? PTX_TYPE_U32 : PTX_TYPE_B64);
	d = lower_destination(l, 0, PTX_TYPE_PRED);
	o = lower_emit(l, has_parity ? OP_MBARRIER_PARITY : OP_MBARRIER_TEST, d,
		barrier.value, phase, 0);
	set_address(o, &barrier);
	if (l->instr->op == PTX_OP_MBARRIER_TRY_WAIT)
		o->reserved |= MBARRIER_YIELDS;
	return l->error;
}

int translate_async(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_CP_ASYNC:
		return copy(l);
	case PTX_OP_CP_ASYNC_BULK:
	case PTX_OP_CP_ASYNC_BULK_TENSOR:
	case PTX_OP_CP_REDUCE_ASYNC_BULK:
	case PTX_OP_CP_REDUCE_ASYNC_BULK_TENSOR:
	case PTX_OP_TENSORMAP_CP_FENCEPROXY:
	case PTX_OP_TENSORMAP_REPLACE:
		return translate_bulk(l);
	case PTX_OP_CLUSTERLAUNCHCONTROL_QUERY_CANCEL:
	case PTX_OP_CLUSTERLAUNCHCONTROL_TRY_CANCEL:
		return translate_cancel(l);
	case PTX_OP_CP_ASYNC_MBARRIER:
		return arrive_for_copies(l);
	case PTX_OP_MBARRIER_ARRIVE:
		return arrive(l, OP_MBARRIER_ARRIVE);
	case PTX_OP_MBARRIER_ARRIVE_DROP:
		return arrive(l, OP_MBARRIER_DROP);
	case PTX_OP_MBARRIER_COMPLETE_TX:
		return change(l, OP_MBARRIER_COMPLETE);
	case PTX_OP_MBARRIER_EXPECT_TX:
		return change(l, OP_MBARRIER_EXPECT);
	case PTX_OP_MBARRIER_INIT:
		return change(l, OP_MBARRIER_INIT);
	case PTX_OP_MBARRIER_INVAL:
		return change(l, OP_MBARRIER_INVAL);
	case PTX_OP_MBARRIER_PENDING_COUNT:
		lower_emit(l, OP_MBARRIER_PENDING, lower_destination(l, 0, PTX_TYPE_U32),
			lower_source(l, 1, PTX_TYPE_B64), 0, 0);
		return l->error;
	default:
		return wait(l);
	}
}
