/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: loads, stores, atomic operations
 *
 * Global and shared memory have handlers for whole vectors. Other spaces are accessed
 * lane by lane, with the space in the instruction.
 */

#include "lower/lower.h"

/* Offsets beyond this are added by an instruction: off has 32 bits. */
#define OFF_MAX (INT64_C(1) << 28)

struct place {
	uint32_t value;
	int64_t off;
	unsigned int space; /* GLOBAL, SHARED, LOCAL, PARAM, NONE (generic) */
	bool is_fixed;	    /* PARAM: off is all there is */
	bool is_cluster;    /* SHARED: of any block */
};

static unsigned int fold_space(unsigned int space)
{
	switch (space) {
	case PTX_SPACE_CONST:
		return PTX_SPACE_GLOBAL;
	case PTX_SPACE_SHARED_CLUSTER:
		return PTX_SPACE_SHARED;
	default:
		return space;
	}
}

static enum access_space access_space(unsigned int space)
{
	switch (space) {
	case PTX_SPACE_SHARED:
		return ACCESS_SHARED;
	case PTX_SPACE_LOCAL:
		return ACCESS_LOCAL;
	case PTX_SPACE_PARAM:
		return ACCESS_PARAM;
	default:
		return ACCESS_GENERIC;
	}
}

static uint32_t add_off(struct lowering *l, uint32_t value, int64_t off)
{
	uint32_t t = lower_temporary(l, CLASS_64);

	lower_emit(l, OP_ADD_64, t, value, lower_constant(l, CLASS_64, (uint64_t)off), 0);
	return t;
}

/* The offset from an element's address to its address in @space. */
static int64_t element_base(
	struct lowering *l, const struct ptx_operand *operand, unsigned int space)
{
	enum ptx_space own;
	bool is_shared_end;
	uint64_t at;

	if (space != PTX_SPACE_NONE ||
		!lower_symbol_place(l, &l->frame->body->operands[operand->index], &own,
			&at, &is_shared_end))
		return 0;
	return lower_space_base(own);
}

/* Where operand @i points to in @named, the space that the instruction names, before the
 * space is taken into account. */
static int find_place_in(
	struct lowering *l, unsigned int i, unsigned int named, struct place *place)
{
	const struct ptx_operand *operand = &l->operands[i];
	enum ptx_space space;
	bool is_shared_end;
	uint64_t at;

	*place = (struct place){ .space = fold_space(named),
		.is_cluster = named == PTX_SPACE_SHARED_CLUSTER };
	switch (operand->kind) {
	case PTX_OPERAND_ADDRESS_REG:
		place->value = l->frame->first_register + operand->index;
		place->off = operand->imm;
		if (place->space == PTX_SPACE_PARAM && l->frame->param_places)
			place->space = PTX_SPACE_LOCAL;
		return 0;
	case PTX_OPERAND_ADDRESS_SYMBOL:
		if (!lower_symbol_place(l, operand, &space, &at, &is_shared_end))
			return lower_unsupported(l);
		if (place->space == PTX_SPACE_PARAM)
			place->space = space;
		if (place->space == PTX_SPACE_PARAM) {
			place->is_fixed = true;
			place->off = (int64_t)at;
			return 0;
		}
		if (space == PTX_SPACE_LOCAL && l->frame->base) {
			place->value = l->frame->base;
			place->off = (int64_t)at;
			if (place->space == PTX_SPACE_NONE)
				place->off += lower_space_base(space);
			return l->error;
		}
		if (place->space == PTX_SPACE_NONE && is_shared_end)
			place->off = lower_space_base(space);
		else if (place->space == PTX_SPACE_NONE)
			at += lower_space_base(space);
		place->value = is_shared_end ? lower_symbol_value(l, operand, CLASS_32)
					     : lower_constant(l,
						       place->space == PTX_SPACE_SHARED
							       ? CLASS_32
							       : CLASS_64,
						       at);
		return l->error;
	case PTX_OPERAND_ADDRESS_ELEMENT:
		place->value = lower_element_value(l, operand);
		place->off = element_base(l, operand, place->space);
		return l->error;
	case PTX_OPERAND_ADDRESS_INT:
		place->value = lower_constant(l,
			place->space == PTX_SPACE_SHARED ? CLASS_32 : CLASS_64,
			(uint64_t)operand->imm);
		return l->error;
	default:
		return lower_unsupported(l);
	}
}

static int find_place(struct lowering *l, unsigned int i, struct place *place)
{
	return find_place_in(l, i, l->instr->spaces[0], place);
}

static uint32_t to_class(struct lowering *l, uint32_t value, enum value_class class)
{
	uint32_t t;

	if (l->values[value].class == class)
		return value;
	t = lower_temporary(l, class);
	lower_emit(l, class == CLASS_64 ? OP_EXT_U32_64 : OP_LOW_64, t, value, 0, 0);
	return t;
}

/*
 * As a 64-bit address whose offset the instruction can hold. In the small spaces the sum
 * has 32 bits: there the offset wraps instead.
 */
static void make_single(struct lowering *l, struct place *place)
{
	place->value = to_class(l, place->value, CLASS_64);
	if (access_space(place->space) != ACCESS_GENERIC) {
		place->off = (int32_t)place->off;
	} else if (place->off > OFF_MAX || place->off < -OFF_MAX) {
		place->value = add_off(l, place->value, place->off);
		place->off = 0;
	}
}

int lower_address(struct lowering *l, unsigned int i, unsigned int space,
	struct lower_address *address)
{
	struct place place;
	int r = find_place_in(l, i, space, &place);

	if (r)
		return r;
	if (place.is_fixed || place.space == PTX_SPACE_PARAM)
		return lower_unsupported(l);
	make_single(l, &place);
	*address = (struct lower_address){
		.value = place.value,
		.off = (uint32_t)place.off,
		.space = (uint16_t)(access_space(place.space) << ACCESS_SPACE_SHIFT),
	};
	return 0;
}

static bool is_ordered(unsigned int sem)
{
	return sem != PTX_SEM_NONE && sem != PTX_SEM_WEAK;
}

/* Number of an access size in the order of SOFTGPU_ACCESS; stores have no signed ones. */
enum access {
	ACCESS_U8,
	ACCESS_S8,
	ACCESS_U16,
	ACCESS_S16,
	ACCESS_32,
	ACCESS_64,
	ACCESS_NONE
};

static enum access access_of(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_S8:
		return ACCESS_S8;
	case PTX_TYPE_S16:
		return ACCESS_S16;
	case PTX_TYPE_PRED:
	case PTX_TYPE_NONE:
		return ACCESS_NONE;
	default:
		break;
	}
	switch (ptx_type_size(type)) {
	case 1:
		return ACCESS_U8;
	case 2:
		return ACCESS_U16;
	case 4:
		return ACCESS_32;
	case 8:
		return ACCESS_64;
	default:
		return ACCESS_NONE;
	}
}

#define LOAD_ROW(_op)                                                                    \
	{                                                                                \
		OP_##_op##_U8, OP_##_op##_S8, OP_##_op##_U16, OP_##_op##_S16,            \
			OP_##_op##_32, OP_##_op##_64                                     \
	}
#define STORE_ROW(_op)                                                                   \
	{                                                                                \
		OP_##_op##_U8, OP_##_op##_U8, OP_##_op##_U16, OP_##_op##_U16,            \
			OP_##_op##_32, OP_##_op##_64                                     \
	}

enum row {
	ROW_GLOBAL, /* then of 2, of 4 */
	ROW_SHARED = ROW_GLOBAL + 3,
	ROW_PARAM = ROW_SHARED + 3,
	ROW_GENERIC,
	ROW_ORDERED,
	_ROW_N,
};

static const uint16_t loads[_ROW_N][6] = {
	LOAD_ROW(LDG),
	LOAD_ROW(LDG2),
	LOAD_ROW(LDG4),
	LOAD_ROW(LDS),
	LOAD_ROW(LDS2),
	LOAD_ROW(LDS4),
	LOAD_ROW(LDP),
	LOAD_ROW(LD),
	LOAD_ROW(LDV),
};

static const uint16_t stores[_ROW_N][6] = {
	STORE_ROW(STG),
	STORE_ROW(STG2),
	STORE_ROW(STG4),
	STORE_ROW(STS),
	STORE_ROW(STS2),
	STORE_ROW(STS4),
	{ 0 },
	STORE_ROW(ST),
	STORE_ROW(STV),
};

/* Fields of the elements, loads and stores. */
static const uint8_t load_fields[4] = { FIELD_D, FIELD_B, FIELD_E, FIELD_F };
static const uint8_t store_fields[4] = { FIELD_B, FIELD_C, FIELD_E, FIELD_F };

/*
 * Whether one handler takes the whole vector. Shared memory belongs to the thread that
 * runs the block, so that every order is kept there; in global memory an order needs
 * atomic accesses.
 */
static bool is_whole(const struct place *place, bool ordered)
{
	return (place->space == PTX_SPACE_SHARED && !place->is_cluster) ||
	       (place->space == PTX_SPACE_GLOBAL && !ordered);
}

/* One operation for all elements. */
static void whole_access(struct lowering *l, struct place *place,
	const uint16_t (*rows)[6], const uint8_t *fields, enum access access,
	const uint32_t *elements, unsigned int n)
{
	bool shared = place->space == PTX_SPACE_SHARED;
	unsigned int row = (shared ? ROW_SHARED : ROW_GLOBAL) + (n == 4 ? 2 : n - 1);
	struct operation *o;

	place->value = to_class(l, place->value, shared ? CLASS_32 : CLASS_64);
	if (!shared && (place->off >= OFF_MAX || place->off <= -OFF_MAX)) {
		place->value = add_off(l, place->value, place->off);
		place->off = 0;
	}
	o = lower_emit(l, rows[row][access], 0, place->value, 0, 0);
	o->imm = (uint32_t)place->off;
	if (shared && is_ordered(l->instr->sem))
		o->reserved = ACCESS_POLLS;
	for (unsigned int i = 0; i < n; i++)
		o->field[fields[i]] = elements[i];
}

/* An operation for each element; the first one checks the alignment of all. */
static void single_accesses(struct lowering *l, struct place *place, enum row row,
	const uint16_t (*rows)[6], const uint8_t *fields, enum access access,
	const uint32_t *elements, unsigned int n, unsigned int size)
{
	struct operation *o;

	make_single(l, place);
	for (unsigned int i = 0; i < n; i++) {
		o = lower_emit(l, rows[row][access], 0, place->value, 0, 0);
		o->imm = (uint32_t)(place->off + (int64_t)i * size);
		o->reserved =
			(uint16_t)(((i ? 1 : n) * size - 1) |
				   access_space(place->space) << ACCESS_SPACE_SHIFT);
		o->field[fields[0]] = elements[i];
	}
}

static int fixed_loads(struct lowering *l, const struct place *place, enum access access,
	const uint32_t *elements, unsigned int n, unsigned int size)
{
	if (place->off < 0 ||
		(uint64_t)place->off + (uint64_t)n * size > l->frame->ptx->params_size)
		return lower_fail(l, SOFTGPU_ERROR_INVALID_PTX,
			"%.80s, line %u: reads outside of the parameters",
			l->frame->ptx->name, l->instr->line);
	for (unsigned int i = 0; i < n; i++)
		lower_emit_imm(l, loads[ROW_PARAM][access], elements[i], 0, 0, 0,
			(uint64_t)place->off + (uint64_t)i * size);
	return l->error;
}

/* The operands that are the elements of a scalar or vector operand. */
static const struct ptx_operand *elements_of(
	struct lowering *l, unsigned int i, unsigned int *n)
{
	const struct ptx_operand *operand = &l->operands[i];

	if (operand->kind != PTX_OPERAND_VECTOR) {
		*n = 1;
		return operand;
	}
	*n = operand->count;
	return &l->frame->body->operands[operand->index];
}

/* The elements of an access as values; of 128 bits, two of 64. Returns: 0 or a code. */
struct elements {
	const struct ptx_operand *operands;
	unsigned int n, type, size;
	enum access access;
	bool is_wide;
	uint32_t values[8];
};

static int find_elements(struct lowering *l, unsigned int i, struct elements *e)
{
	*e = (struct elements){ .type = l->instr->types[0], .is_wide = lower_is_wide(l) };
	e->operands = elements_of(l, i, &e->n);
	if (e->is_wide && e->n == 1) {
		e->type = PTX_TYPE_B64;
		e->n = 2;
		if (lower_wide_of(l, e->operands, e->values))
			return l->error;
	}
	e->access = access_of(e->type);
	e->size = ptx_type_size(e->type);
	if (e->access == ACCESS_NONE || !e->n || e->n > 8 || (e->n & (e->n - 1)))
		return lower_unsupported(l);
	return 0;
}

/* Both halves at once, where others see it. */
static void ordered_wide(
	struct lowering *l, struct place *place, const struct elements *e, bool is_store)
{
	struct operation *o;

	make_single(l, place);
	o = lower_emit(l, is_store ? OP_STV_128 : OP_LDV_128, is_store ? 0 : e->values[0],
		place->value, is_store ? e->values[0] : e->values[1],
		is_store ? e->values[1] : 0);
	o->imm = (uint32_t)place->off;
	o->reserved = (uint16_t)(15 | access_space(place->space) << ACCESS_SPACE_SHIFT);
}

/*
 * Vectors that other threads see, 16 bytes at a time, or all 8. PTX does not promise that
 * the elements are accessed together, but devices do so, and programs rely on it: a scan
 * by decoupled look-back publishes a value and its state as one vector.
 */
static bool is_joined(const struct elements *e, bool ordered)
{
	return ordered && e->n > 1 && e->size >= 4;
}

static unsigned int n_joined(const struct elements *e)
{
	return e->n * e->size < 16 ? e->n : 16 / e->size;
}

static void set_joined(struct operation *o, const struct place *place,
	const struct elements *e, unsigned int i)
{
	o->imm = (uint32_t)(place->off + (int64_t)i * e->size);
	/* The first access checks the alignment of all. */
	o->reserved = (uint16_t)(((i ? n_joined(e) : e->n) * e->size - 1) |
				 access_space(place->space) << ACCESS_SPACE_SHIFT);
}

static void joined_loads(
	struct lowering *l, struct place *place, const struct elements *e)
{
	unsigned int n = n_joined(e), n_halves = n * e->size / 8;
	const uint32_t *values = e->values;
	uint32_t halves[2], address;

	make_single(l, place);
	/* An element may replace the address before the next access. */
	address = lower_temporary(l, CLASS_64);
	lower_emit(l, OP_MOV_64, address, place->value, 0, 0);
	for (unsigned int i = 0; i < e->n; i += n, values += n) {
		for (unsigned int h = 0; h < n_halves; h++)
			halves[h] =
				e->size == 8 ? values[h] : lower_temporary(l, CLASS_64);
		if (n_halves == 2)
			set_joined(lower_emit(l, OP_LDV_128, halves[0], address,
					   halves[1], 0),
				place, e, i);
		else
			set_joined(lower_emit(l, OP_LDV_64, halves[0], address, 0, 0),
				place, e, i);
		for (unsigned int h = 0; h < n_halves && e->size == 4; h++) {
			lower_emit(l, OP_LOW_64, values[2 * h], halves[h], 0, 0);
			lower_emit(l, OP_HIGH_64, values[2 * h + 1], halves[h], 0, 0);
		}
	}
}

static void joined_stores(
	struct lowering *l, struct place *place, const struct elements *e)
{
	unsigned int n = n_joined(e), n_halves = n * e->size / 8;
	const uint32_t *values = e->values;
	uint32_t halves[2];

	make_single(l, place);
	for (unsigned int i = 0; i < e->n; i += n, values += n) {
		for (unsigned int h = 0; h < n_halves; h++) {
			halves[h] =
				e->size == 8 ? values[h] : lower_temporary(l, CLASS_64);
			if (e->size == 4)
				lower_emit(l, OP_PACK_64, halves[h], values[2 * h],
					values[2 * h + 1], 0);
		}
		if (n_halves == 2)
			set_joined(lower_emit(l, OP_STV_128, 0, place->value, halves[0],
					   halves[1]),
				place, e, i);
		else
			set_joined(
				lower_emit(l, OP_STV_64, 0, place->value, halves[0], 0),
				place, e, i);
	}
}

/* In global and shared memory; the second half of eight elements by itself. */
static void whole_accesses(struct lowering *l, struct place *place,
	const struct elements *e, const uint16_t (*rows)[6], const uint8_t *fields)
{
	struct place second = *place;

	whole_access(l, place, rows, fields, e->access, e->values, e->n > 4 ? 4 : e->n);
	second.off += 4 * (int64_t)e->size;
	if (e->n > 4)
		whole_access(l, &second, rows, fields, e->access, e->values + 4, 4);
}

static int load(struct lowering *l)
{
	bool ordered = is_ordered(l->instr->sem);
	struct elements e;
	struct place place;
	uint32_t keep;
	int r;

	r = find_elements(l, 0, &e);
	if (!r)
		r = find_place(l, 1, &place);
	if (r)
		return r;
	for (unsigned int i = 0; i < e.n && !e.is_wide; i++)
		e.values[i] = lower_destination_of(l, &e.operands[i], e.type);
	if (place.is_fixed) {
		r = fixed_loads(l, &place, e.access, e.values, e.n, e.size);
		if (r)
			return r;
	} else if (e.is_wide && ordered) {
		ordered_wide(l, &place, &e, false);
	} else if (is_whole(&place, ordered)) {
		whole_accesses(l, &place, &e, loads, load_fields);
	} else if (is_joined(&e, ordered)) {
		joined_loads(l, &place, &e);
	} else {
		if (e.n > 1 && l->values[place.value].class == CLASS_64) {
			/* An element may replace the address before the next one is read.
			 */
			keep = lower_temporary(l, CLASS_64);
			lower_emit(l, OP_MOV_64, keep, place.value, 0, 0);
			place.value = keep;
		}
		single_accesses(l, &place, ordered ? ROW_ORDERED : ROW_GENERIC, loads,
			load_fields, e.access, e.values, e.n, e.size);
	}
	for (unsigned int i = 0; i < e.n && !e.is_wide; i++)
		lower_finish_of(l, &e.operands[i], e.type, e.values[i]);
	return l->error;
}

/* Elements that are a sink are not stored, which PTX has for 32 bytes. */
static unsigned int n_sinks(const struct elements *e)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < e->n && !e->is_wide; i++)
		n += e->operands[i].kind == PTX_OPERAND_NONE;
	return n;
}

/* The other elements, each by itself. A load checks the alignment of all. */
static int partial_store(
	struct lowering *l, struct place *place, const struct elements *e, bool ordered)
{
	struct elements one = *e;
	struct place at = *place;
	uint32_t ignored = lower_temporary(l, lower_class_of(e->type));

	if (e->n * e->size != 32)
		return lower_unsupported(l);
	single_accesses(l, &at, ROW_GENERIC, loads, load_fields, e->access, &ignored, 1,
		e->n * e->size);
	for (unsigned int i = 0; i < e->n; i++) {
		if (e->operands[i].kind == PTX_OPERAND_NONE)
			continue;
		one.values[0] = lower_source_of(l, &e->operands[i], e->type);
		at = *place;
		at.off += (int64_t)i * e->size;
		single_accesses(l, &at, ordered ? ROW_ORDERED : ROW_GENERIC, stores,
			store_fields, e->access, one.values, 1, e->size);
	}
	return l->error;
}

static int store(struct lowering *l)
{
	bool ordered = is_ordered(l->instr->sem);
	struct elements e;
	struct place place;
	int r;

	r = find_elements(l, 1, &e);
	if (!r)
		r = find_place(l, 0, &place);
	if (r)
		return r;
	if (place.is_fixed || place.space == PTX_SPACE_PARAM)
		return lower_unsupported(l);
	if (n_sinks(&e))
		return partial_store(l, &place, &e, ordered);
	for (unsigned int i = 0; i < e.n && !e.is_wide; i++)
		e.values[i] = lower_source_of(l, &e.operands[i], e.type);
	if (e.is_wide && ordered)
		ordered_wide(l, &place, &e, true);
	else if (is_whole(&place, ordered))
		whole_accesses(l, &place, &e, stores, store_fields);
	else if (is_joined(&e, ordered))
		joined_stores(l, &place, &e);
	else
		single_accesses(l, &place, ordered ? ROW_ORDERED : ROW_GENERIC, stores,
			store_fields, e.access, e.values, e.n, e.size);
	return l->error;
}

/* st.bulk [address], size, 0 */
static int store_zeros(struct lowering *l)
{
	uint32_t size = lower_source(l, 1, PTX_TYPE_U64);
	struct operation *o;
	struct place place;
	int r = find_place(l, 0, &place);

	if (r)
		return r;
	if (place.is_fixed || place.space == PTX_SPACE_PARAM ||
		l->operands[2].kind != PTX_OPERAND_INT || l->operands[2].imm)
		return lower_unsupported(l);
	make_single(l, &place);
	o = lower_emit(l, OP_ST_ZEROS, 0, place.value, size, 0);
	o->imm = (uint32_t)place.off;
	o->reserved = (uint16_t)(access_space(place.space) << ACCESS_SPACE_SHIFT);
	return l->error;
}

/*
 * Atomic operations
 */

static unsigned int atomic_add(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_F16:
		return OP_ATOM_ADD_F16;
	case PTX_TYPE_F16X2:
		return OP_ATOM_ADD_F16X2;
	case PTX_TYPE_BF16:
		return OP_ATOM_ADD_BF16;
	case PTX_TYPE_BF16X2:
		return OP_ATOM_ADD_BF16X2;
	case PTX_TYPE_F32:
		return OP_ATOM_ADD_F32;
	case PTX_TYPE_F64:
		return OP_ATOM_ADD_F64;
	case PTX_TYPE_U32:
	case PTX_TYPE_S32:
		return OP_ATOM_ADD_32;
	case PTX_TYPE_U64:
	case PTX_TYPE_S64:
		return OP_ATOM_ADD_64;
	default:
		return 0;
	}
}

static unsigned int atomic_minmax(unsigned int atom, unsigned int type)
{
	bool min = atom == PTX_ATOM_MIN;

	switch (type) {
	case PTX_TYPE_U32:
		return min ? OP_ATOM_MIN_U32 : OP_ATOM_MAX_U32;
	case PTX_TYPE_S32:
		return min ? OP_ATOM_MIN_S32 : OP_ATOM_MAX_S32;
	case PTX_TYPE_U64:
		return min ? OP_ATOM_MIN_U64 : OP_ATOM_MAX_U64;
	case PTX_TYPE_S64:
		return min ? OP_ATOM_MIN_S64 : OP_ATOM_MAX_S64;
	default:
		return 0;
	}
}

static unsigned int atomic_operation(unsigned int atom, unsigned int type)
{
	bool wide = ptx_type_size(type) == 8;

	if (atom == PTX_ATOM_ADD)
		return atomic_add(type);
	if (atom == PTX_ATOM_MIN || atom == PTX_ATOM_MAX)
		return atomic_minmax(atom, type);
	if (atom == PTX_ATOM_CAS && ptx_type_size(type) == 2)
		return OP_ATOM_CAS_16;
	if (ptx_type_size(type) < 4 || ptx_type_size(type) > 8)
		return 0;
	switch (atom) {
	case PTX_ATOM_INC:
		return wide ? 0 : OP_ATOM_INC_32;
	case PTX_ATOM_DEC:
		return wide ? 0 : OP_ATOM_DEC_32;
	case PTX_ATOM_AND:
		return wide ? OP_ATOM_AND_64 : OP_ATOM_AND_32;
	case PTX_ATOM_OR:
		return wide ? OP_ATOM_OR_64 : OP_ATOM_OR_32;
	case PTX_ATOM_XOR:
		return wide ? OP_ATOM_XOR_64 : OP_ATOM_XOR_32;
	case PTX_ATOM_EXCH:
		return wide ? OP_ATOM_EXCH_64 : OP_ATOM_EXCH_32;
	case PTX_ATOM_CAS:
		return wide ? OP_ATOM_CAS_64 : OP_ATOM_CAS_32;
	default:
		return 0;
	}
}

static unsigned int vector_operation(unsigned int atom, unsigned int type)
{
	bool min = atom == PTX_ATOM_MIN;

	if (type == PTX_TYPE_F32 || atom == PTX_ATOM_ADD)
		return atom == PTX_ATOM_ADD ? atomic_add(type) : 0;
	if (!min && atom != PTX_ATOM_MAX)
		return 0;
	switch (type) {
	case PTX_TYPE_F16:
		return min ? OP_ATOM_MIN_F16 : OP_ATOM_MAX_F16;
	case PTX_TYPE_F16X2:
		return min ? OP_ATOM_MIN_F16X2 : OP_ATOM_MAX_F16X2;
	case PTX_TYPE_BF16:
		return min ? OP_ATOM_MIN_BF16 : OP_ATOM_MAX_BF16;
	case PTX_TYPE_BF16X2:
		return min ? OP_ATOM_MIN_BF16X2 : OP_ATOM_MAX_BF16X2;
	default:
		return 0;
	}
}

/* Element by element, each atomic by itself; the first checks the alignment of all. */
static int atomic_vector(struct lowering *l, struct place *place)
{
	const struct ptx_instr *in = l->instr;
	bool red = in->op == PTX_OP_RED;
	unsigned int type = in->types[0], op = vector_operation(in->atom, type), n, n_to;
	unsigned int size = ptx_type_size(type);
	const struct ptx_operand *from = elements_of(l, red ? 1 : 2, &n);
	const struct ptx_operand *to = elements_of(l, 0, &n_to);
	uint32_t old[8];
	struct operation *o;

	if (!op || size > 4 || n != in->vector || (!red && n_to != n) || n > 8)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < n; i++) {
		old[i] = lower_temporary(l, CLASS_32);
		o = lower_emit(l, op, old[i], place->value,
			lower_source_of(l, &from[i], type), 0);
		o->imm = (uint32_t)(place->off + (int64_t)i * size);
		o->reserved =
			(uint16_t)((i ? 0 : n * size - 1) |
				   access_space(place->space) << ACCESS_SPACE_SHIFT);
	}
	for (unsigned int i = 0; i < n && !red; i++)
		if (to[i].kind != PTX_OPERAND_NONE)
			lower_emit(l, OP_MOV_32, lower_destination_of(l, &to[i], type),
				old[i], 0, 0);
	return l->error;
}

static int atomic(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool red = in->op != PTX_OP_ATOM;
	unsigned int type = in->types[0], op = atomic_operation(in->atom, type);
	uint32_t b, c = VALUE_NONE, d;
	struct operation *o;
	struct place place;
	int r;

	if (!op && in->vector == 1 && !lower_is_wide(l))
		return lower_unsupported(l);
	r = find_place(l, red ? 0 : 1, &place);
	if (r)
		return r;
	if (place.is_fixed || place.space == PTX_SPACE_PARAM)
		return lower_unsupported(l);
	make_single(l, &place);
	if (in->vector > 1)
		return atomic_vector(l, &place);
	if (lower_is_wide(l))
		return lower_wide_atomic(l, place.value, (uint32_t)place.off,
			(uint16_t)(access_space(place.space) << ACCESS_SPACE_SHIFT));
	b = lower_source(l, red ? 1 : 2, type);
	if (in->atom == PTX_ATOM_CAS)
		c = lower_source(l, 3, type);
	d = red ? lower_temporary(l, lower_class_of(type))
		: lower_destination(l, 0, type);
	o = lower_emit(l, op, d, place.value, b, c);
	o->imm = (uint32_t)place.off;
	o->reserved = (uint16_t)(access_space(place.space) << ACCESS_SPACE_SHIFT);
	if (!red)
		lower_finish(l, 0, type, d);
	return l->error;
}

/* A register of 32 bits is an address, too. */
static uint32_t generic_address(struct lowering *l, unsigned int i)
{
	const struct ptx_operand *operand = &l->operands[i];
	uint32_t wide;

	if (operand->kind != PTX_OPERAND_REG ||
		l->values[l->frame->first_register + operand->index].class != CLASS_32)
		return lower_source(l, i, PTX_TYPE_U64);
	wide = lower_temporary(l, CLASS_64);
	lower_emit(l, OP_EXT_U32_64, wide, lower_source(l, i, PTX_TYPE_U32), 0, 0);
	return wide;
}

/*
 * st.async and red.async: complete when their instruction is, as all that is asynchronous
 * here. Without a barrier they are in global memory.
 */
static int asynchronous(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool has_barrier = in->mode == PTX_MODE_ASYNC_COMPLETE_TX;
	uint32_t size = ptx_type_size(in->types[0]) * in->vector;
	int r;

	if ((in->mode && !has_barrier) || size > 16 ||
		has_barrier != lower_has_operand(l, 2) ||
		in->spaces[0] !=
			(has_barrier ? PTX_SPACE_SHARED_CLUSTER : PTX_SPACE_GLOBAL))
		return lower_unsupported(l);
	r = in->op == PTX_OP_ST_ASYNC ? store(l) : atomic(l);
	if (r || !has_barrier)
		return r;
	return lower_complete(l, 2, lower_constant(l, CLASS_32, size));
}

static int isspacep(struct lowering *l)
{
	uint32_t a = generic_address(l, 1), d = lower_destination(l, 0, PTX_TYPE_PRED);

	if (l->instr->spaces[0] == PTX_SPACE_SHARED) {
		lower_emit(l, OP_IS_OWN_SHARED, d, a, 0, 0);
		return l->error;
	}
	/* Constants lie among the global variables: both spaces claim such an address. */
	lower_emit_imm(l, OP_ISSPACEP, d, a, 0, 0, lower_space_base(l->instr->spaces[0]));
	return l->error;
}

/* Whether the address is that of a texture or surface reference of the module. */
static int istypep(struct lowering *l)
{
	uint32_t a = lower_source(l, 1, PTX_TYPE_U64), is = VALUE_TRUE | VALUE_NEGATED, t;

	for (uint32_t i = 0; i < l->module->n_variables && !l->error; i++) {
		const struct ptx_variable *v = &l->module->variables[i];

		if (v->type != l->instr->types[0] || v->space == PTX_SPACE_SHARED ||
			v->linkage == PTX_LINKAGE_EXTERN)
			continue;
		t = lower_temporary(l, CLASS_PRED);
		lower_emit(l, OP_EQ_U64, t, a,
			lower_constant(l, CLASS_64, l->addresses[i]), 0);
		lower_emit(l, OP_OR_P, t, t, is, 0);
		is = t;
	}
	lower_emit(l, OP_MOV_P, lower_destination(l, 0, PTX_TYPE_PRED), is, 0, 0);
	return l->error;
}

/* The encoding of a policy is up to the device; there is no cache that uses it here. */
static int create_policy(struct lowering *l)
{
	uint32_t d = lower_destination(l, 0, PTX_TYPE_B64);

	lower_emit(l, OP_MOV_64, d, lower_constant(l, CLASS_64, 0), 0, 0);
	return l->error;
}

int translate_memory(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_LD:
	case PTX_OP_LDU:
		return load(l);
	case PTX_OP_ST:
		return store(l);
	case PTX_OP_ATOM:
	case PTX_OP_RED:
		return atomic(l);
	case PTX_OP_ST_ASYNC:
	case PTX_OP_RED_ASYNC:
		return asynchronous(l);
	case PTX_OP_ISSPACEP:
		return isspacep(l);
	case PTX_OP_ISTYPEP:
		return istypep(l);
	case PTX_OP_CREATEPOLICY:
		return create_policy(l);
	case PTX_OP_ST_BULK:
		return store_zeros(l);
	default:
		lower_emit(l, OP_FENCE, 0, 0, 0, 0);
		return l->error;
	}
}
