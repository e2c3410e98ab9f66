/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: copies and reductions of many bytes, copies of tensors, changes of their
 * maps
 *
 * All of them are complete when their instruction is. Coordinates of tensors, of which
 * there may be more than operands, are put into the block before, see exec/tensor.c.
 */

#include "lower/lower.h"

struct ends {
	uint32_t to, from, size;
};

static bool is_shared(unsigned int space)
{
	return space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER;
}

/* [to], [from], size, [barrier]: what comes from global memory, or goes to another
 * block, signals a barrier; what goes to global memory belongs to a group. */
static int find_ends(struct lowering *l, struct ends *ends)
{
	const struct ptx_instr *in = l->instr;
	bool has_barrier = in->mode == PTX_MODE_ASYNC_COMPLETE_TX;
	int r;

	if ((!has_barrier && in->mode != PTX_MODE_ASYNC_BULK_GROUP) ||
		is_shared(in->spaces[0]) != has_barrier ||
		(!is_shared(in->spaces[0]) && in->spaces[0] != PTX_SPACE_GLOBAL) ||
		(!is_shared(in->spaces[1]) &&
			(in->spaces[1] != PTX_SPACE_GLOBAL || !has_barrier)) ||
		has_barrier != (lower_has_operand(l, 3) &&
				       l->operands[3].kind >= PTX_OPERAND_ADDRESS_REG))
		return lower_unsupported(l);
	r = lower_absolute_address(l, 0, in->spaces[0], &ends->to);
	if (!r)
		r = lower_absolute_address(l, 1, in->spaces[1], &ends->from);
	ends->size = lower_source(l, 2, PTX_TYPE_U32);
	return r ? r : l->error;
}

static int copy_to_blocks(struct lowering *l, const struct ends *ends)
{
	struct operation *o;
	uint32_t barrier;
	int r;

	if (l->instr->spaces[0] != PTX_SPACE_SHARED_CLUSTER || !lower_has_operand(l, 4))
		return lower_unsupported(l);
	r = lower_absolute_address(l, 3, PTX_SPACE_SHARED, &barrier);
	if (r)
		return r;
	o = lower_emit(l, OP_CP_BULK_CAST, 0, ends->to, ends->from, ends->size);
	o->field[FIELD_E] = barrier;
	o->field[FIELD_F] = lower_source(l, 4, PTX_TYPE_B16);
	return l->error;
}

/* The mask is the last operand, behind a policy. */
static int copy_masked(struct lowering *l, const struct ends *ends)
{
	unsigned int i = lower_has_operand(l, 4) ? 4 : 3;
	struct operation *o;

	if (l->instr->spaces[0] != PTX_SPACE_GLOBAL || !lower_has_operand(l, i))
		return lower_unsupported(l);
	o = lower_emit(l, OP_CP_BULK_MASKED, 0, ends->to, ends->from, ends->size);
	o->field[FIELD_E] = lower_source(l, i, PTX_TYPE_B16);
	return l->error;
}

static int copy(struct lowering *l)
{
	struct ends ends;
	int r = find_ends(l, &ends);

	if (r)
		return r;
	if (l->instr->flags & PTX_FLAG_MULTICAST)
		return copy_to_blocks(l, &ends);
	if (l->instr->flags & PTX_FLAG_CP_MASK)
		return copy_masked(l, &ends);
	lower_emit(l, OP_CP_BULK, 0, ends.to, ends.from, ends.size);
	return l->instr->mode == PTX_MODE_ASYNC_COMPLETE_TX
		       ? lower_complete(l, 3, ends.size)
		       : l->error;
}

/*
 * Reductions
 */

static const struct {
	uint8_t type; /* enum ptx_type */
	uint8_t update;
} updates[] = {
	{ PTX_TYPE_U32, UPDATE_U32 },
	{ PTX_TYPE_B32, UPDATE_U32 },
	{ PTX_TYPE_S32, UPDATE_S32 },
	{ PTX_TYPE_U64, UPDATE_U64 },
	{ PTX_TYPE_B64, UPDATE_U64 },
	{ PTX_TYPE_S64, UPDATE_S64 },
	{ PTX_TYPE_F16, UPDATE_F16 },
	{ PTX_TYPE_BF16, UPDATE_BF16 },
	{ PTX_TYPE_F32, UPDATE_F32 },
	{ PTX_TYPE_F64, UPDATE_F64 },
};

/* What ptxas 13.0 takes: to global memory, and of fewer types to another block. */
static bool has_reduction(const struct ptx_instr *in)
{
	bool is_global = in->spaces[0] == PTX_SPACE_GLOBAL;
	unsigned int type = in->types[0];
	bool is_small = type == PTX_TYPE_U32 || type == PTX_TYPE_S32;
	bool is_half = type == PTX_TYPE_F16 || type == PTX_TYPE_BF16;

	switch (in->atom) {
	case PTX_ATOM_ADD:
		if (is_half != !!(in->flags & PTX_FLAG_NOFTZ))
			return false;
		return is_small || type == PTX_TYPE_U64 ||
		       (is_global &&
			       (is_half || type == PTX_TYPE_F32 || type == PTX_TYPE_F64));
	case PTX_ATOM_MIN:
	case PTX_ATOM_MAX:
		return is_small || (is_global && (is_half || type == PTX_TYPE_U64 ||
							 type == PTX_TYPE_S64));
	case PTX_ATOM_INC:
	case PTX_ATOM_DEC:
		return type == PTX_TYPE_U32;
	case PTX_ATOM_AND:
	case PTX_ATOM_OR:
	case PTX_ATOM_XOR:
		return type == PTX_TYPE_B32 || (is_global && type == PTX_TYPE_B64);
	default:
		return false;
	}
}

static int reduce(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	struct operation *o;
	struct ends ends;
	int r;

	if (!has_reduction(in) || !is_shared(in->spaces[1]))
		return lower_unsupported(l);
	r = find_ends(l, &ends);
	if (r)
		return r;
	o = lower_emit(l, OP_REDUCE_BULK, 0, ends.to, ends.from, ends.size);
	for (size_t i = 0; i < sizeof(updates) / sizeof(updates[0]); i++)
		if (updates[i].type == in->types[0])
			o->imm = updates[i].update | (uint32_t)in->atom
							     << UPDATE_ATOM_SHIFT;
	return in->mode == PTX_MODE_ASYNC_COMPLETE_TX ? lower_complete(l, 3, ends.size)
						      : l->error;
}

/*
 * Tensors
 */

/* Puts the elements of a vector operand into rows of the block. */
static int put(struct lowering *l, unsigned int i, unsigned int row, unsigned int n,
	unsigned int type)
{
	static const uint8_t fields[TENSOR_COORDINATES] = { FIELD_A, FIELD_B, FIELD_C,
		FIELD_E, FIELD_F };
	const struct ptx_operand *operand = &l->operands[i], *elements;
	uint32_t values[TENSOR_COORDINATES];
	struct operation *o;

	if (operand->kind != PTX_OPERAND_VECTOR || operand->count != n)
		return lower_unsupported(l);
	elements = &l->frame->body->operands[operand->index];
	for (unsigned int k = 0; k < TENSOR_COORDINATES; k++)
		values[k] = k < n ? lower_source_of(l, &elements[k], type)
				  : lower_constant(l, CLASS_32, 0);
	o = lower_emit(l, OP_MATRIX_PUT, 0, 0, 0, 0);
	o->imm = row;
	o->reserved = INSN_KEEPS_TURN;
	for (unsigned int k = 0; k < TENSOR_COORDINATES; k++)
		o->field[fields[k]] = values[k];
	return l->error;
}

static unsigned int mode_of(const struct ptx_instr *in)
{
	return in->geometry ? in->geometry : PTX_TENSOR_TILE;
}

static bool has_offsets(const struct ptx_instr *in)
{
	return mode_of(in) == PTX_TENSOR_IM2COL || mode_of(in) == PTX_TENSOR_IM2COL_W;
}

/* Modes that PTX has for processors with tensor memory alone, of all these modes only
 * they may write to other blocks. */
static bool is_for_others(const struct ptx_instr *in)
{
	switch (mode_of(in)) {
	case PTX_TENSOR_GATHER4:
	case PTX_TENSOR_IM2COL_W:
		return in->spaces[0] == PTX_SPACE_SHARED_CLUSTER;
	default:
		return mode_of(in) >= PTX_TENSOR_IM2COL_W_128;
	}
}

/* Coordinates in operand @i, offsets in operand @k. */
static int put_place(struct lowering *l, unsigned int i, unsigned int k)
{
	unsigned int rank = l->instr->vector, mode = mode_of(l->instr);
	unsigned int n_offsets = rank < 3 ? 0 : rank - 2;
	const struct ptx_operand *offsets = &l->operands[k];
	int r;

	if (mode == PTX_TENSOR_GATHER4)
		return rank == 2 ? put(l, i, 0, TENSOR_COORDINATES, PTX_TYPE_S32)
				 : lower_unsupported(l);
	/* A halo and an offset, both of the width. */
	if (mode == PTX_TENSOR_IM2COL_W && n_offsets)
		n_offsets = 2;
	if (mode != PTX_TENSOR_TILE && !n_offsets)
		return lower_unsupported(l);
	r = put(l, i, 0, rank, PTX_TYPE_S32);
	if (r || !has_offsets(l->instr))
		return r;
	if (offsets->kind != PTX_OPERAND_VECTOR)
		return lower_unsupported(l);
	return put(l, k, TENSOR_COORDINATES, n_offsets, PTX_TYPE_U16);
}

static uint32_t options_of(const struct ptx_instr *in)
{
	return in->vector | mode_of(in) << TENSOR_MODE_SHIFT |
	       (in->flags & PTX_FLAG_MULTICAST ? TENSOR_CAST : 0) |
	       (uint32_t)in->atom << TENSOR_ATOM_SHIFT;
}

/* [to], [map, coordinates], [barrier], offsets, blocks: 7 places, that of coordinates of
 * the first is unused. */
static int load_tensor(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int i_blocks = has_offsets(in) ? 6 : 5;
	uint32_t to, map, barrier, blocks = lower_constant(l, CLASS_32, 0);
	struct operation *o;
	int r;

	if (is_for_others(in))
		return lower_refuse(l, LOWER_FOR_TENSOR_MEMORY);
	if (in->mode != PTX_MODE_ASYNC_COMPLETE_TX || in->spaces[1] != PTX_SPACE_GLOBAL ||
		mode_of(in) == PTX_TENSOR_IM2COL_NO_OFFS ||
		l->operands[1].kind != PTX_OPERAND_NONE || !lower_has_operand(l, 4))
		return lower_unsupported(l);
	if (in->flags & PTX_FLAG_MULTICAST) {
		if (in->spaces[0] != PTX_SPACE_SHARED_CLUSTER ||
			!lower_has_operand(l, i_blocks))
			return lower_unsupported(l);
		blocks = lower_source(l, i_blocks, PTX_TYPE_B16);
	}
	r = lower_absolute_address(l, 0, in->spaces[0], &to);
	if (!r)
		r = lower_absolute_address(l, 2, PTX_SPACE_NONE, &map);
	if (!r)
		r = lower_absolute_address(l, 4, PTX_SPACE_SHARED, &barrier);
	if (!r)
		r = put_place(l, 3, 5);
	if (r)
		return r;
	o = lower_emit(l, OP_TENSOR_LOAD, 0, to, map, barrier);
	o->imm = options_of(in);
	o->field[FIELD_E] = blocks;
	return l->error;
}

/* [map, coordinates], [from] */
static int store_tensor(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t map, from;
	struct operation *o;
	int r;

	if (is_for_others(in))
		return lower_refuse(l, LOWER_FOR_TENSOR_MEMORY);
	if (in->mode != PTX_MODE_ASYNC_BULK_GROUP || in->spaces[0] != PTX_SPACE_GLOBAL ||
		in->spaces[1] != PTX_SPACE_SHARED || in->flags & PTX_FLAG_MULTICAST ||
		(mode_of(in) != PTX_TENSOR_TILE &&
			mode_of(in) != PTX_TENSOR_IM2COL_NO_OFFS))
		return lower_unsupported(l);
	r = lower_absolute_address(l, 0, PTX_SPACE_NONE, &map);
	if (!r)
		r = lower_absolute_address(l, 2, PTX_SPACE_SHARED, &from);
	if (!r)
		r = put_place(l, 1, 0);
	if (r)
		return r;
	o = lower_emit(l, OP_TENSOR_STORE, 0, from, map, 0);
	o->imm = options_of(in);
	return l->error;
}

/*
 * Maps
 */

/* Fields that have a number, which is the operand before the value. */
static bool is_numbered(unsigned int field)
{
	return field >= PTX_FIELD_BOX && field <= PTX_FIELD_STEP;
}

static int replace(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int i = is_numbered(in->query) ? 2 : 1, space = in->spaces[0];
	bool is_wide = in->query == PTX_FIELD_ADDRESS || in->query == PTX_FIELD_STRIDE;
	const struct ptx_operand *number = &l->operands[1];
	uint32_t address, value;
	int r;

	if (in->geometry != PTX_TENSOR_TILE || !in->query ||
		in->types[0] != (is_wide ? PTX_TYPE_B64 : PTX_TYPE_B32) ||
		(space && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_SHARED) ||
		lower_has_operand(l, 2) != (i == 2) ||
		(i == 2 && (number->kind != PTX_OPERAND_INT || number->imm < 0 ||
				   number->imm >= (int64_t)TENSOR_COORDINATES)))
		return lower_unsupported(l);
	r = lower_absolute_address(l, 0, space, &address);
	if (r)
		return r;
	value = lower_source(l, i, in->types[0]);
	if (!is_wide) {
		uint32_t wide = lower_temporary(l, CLASS_64);

		lower_emit(l, OP_EXT_U32_64, wide, value, 0, 0);
		value = wide;
	}
	lower_emit(l, OP_TENSOR_REPLACE, 0, address, value, 0)->imm =
		in->query | (i == 2 ? (uint32_t)number->imm << 8 : 0);
	return l->error;
}

/* tensormap.cp_fenceproxy [to], [from], 128: by all lanes, each of which copies the same.
 */
static int copy_map(struct lowering *l)
{
	const struct ptx_operand *size = &l->operands[2];
	uint32_t to, from;
	int r;

	if (l->instr->spaces[0] != PTX_SPACE_GLOBAL ||
		l->instr->spaces[1] != PTX_SPACE_SHARED ||
		size->kind != PTX_OPERAND_INT || size->imm != 128)
		return lower_unsupported(l);
	r = lower_absolute_address(l, 0, PTX_SPACE_GLOBAL, &to);
	if (!r)
		r = lower_absolute_address(l, 1, PTX_SPACE_SHARED, &from);
	if (r)
		return r;
	lower_emit(l, OP_CP_BULK, 0, to, from, lower_constant(l, CLASS_32, 128));
	return l->error;
}

int translate_bulk(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_CP_ASYNC_BULK:
		return copy(l);
	case PTX_OP_CP_REDUCE_ASYNC_BULK:
		return reduce(l);
	case PTX_OP_CP_ASYNC_BULK_TENSOR:
		return is_shared(l->instr->spaces[0]) ? load_tensor(l) : store_tensor(l);
	case PTX_OP_CP_REDUCE_ASYNC_BULK_TENSOR:
		return l->instr->atom ? store_tensor(l) : lower_unsupported(l);
	case PTX_OP_TENSORMAP_CP_FENCEPROXY:
		return copy_map(l);
	default:
		return replace(l);
	}
}
