/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: branches, barriers, instructions among lanes
 */

#include "lower/lower.h"

void lower_branch(struct lowering *l, uint32_t label)
{
	lower_emit(l, OP_BRA, 0, 0, 0, 0)->target = label;
}

static int branch_indexed(struct lowering *l)
{
	const struct ptx_body *body = l->frame->body;
	const struct ptx_branch_table *table;
	uint32_t index = lower_source(l, 0, PTX_TYPE_U32), first = l->n_tables;
	struct operation *o;

	if (l->operands[1].kind != PTX_OPERAND_BRANCH_TABLE)
		return lower_unsupported(l);
	table = &body->branch_tables[l->operands[1].index];
	if (!table->count || table->count > UINT16_MAX)
		return lower_unsupported(l);
	if (table->count > TABLES_MAX - first ||
		lower_reserve(&l->tables, &l->tables_capacity, first + table->count,
			sizeof(*l->tables)))
		return lower_fail(l, SOFTGPU_ERROR_NOT_SUPPORTED,
			"%.80s, line %u: too large branch tables", l->frame->ptx->name,
			l->instr->line);
	for (uint32_t i = 0; i < table->count; i++)
		l->tables[first + i] =
			l->frame->first_label + body->branch_targets[table->first + i];
	l->n_tables += table->count;
	o = lower_emit(l, OP_BRX, 0, index, 0, 0);
	o->target = first;
	o->imm = first | (uint64_t)table->count << 32;
	return l->error;
}

static int barrier(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t id, count, p, d;
	struct operation *o;
	bool counted = lower_has_operand(l, 2);

	if (in->mode == PTX_MODE_BAR_WARP_SYNC) {
		uint32_t members = lower_source(l, 1, PTX_TYPE_U32);

		lower_emit(l, OP_WARP_SYNC, 0, 0, 0, 0)->field[FIELD_E] = members;
		return l->error;
	}
	id = lower_source(l, 1, PTX_TYPE_U32);
	count = counted ? lower_source(l, 2, PTX_TYPE_U32)
			: lower_constant(l, CLASS_32, 0);
	switch (in->mode) {
	case PTX_MODE_BAR_SYNC:
		lower_emit(l, counted ? OP_BAR_SYNC_N : OP_BAR_SYNC, 0, id,
			counted ? count : 0, 0);
		return l->error;
	case PTX_MODE_BAR_ARRIVE:
		if (!counted)
			return lower_unsupported(l);
		lower_emit(l, OP_BAR_ARRIVE, 0, id, count, 0);
		return l->error;
	case PTX_MODE_BAR_RED:
		p = lower_predicate(l, 3);
		d = lower_destination(
			l, 0, in->atom == PTX_ATOM_POPC ? PTX_TYPE_U32 : PTX_TYPE_PRED);
		o = lower_emit(l,
			in->atom == PTX_ATOM_POPC  ? OP_BAR_RED_POPC
			: in->atom == PTX_ATOM_AND ? OP_BAR_RED_AND
						   : OP_BAR_RED_OR,
			d, id, count, p);
		o->reserved = in->atom == PTX_ATOM_POPC	 ? RED_POPC
			      : in->atom == PTX_ATOM_AND ? RED_AND
							 : RED_OR;
		return l->error;
	default:
		return lower_unsupported(l);
	}
}

static int cluster_barrier(struct lowering *l)
{
	switch (l->instr->mode) {
	case PTX_MODE_CLUSTER_ARRIVE:
		lower_emit(l, OP_CLUSTER_ARRIVE, 0, 0, 0, 0);
		return l->error;
	case PTX_MODE_CLUSTER_WAIT:
		lower_emit(l, OP_CLUSTER_WAIT, 0, 0, 0, 0);
		return l->error;
	default:
		return lower_unsupported(l);
	}
}

/* mapa and getctarank: of a generic address, or of one in the space of the cluster. */
static int cluster_address(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	bool wide = lower_class_of(type) == CLASS_64;
	uint64_t low = l->instr->spaces[0] ? 0 : SOFTGPU_GENERIC_SHARED;
	uint32_t s, d;

	if ((type != PTX_TYPE_U32 && type != PTX_TYPE_U64) ||
		(l->instr->spaces[0] && l->instr->spaces[0] != PTX_SPACE_SHARED_CLUSTER))
		return lower_unsupported(l);
	s = lower_source(l, 1, type);
	if (l->instr->op == PTX_OP_GETCTARANK) {
		d = lower_destination(l, 0, PTX_TYPE_U32);
		lower_emit_imm(l, wide ? OP_RANK_64 : OP_RANK_32, d, s, 0, 0, low);
		return l->error;
	}
	d = lower_destination(l, 0, type);
	lower_emit_imm(l, wide ? OP_MAPA_64 : OP_MAPA_32, d, s,
		lower_source(l, 2, PTX_TYPE_U32), 0, low);
	return l->error;
}

int translate_control(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_BRA:
		lower_branch(l, l->frame->first_label + l->operands[0].index);
		return l->error;
	case PTX_OP_BRX:
		return branch_indexed(l);
	case PTX_OP_RET:
		if (l->frame->return_label == PTX_INDEX_NONE)
			lower_emit(l, OP_EXIT, 0, 0, 0, 0);
		else
			lower_branch(l, l->frame->return_label);
		return l->error;
	case PTX_OP_EXIT:
		lower_emit(l, OP_EXIT, 0, 0, 0, 0);
		return l->error;
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
		lower_emit(l, OP_TRAP, 0, 0, 0, 0);
		return l->error;
	case PTX_OP_NANOSLEEP:
		lower_emit(l, OP_NANOSLEEP, 0, 0, 0, 0);
		return l->error;
	case PTX_OP_BARRIER_CLUSTER:
		return cluster_barrier(l);
	case PTX_OP_MAPA:
	case PTX_OP_GETCTARANK:
		return cluster_address(l);
	default:
		return barrier(l);
	}
}

/*
 * Among lanes
 */

/* The forms without .sync use the active lanes, for which the set is 0. */
static uint32_t members(struct lowering *l, unsigned int i)
{
	return l->instr->flags & PTX_FLAG_SYNC ? lower_source(l, i, PTX_TYPE_B32)
					       : lower_constant(l, CLASS_32, 0);
}

static int shuffle(struct lowering *l)
{
	uint32_t a = lower_source(l, 2, PTX_TYPE_B32),
		 b = lower_source(l, 3, PTX_TYPE_B32);
	uint32_t c = lower_source(l, 4, PTX_TYPE_B32), e = members(l, 5);
	uint32_t d = lower_destination(l, 0, PTX_TYPE_B32),
		 f = lower_destination(l, 1, PTX_TYPE_PRED);
	unsigned int mode = l->instr->mode;
	struct operation *o;

	if (mode < PTX_MODE_SHFL_UP || mode > PTX_MODE_SHFL_IDX ||
		l->instr->types[0] != PTX_TYPE_B32)
		return lower_unsupported(l);
	o = lower_emit(l, OP_SHFL_UP + mode - PTX_MODE_SHFL_UP, d, a, b, c);
	o->field[FIELD_E] = e;
	o->field[FIELD_F] = f;
	return l->error;
}

static int vote(struct lowering *l)
{
	bool ballot = l->instr->mode == PTX_MODE_BALLOT;
	uint32_t p = lower_predicate(l, 1), e = members(l, 2);
	uint32_t d = lower_destination(l, 0, ballot ? PTX_TYPE_B32 : PTX_TYPE_PRED);
	enum op op = ballot			      ? OP_VOTE_BALLOT
		     : l->instr->mode == PTX_MODE_ALL ? OP_VOTE_ALL
		     : l->instr->mode == PTX_MODE_ANY ? OP_VOTE_ANY
						      : OP_VOTE_UNI;

	lower_emit(l, op, d, 0, p, 0)->field[FIELD_E] = e;
	return l->error;
}

static int match(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	bool wide = lower_class_of(type) == CLASS_64,
	     all = l->instr->mode == PTX_MODE_ALL;
	uint32_t a = lower_source(l, 2, type), e = members(l, 3);
	uint32_t d = lower_destination(l, 0, PTX_TYPE_B32), f = VALUE_NONE;
	struct operation *o;

	if (all)
		f = lower_destination(l, 1, PTX_TYPE_PRED);
	o = lower_emit(l,
		all ? (wide ? OP_MATCH_ALL_64 : OP_MATCH_ALL_32)
		    : (wide ? OP_MATCH_ANY_64 : OP_MATCH_ANY_32),
		d, a, 0, 0);
	o->field[FIELD_E] = e;
	o->field[FIELD_F] = f;
	return l->error;
}

static unsigned int redux_operation(unsigned int atom, unsigned int type)
{
	bool is_signed = lower_type_is_signed(type);

	if (type == PTX_TYPE_F32)
		return atom == PTX_ATOM_MIN   ? OP_REDUX_MIN_F32
		       : atom == PTX_ATOM_MAX ? OP_REDUX_MAX_F32
					      : 0;
	if (lower_class_of(type) != CLASS_32)
		return 0;
	switch (atom) {
	case PTX_ATOM_ADD:
		return OP_REDUX_ADD;
	case PTX_ATOM_MIN:
		return is_signed ? OP_REDUX_MIN_S32 : OP_REDUX_MIN_U32;
	case PTX_ATOM_MAX:
		return is_signed ? OP_REDUX_MAX_S32 : OP_REDUX_MAX_U32;
	case PTX_ATOM_AND:
		return OP_REDUX_AND;
	case PTX_ATOM_OR:
		return OP_REDUX_OR;
	case PTX_ATOM_XOR:
		return OP_REDUX_XOR;
	default:
		return 0;
	}
}

static int redux(struct lowering *l)
{
	unsigned int type = l->instr->types[0];
	unsigned int op = redux_operation(l->instr->atom, type);
	uint32_t flags = l->instr->flags, a, e, d;
	struct operation *o;

	if (!op || (flags & (PTX_FLAG_ABS | PTX_FLAG_NAN) && type != PTX_TYPE_F32))
		return lower_unsupported(l);
	a = lower_source(l, 1, type);
	e = members(l, 2);
	d = lower_destination(l, 0, type);
	o = lower_emit(l, op, d, a, 0, 0);
	o->imm = (flags & PTX_FLAG_ABS ? REDUX_ABS : 0) |
		 (flags & PTX_FLAG_NAN ? REDUX_NAN : 0);
	o->field[FIELD_E] = e;
	return l->error;
}

static int elect(struct lowering *l)
{
	uint32_t e = members(l, 2), d = lower_destination(l, 0, PTX_TYPE_B32);
	uint32_t f = lower_destination(l, 1, PTX_TYPE_PRED);
	struct operation *o;

	if (!(l->instr->flags & PTX_FLAG_SYNC))
		return lower_unsupported(l);
	o = lower_emit(l, OP_ELECT, d, 0, 0, 0);
	o->field[FIELD_E] = e;
	o->field[FIELD_F] = f;
	return l->error;
}

int translate_warp(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_ELECT:
		return elect(l);
	case PTX_OP_SHFL:
		return shuffle(l);
	case PTX_OP_VOTE:
		return vote(l);
	case PTX_OP_MATCH:
		return match(l);
	case PTX_OP_REDUX:
		return redux(l);
	default:
		lower_emit(
			l, OP_ACTIVEMASK, lower_destination(l, 0, PTX_TYPE_B32), 0, 0, 0);
		return l->error;
	}
}
