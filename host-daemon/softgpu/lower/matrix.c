/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: matrices
 *
 * An instruction has up to 25 registers as sources and 8 as destinations. Operations
 * before it put the sources into the block, operations after it take the results, see
 * exec/product.c; all of them run as one. The lanes of a warp meet before.
 *
 * Most products access the registers themselves. Then those operations are behind the
 * product, which skips them: they only name the registers. The sources are named twice,
 * before and after the results, so that no other register of a result takes the place of
 * one.
 */

#include "exec/fragment.h"
#include "lower/lower.h"

/* Registers that one MATRIX_PUT has, and one MATRIX_TAKE. */
#define PUT 5
#define TAKE 4

#define SOURCES_MAX 25
#define RESULTS_MAX 8

struct shape {
	uint8_t m, n;
	uint16_t k;
};

static const struct shape shapes[_PTX_SHAPE_N] = {
#define SHAPE(_m, _n, _k) [PTX_SHAPE_M##_m##N##_n##K##_k] = { _m, _n, _k },
	PTX_SHAPES(SHAPE)
#undef SHAPE
};

/* Which instructions have a shape for a type of A and B. */
enum form {
	FORM_MMA = 1,
	FORM_SPARSE = 2,
	FORM_WMMA = 4,
};

/* Types of A and B with the same shapes. */
enum kind {
	KIND_F16,
	KIND_BF16,
	KIND_TF32,
	KIND_F64,
	KIND_F8,
	KIND_I8,
	KIND_I4,
	KIND_B1,
	_KIND_N,
};

/* What ptxas 13.0 takes for sm_121. */
static const uint8_t forms[_PTX_SHAPE_N][_KIND_N] = {
	[PTX_SHAPE_M8N8K4] = { [KIND_F16] = FORM_MMA, [KIND_F64] = FORM_MMA | FORM_WMMA },
	[PTX_SHAPE_M8N8K16] = { [KIND_I8] = FORM_MMA },
	[PTX_SHAPE_M8N8K32] = { [KIND_I4] = FORM_MMA | FORM_WMMA },
	[PTX_SHAPE_M8N8K128] = { [KIND_B1] = FORM_MMA | FORM_WMMA },
	[PTX_SHAPE_M16N8K4] = { [KIND_TF32] = FORM_MMA, [KIND_F64] = FORM_MMA },
	[PTX_SHAPE_M16N8K8] = { [KIND_F16] = FORM_MMA,
		[KIND_BF16] = FORM_MMA,
		[KIND_TF32] = FORM_MMA | FORM_SPARSE,
		[KIND_F64] = FORM_MMA },
	[PTX_SHAPE_M16N8K16] = { [KIND_F16] = FORM_MMA | FORM_SPARSE,
		[KIND_BF16] = FORM_MMA | FORM_SPARSE,
		[KIND_TF32] = FORM_SPARSE,
		[KIND_F64] = FORM_MMA,
		[KIND_F8] = FORM_MMA,
		[KIND_I8] = FORM_MMA },
	[PTX_SHAPE_M16N8K32] = { [KIND_F16] = FORM_SPARSE,
		[KIND_BF16] = FORM_SPARSE,
		[KIND_F8] = FORM_MMA,
		[KIND_I8] = FORM_MMA | FORM_SPARSE,
		[KIND_I4] = FORM_MMA },
	[PTX_SHAPE_M16N8K64] = { [KIND_F8] = FORM_SPARSE,
		[KIND_I8] = FORM_SPARSE,
		[KIND_I4] = FORM_MMA | FORM_SPARSE },
	[PTX_SHAPE_M16N8K128] = { [KIND_I4] = FORM_SPARSE, [KIND_B1] = FORM_MMA },
	[PTX_SHAPE_M16N8K256] = { [KIND_B1] = FORM_MMA },
	[PTX_SHAPE_M16N16K8] = { [KIND_TF32] = FORM_WMMA },
	[PTX_SHAPE_M16N16K16] = { [KIND_F16] = FORM_WMMA,
		[KIND_BF16] = FORM_WMMA,
		[KIND_I8] = FORM_WMMA },
	[PTX_SHAPE_M32N8K16] = { [KIND_F16] = FORM_WMMA,
		[KIND_BF16] = FORM_WMMA,
		[KIND_I8] = FORM_WMMA },
	[PTX_SHAPE_M8N32K16] = { [KIND_F16] = FORM_WMMA,
		[KIND_BF16] = FORM_WMMA,
		[KIND_I8] = FORM_WMMA },
};

/* The types of elements. */
static const struct element {
	uint8_t type;	/* enum ptx_type */
	uint8_t matrix; /* enum matrix_type */
	uint8_t kind;	/* _KIND_N: of C and D alone */
} elements[] = {
	{ PTX_TYPE_F16, MATRIX_F16, KIND_F16 },
	{ PTX_TYPE_BF16, MATRIX_BF16, KIND_BF16 },
	{ PTX_TYPE_TF32, MATRIX_TF32, KIND_TF32 },
	{ PTX_TYPE_E4M3, MATRIX_E4M3, KIND_F8 },
	{ PTX_TYPE_E5M2, MATRIX_E5M2, KIND_F8 },
	{ PTX_TYPE_F32, MATRIX_F32, _KIND_N },
	{ PTX_TYPE_F64, MATRIX_F64, KIND_F64 },
	{ PTX_TYPE_U8, MATRIX_U8, KIND_I8 },
	{ PTX_TYPE_S8, MATRIX_S8, KIND_I8 },
	{ PTX_TYPE_U4, MATRIX_U4, KIND_I4 },
	{ PTX_TYPE_S4, MATRIX_S4, KIND_I4 },
	{ PTX_TYPE_S32, MATRIX_S32, _KIND_N },
	{ PTX_TYPE_B1, MATRIX_B1, KIND_B1 },
};

static const struct element *find_element(unsigned int type)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (elements[i].type == type)
			return &elements[i];
	return NULL;
}

/* The registers of a fragment. */
struct fragment {
	const struct ptx_operand *operands;
	unsigned int n;
	unsigned int type; /* enum ptx_type of a register */
};

static bool find_fragment(
	struct lowering *l, unsigned int i, unsigned int type, struct fragment *f)
{
	const struct ptx_operand *operand = &l->operands[i];

	if (operand->kind != PTX_OPERAND_VECTOR)
		return false;
	f->operands = &l->frame->body->operands[operand->index];
	f->n = operand->count;
	f->type = type == PTX_TYPE_F64 || type == PTX_TYPE_F32 ? type : PTX_TYPE_B32;
	return true;
}

/* The registers that an instruction names: wmma has copies of some of f16. */
static unsigned int n_named(unsigned int role, const struct element *element,
	const struct shape *s, unsigned int form)
{
	if (form == FORM_WMMA && role != MATRIX_ROLE_C && element->kind == KIND_F16)
		return 8;
	return matrix_registers(role, element->matrix, s->m, s->n, s->k);
}

/* All lanes of the warp, where some come later than others. */
static void meet(struct lowering *l)
{
	lower_emit(l, OP_WARP_SYNC, 0, 0, 0, 0)->field[FIELD_E] =
		lower_constant(l, CLASS_32, UINT32_MAX);
}

static void put(struct lowering *l, const uint32_t *values, unsigned int n, bool wide)
{
	static const uint8_t fields[PUT] = { FIELD_A, FIELD_B, FIELD_C, FIELD_E,
		FIELD_F };
	struct operation *o;

	for (unsigned int i = 0; i < n; i += PUT) {
		o = lower_emit(l, wide ? OP_MATRIX_PUT_64 : OP_MATRIX_PUT, 0, 0, 0, 0);
		o->imm = i;
		o->reserved = INSN_KEEPS_TURN;
		for (unsigned int k = 0; k < PUT; k++)
			o->field[fields[k]] = values[i + k < n ? i + k : n - 1];
	}
}

static void take(
	struct lowering *l, const struct fragment *to, uint32_t *values, bool wide)
{
	static const uint8_t fields[TAKE] = { FIELD_D, FIELD_A, FIELD_B, FIELD_C };
	enum value_class class = wide ? CLASS_64 : CLASS_32;
	struct operation *o;

	for (unsigned int i = 0; i < to->n; i++)
		values[i] = lower_destination_of(l, &to->operands[i], to->type);
	for (unsigned int i = 0; i < to->n; i += TAKE) {
		o = lower_emit(l, wide ? OP_MATRIX_TAKE_64 : OP_MATRIX_TAKE, 0, 0, 0, 0);
		o->imm = i;
		if (i + TAKE < to->n)
			o->reserved = INSN_KEEPS_TURN;
		for (unsigned int k = 0; k < TAKE; k++)
			o->field[fields[k]] =
				i + k < to->n ? values[i + k] : lower_temporary(l, class);
	}
}

static void finish(struct lowering *l, const struct fragment *to, const uint32_t *values)
{
	for (unsigned int i = 0; i < to->n; i++)
		lower_finish_of(l, &to->operands[i], to->type, values[i]);
}

/*
 * Products
 */

/* An instruction of one of the three forms, as its fields are after the checks. */
struct product {
	unsigned int form; /* enum form */
	const struct shape *shape;
	const struct element *d, *a, *b, *c;
	struct fragment fragments[4];
	unsigned int layouts[2]; /* enum ptx_layout of A and B */
	uint32_t selector;
};

/* wmma of f16 has the types of D and C alone. */
static bool find_types(const struct ptx_instr *in, struct product *p)
{
	if (in->n_types == 4) {
		p->d = find_element(in->types[0]);
		p->a = find_element(in->types[1]);
		p->b = find_element(in->types[2]);
		p->c = find_element(in->types[3]);
	} else if (in->n_types == 2) {
		p->d = find_element(in->types[0]);
		p->c = find_element(in->types[1]);
		p->a = p->b = find_element(PTX_TYPE_F16);
	}
	return p->d && p->a && p->b && p->c && p->a->kind != _KIND_N &&
	       p->a->kind == p->b->kind &&
	       (in->n_types == 2) == (p->form == FORM_WMMA && p->a->kind == KIND_F16);
}

static bool is_quads(const struct product *p)
{
	return p->shape->k == 4 && p->a->kind == KIND_F16;
}

/* Whether C and D are of types to which the products may be added. */
static bool are_sums(const struct product *p)
{
	unsigned int c = p->c->matrix, d = p->d->matrix;
	bool small = (c == MATRIX_F16 || c == MATRIX_F32) &&
		     (d == MATRIX_F16 || d == MATRIX_F32);

	switch (p->a->kind) {
	case KIND_F16:
		if (is_quads(p))
			return small && (d == MATRIX_F32 || c == MATRIX_F16);
		return small && (c == d || p->form == FORM_WMMA);
	case KIND_F8:
		return small && c == d && (c == MATRIX_F32 || p->form == FORM_MMA);
	case KIND_BF16:
	case KIND_TF32:
		return c == MATRIX_F32 && d == MATRIX_F32;
	case KIND_F64:
		return c == MATRIX_F64 && d == MATRIX_F64;
	default:
		return c == MATRIX_S32 && d == MATRIX_S32;
	}
}

/* wmma multiplies numbers of one type; those of less than 8 bits have one layout. */
static bool are_factors(const struct product *p)
{
	bool row_col = p->layouts[0] == PTX_LAYOUT_ROW && p->layouts[1] == PTX_LAYOUT_COL;

	if (!p->layouts[0] || !p->layouts[1])
		return false;
	if (p->form != FORM_WMMA)
		return row_col || is_quads(p);
	return p->a == p->b && (row_col || p->a->kind < KIND_I4);
}

static bool fit_modifiers(const struct ptx_instr *in, const struct product *p)
{
	unsigned int kind = p->a->kind;

	if (in->flags & PTX_FLAG_SATFINITE && kind != KIND_I8 && kind != KIND_I4)
		return false;
	if ((kind == KIND_B1) != !!(in->flags & PTX_FLAG_POPC) ||
		(kind == KIND_B1) !=
			(in->bool_op == PTX_BOOL_AND || in->bool_op == PTX_BOOL_XOR))
		return false;
	return !in->round || (kind == KIND_F64 && in->round <= PTX_ROUND_RP);
}

static const uint8_t roles[4] = { MATRIX_ROLE_C, MATRIX_ROLE_A, MATRIX_ROLE_B,
	MATRIX_ROLE_C };

/* The registers of D, A, B and C; A of a sparse product has half of its depth. */
static bool find_fragments(struct lowering *l, struct product *p)
{
	const struct element *types[4] = { p->d, p->a, p->b, p->c };
	unsigned int n;

	for (unsigned int i = 0; i < 4; i++) {
		struct shape s = *p->shape;

		if (p->form == FORM_SPARSE && roles[i] == MATRIX_ROLE_A)
			s.k /= 2;
		n = n_named(roles[i], types[i], &s, p->form);
		if (is_quads(p))
			n = roles[i] != MATRIX_ROLE_C	     ? 2
			    : types[i]->matrix == MATRIX_F16 ? 4
							     : 8;
		if (!find_fragment(l, i, types[i]->type, &p->fragments[i]) ||
			p->fragments[i].n != n)
			return false;
	}
	return true;
}

/* Which lanes have the metadata: PTX allows as many choices as there are. */
static bool find_selector(struct lowering *l, struct product *p)
{
	const struct ptx_operand *selector = &l->operands[5];
	unsigned int kind = p->a->kind, chunks;

	if (p->form != FORM_SPARSE)
		return true;
	chunks = p->shape->k / (kind == KIND_TF32 ? 2 : kind == KIND_I4 ? 8 : 4);
	if (kind != KIND_F16 && kind != KIND_BF16 && kind != KIND_TF32)
		chunks /= chunks == 8 ? 1 : 16;
	if (selector->kind != PTX_OPERAND_INT || selector->imm < 0 ||
		selector->imm >= (chunks == 4	       ? 4
					 : chunks == 8 ? 2
						       : 1))
		return false;
	p->selector = (uint32_t)selector->imm;
	return true;
}

static bool find_product(struct lowering *l, struct product *p)
{
	const struct ptx_instr *in = l->instr;

	p->form = in->op == PTX_OP_MMA	      ? FORM_MMA
		  : in->op == PTX_OP_WMMA_MMA ? FORM_WMMA
					      : FORM_SPARSE;
	p->shape = &shapes[in->shape];
	p->layouts[0] = in->layouts[0];
	p->layouts[1] = in->layouts[1];
	return in->shape && find_types(in, p) && forms[in->shape][p->a->kind] & p->form &&
	       are_sums(p) && are_factors(p) && fit_modifiers(in, p) &&
	       find_fragments(l, p) && find_selector(l, p);
}

static uint64_t encode(const struct ptx_instr *in, const struct product *p)
{
	uint64_t imm =
		(uint64_t)p->shape->m / 8 << MATRIX_M |
		(uint64_t)p->shape->n / 8 << MATRIX_N |
		(uint64_t)p->shape->k << MATRIX_K | (uint64_t)p->a->matrix << MATRIX_A |
		(uint64_t)p->b->matrix << MATRIX_B | (uint64_t)p->c->matrix << MATRIX_C |
		(uint64_t)p->d->matrix << MATRIX_D |
		(uint64_t)p->selector << MATRIX_SELECTOR |
		(uint64_t)in->round << MATRIX_ROUND;

	if (in->flags & PTX_FLAG_SATFINITE)
		imm |= UINT64_C(1) << MATRIX_SATFINITE;
	if (in->bool_op == PTX_BOOL_AND)
		imm |= UINT64_C(1) << MATRIX_AND;
	if (p->form == FORM_SPARSE)
		imm |= UINT64_C(1) << MATRIX_SPARSE;
	if (p->layouts[0] == PTX_LAYOUT_COL)
		imm |= UINT64_C(1) << MATRIX_COL_A;
	if (p->layouts[1] == PTX_LAYOUT_COL)
		imm |= UINT64_C(1) << MATRIX_COL_B;
	return imm;
}

static enum op operation_of(const struct product *p)
{
	if (is_quads(p))
		return OP_MMA_QUADS;
	switch (p->a->kind) {
	case KIND_F64:
		return OP_MMA_F64;
	case KIND_I8:
	case KIND_I4:
		return OP_MMA_INTEGER;
	case KIND_B1:
		return OP_MMA_BITS;
	default:
		return OP_MMA_REAL;
	}
}

static int multiply(struct lowering *l)
{
	struct product p = {};
	bool wide;
	uint32_t values[SOURCES_MAX], results[RESULTS_MAX];
	unsigned int n = 0, n_used;
	struct operation *o;
	enum op op;

	if (!find_product(l, &p))
		return lower_unsupported(l);
	op = operation_of(&p);
	wide = p.a->kind == KIND_F64;
	for (unsigned int i = 1; i < 4; i++) {
		const struct fragment *f = &p.fragments[i];

		n_used = p.form == FORM_WMMA ? matrix_registers(roles[i],
						       i == 3 ? p.c->matrix : p.a->matrix,
						       p.shape->m, p.shape->n, p.shape->k)
					     : f->n;
		for (unsigned int k = 0; k < n_used; k++)
			values[n++] = lower_source_of(l, &f->operands[k], f->type);
	}
	if (p.form == FORM_SPARSE)
		values[n++] = lower_source(l, 4, PTX_TYPE_B32);
	meet(l);
	if (op == OP_MMA_F64 || op == OP_MMA_QUADS) {
		put(l, values, n, wide);
		o = lower_emit(l, op, 0, 0, 0, 0);
		o->imm = encode(l->instr, &p);
		o->reserved = INSN_KEEPS_TURN;
		take(l, &p.fragments[0], results, wide);
	} else {
		o = lower_emit(l, op, 0, 0, 0, 0);
		o->imm = encode(l->instr, &p) |
			 (uint64_t)((n + PUT - 1) / PUT) << MATRIX_PUTS |
			 (uint64_t)((p.fragments[0].n + TAKE - 1) / TAKE) << MATRIX_TAKES;
		put(l, values, n, false);
		take(l, &p.fragments[0], results, false);
		put(l, values, n, false);
	}
	finish(l, &p.fragments[0], results);
	return l->error;
}

/*
 * wmma.load and wmma.store
 */

struct transfer {
	unsigned int role; /* enum matrix_role */
	const struct shape *shape;
	const struct element *element;
	struct fragment fragment;
};

/* C and D of a shape have the type of a sum of its products. */
static bool fits_role(const struct ptx_instr *in, const struct transfer *t)
{
	bool is_real = false, is_integer = false, is_double = false;

	if (t->role != MATRIX_ROLE_C)
		return t->element->kind != _KIND_N &&
		       forms[in->shape][t->element->kind] & FORM_WMMA &&
		       (t->element->kind < KIND_I4 ||
			       in->layouts[0] == (t->role == MATRIX_ROLE_A
								 ? PTX_LAYOUT_ROW
								 : PTX_LAYOUT_COL));
	for (unsigned int kind = 0; kind < _KIND_N; kind++) {
		if (!(forms[in->shape][kind] & FORM_WMMA))
			continue;
		is_double |= kind == KIND_F64;
		is_real |= kind < KIND_F64;
		is_integer |= kind >= KIND_I8;
	}
	switch (t->element->matrix) {
	case MATRIX_F16:
		return is_real && t->shape->k == 16;
	case MATRIX_F32:
		return is_real;
	case MATRIX_F64:
		return is_double;
	case MATRIX_S32:
		return is_integer;
	default:
		return false;
	}
}

static bool find_transfer(struct lowering *l, unsigned int operand, struct transfer *t)
{
	const struct ptx_instr *in = l->instr;
	bool is_load = in->op == PTX_OP_WMMA_LOAD;

	t->role = in->mode == PTX_MODE_MATRIX_A	  ? MATRIX_ROLE_A
		  : in->mode == PTX_MODE_MATRIX_B ? MATRIX_ROLE_B
						  : MATRIX_ROLE_C;
	t->shape = &shapes[in->shape];
	t->element = find_element(in->types[0]);
	return in->mode && (in->mode == PTX_MODE_MATRIX_D) != is_load && in->shape &&
	       in->layouts[0] && !in->layouts[1] && t->element && fits_role(in, t) &&
	       find_fragment(l, operand, in->types[0], &t->fragment) &&
	       t->fragment.n == n_named(t->role, t->element, t->shape, FORM_WMMA);
}

static uint64_t encode_transfer(const struct ptx_instr *in, const struct transfer *t)
{
	uint64_t imm = (uint64_t)t->shape->m / 8 << MATRIX_M |
		       (uint64_t)t->shape->n / 8 << MATRIX_N |
		       (uint64_t)t->shape->k << MATRIX_K;

	imm = imm << MATRIX_SHAPE | (uint64_t)t->role << MATRIX_ROLE |
	      (uint64_t)t->element->matrix << MATRIX_TYPE;
	if (in->layouts[0] == PTX_LAYOUT_COL)
		imm |= UINT64_C(1) << MATRIX_COL;
	return imm;
}

/* Without a stride lines follow each other. */
static uint32_t stride_of(struct lowering *l, const struct transfer *t)
{
	bool by_columns = l->instr->layouts[0] == PTX_LAYOUT_COL;
	uint32_t rows = t->role == MATRIX_ROLE_B ? t->shape->k : t->shape->m;
	uint32_t columns = t->role == MATRIX_ROLE_A ? t->shape->k : t->shape->n;

	if (lower_has_operand(l, 2))
		return lower_source(l, 2, PTX_TYPE_U32);
	return lower_constant(l, CLASS_32, by_columns ? rows : columns);
}

static int transfer(struct lowering *l)
{
	bool is_load = l->instr->op == PTX_OP_WMMA_LOAD, wide;
	struct transfer t = {};
	struct lower_address address;
	uint32_t values[8], stride;
	struct operation *o;
	int r;

	if (!find_transfer(l, !is_load, &t))
		return lower_unsupported(l);
	r = lower_address(l, is_load, l->instr->spaces[0], &address);
	if (r)
		return r;
	wide = t.element->matrix == MATRIX_F64;
	stride = stride_of(l, &t);
	for (unsigned int i = 0; i < t.fragment.n && !is_load; i++)
		values[i] = lower_source_of(l, &t.fragment.operands[i], t.fragment.type);
	meet(l);
	if (!is_load)
		put(l, values, t.fragment.n, wide);
	o = lower_emit(l, is_load ? OP_MATRIX_LOAD : OP_MATRIX_STORE, 0, address.value,
		stride, 0);
	o->imm = address.off | encode_transfer(l->instr, &t);
	o->reserved = address.space;
	if (!is_load)
		return l->error;
	o->reserved |= INSN_KEEPS_TURN;
	take(l, &t.fragment, values, wide);
	finish(l, &t.fragment, values);
	return l->error;
}

/*
 * Matrices of 8 by 8 elements of 16 bits
 */

static uint32_t count_and_order(const struct ptx_instr *in)
{
	return in->vector | (in->flags & PTX_FLAG_TRANS ? MATRIX_TRANS : 0);
}

static bool is_small(const struct ptx_instr *in)
{
	return in->shape == PTX_SHAPE_M8N8K0 && in->types[0] == PTX_TYPE_B16 &&
	       in->n_types == 1;
}

/*
 * Matrices of bytes. Return: whether there is such a form; then how many registers it has
 * and what its operation has to know.
 */
static bool is_bytes(const struct ptx_instr *in, unsigned int *np, uint32_t *optionsp)
{
	unsigned int type = in->types[0], from = in->types[1];
	bool is_packed = type == PTX_TYPE_B8X16 &&
			 (from == PTX_TYPE_B6X16_P32 || from == PTX_TYPE_B4X16_P64);
	bool is_store = in->op == PTX_OP_STMATRIX,
	     is_transposed = in->flags & PTX_FLAG_TRANS;

	*np = in->vector;
	*optionsp = count_and_order(in);
	if (from == PTX_TYPE_B6X16_P32)
		*optionsp |= MATRIX_PACKING_6 << MATRIX_PACKING_SHIFT;
	else if (from == PTX_TYPE_B4X16_P64)
		*optionsp |= MATRIX_PACKING_4 << MATRIX_PACKING_SHIFT;
	if (!is_packed && (type != PTX_TYPE_B8 || in->n_types != 1))
		return false;
	switch (in->shape) {
	case PTX_SHAPE_M16N16K0:
		*np *= 2;
		return !is_store && is_transposed && in->vector <= 2;
	case PTX_SHAPE_M8N16K0:
		return !is_store && !is_transposed && is_packed;
	case PTX_SHAPE_M16N8K0:
		return is_store && is_transposed;
	default:
		return false;
	}
}

static int load_matrices(struct lowering *l)
{
	static const uint8_t fields[4] = { FIELD_D, FIELD_B, FIELD_E, FIELD_F };
	const struct ptx_instr *in = l->instr;
	struct lower_address address;
	unsigned int n = in->vector;
	struct fragment to;
	struct operation *o;
	uint32_t values[4], options = count_and_order(in);
	int r;

	if ((!is_small(in) && !is_bytes(in, &n, &options)) ||
		!find_fragment(l, 0, PTX_TYPE_B32, &to) || to.n != n)
		return lower_unsupported(l);
	r = lower_address(l, 1, l->instr->spaces[0], &address);
	if (r)
		return r;
	for (unsigned int i = 0; i < 4; i++)
		values[i] = i < to.n ? lower_destination_of(l, &to.operands[i], to.type)
				     : lower_temporary(l, CLASS_32);
	meet(l);
	o = lower_emit(l, is_small(in) ? OP_LDMATRIX : OP_LDMATRIX_BYTES, 0,
		address.value, 0, 0);
	o->imm = address.off;
	o->reserved = (uint16_t)(address.space | options);
	for (unsigned int i = 0; i < 4; i++)
		o->field[fields[i]] = values[i];
	for (unsigned int i = 0; i < to.n; i++)
		lower_finish_of(l, &to.operands[i], to.type, values[i]);
	return l->error;
}

static int store_matrices(struct lowering *l)
{
	static const uint8_t fields[4] = { FIELD_B, FIELD_C, FIELD_E, FIELD_F };
	const struct ptx_instr *in = l->instr;
	struct lower_address address;
	unsigned int n = in->vector;
	struct fragment from;
	struct operation *o;
	uint32_t values[4], options = count_and_order(in);
	int r;

	if ((!is_small(in) && !is_bytes(in, &n, &options)) ||
		!find_fragment(l, 1, PTX_TYPE_B32, &from) || from.n != n)
		return lower_unsupported(l);
	r = lower_address(l, 0, l->instr->spaces[0], &address);
	if (r)
		return r;
	for (unsigned int i = 0; i < 4; i++)
		values[i] = i < from.n ? lower_source_of(l, &from.operands[i], from.type)
				       : values[0];
	meet(l);
	o = lower_emit(l, is_small(in) ? OP_STMATRIX : OP_STMATRIX_BYTES, 0,
		address.value, 0, 0);
	o->imm = address.off;
	o->reserved = (uint16_t)(address.space | options);
	for (unsigned int i = 0; i < 4; i++)
		o->field[fields[i]] = values[i];
	return l->error;
}

static int move_matrix(struct lowering *l)
{
	uint32_t s, d;

	if (!is_small(l->instr) || !(l->instr->flags & PTX_FLAG_TRANS))
		return lower_unsupported(l);
	s = lower_source(l, 1, PTX_TYPE_B32);
	d = lower_destination(l, 0, PTX_TYPE_B32);
	meet(l);
	lower_emit(l, OP_MOVMATRIX, d, s, 0, 0);
	lower_finish(l, 0, PTX_TYPE_B32, d);
	return l->error;
}

int translate_matrix(struct lowering *l)
{
	const uint32_t needed = PTX_FLAG_SYNC | PTX_FLAG_ALIGNED;

	if ((l->instr->flags & needed) != needed)
		return lower_unsupported(l);
	switch (l->instr->op) {
	case PTX_OP_LDMATRIX:
		return load_matrices(l);
	case PTX_OP_STMATRIX:
		return store_matrices(l);
	case PTX_OP_MOVMATRIX:
		return move_matrix(l);
	case PTX_OP_WMMA_LOAD:
	case PTX_OP_WMMA_STORE:
		return transfer(l);
	default:
		return multiply(l);
	}
}
