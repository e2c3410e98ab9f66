/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: textures and surfaces
 *
 * Operations before the instruction store coordinates, layer, level and gradients, see
 * exec/texture.c. A reference in the module is a variable with the number of an object.
 */

#include "exec/texture.h"
#include "lower/lower.h"

struct operands {
	const struct ptx_operand *items;
	unsigned int n;
};

/* The operands that are the elements of a scalar or vector operand. */
static struct operands elements_of(struct lowering *l, unsigned int i)
{
	const struct ptx_operand *operand = &l->operands[i];

	if (operand->kind == PTX_OPERAND_NONE)
		return (struct operands){};
	if (operand->kind != PTX_OPERAND_VECTOR)
		return (struct operands){ operand, 1 };
	return (struct operands){ &l->frame->body->operands[operand->index],
		operand->count };
}

/* The number of the object that operand @i names. */
static uint32_t object_number(struct lowering *l, unsigned int i)
{
	const struct ptx_operand *operand = &l->operands[i];
	uint32_t value, t;

	switch (operand->kind) {
	case PTX_OPERAND_REG:
	case PTX_OPERAND_ADDRESS_REG:
		value = l->frame->first_register + operand->index;
		if (!operand->imm && l->values[value].class == CLASS_64)
			return value;
		break;
	case PTX_OPERAND_SYMBOL:
	case PTX_OPERAND_ADDRESS_SYMBOL:
		if (operand->symbol != PTX_SYMBOL_VARIABLE) {
			lower_refuse(l, "the texture is no variable of the module");
			return VALUE_NONE;
		}
		value = lower_symbol_value(l, operand, CLASS_64);
		t = lower_temporary(l, CLASS_64);
		lower_emit(l, OP_LDG_64, t, value, 0, 0);
		return t;
	default:
		break;
	}
	lower_unsupported(l);
	return VALUE_NONE;
}

static unsigned int shape_of(const struct ptx_instr *in)
{
	return in->geometry - PTX_GEOMETRY_1D;
}

/* Coordinates of a shape without its layer. */
static unsigned int n_coordinates(unsigned int geometry)
{
	switch (geometry) {
	case PTX_GEOMETRY_1D:
	case PTX_GEOMETRY_A1D:
		return 1;
	case PTX_GEOMETRY_2D:
	case PTX_GEOMETRY_A2D:
		return 2;
	default:
		return 3;
	}
}

static bool is_layered(unsigned int geometry)
{
	return geometry == PTX_GEOMETRY_A1D || geometry == PTX_GEOMETRY_A2D ||
	       geometry == PTX_GEOMETRY_ACUBE;
}

static void put(struct lowering *l, const uint32_t values[5], unsigned int rows)
{
	struct operation *o;

	o = lower_emit(l, OP_TEX_PUT, 0, values[0], values[1], values[2]);
	o->reserved = INSN_KEEPS_TURN;
	/* They are in one word. */
	o->imm = rows;
	o->field[FIELD_E] = values[3];
	o->field[FIELD_F] = values[4];
}

/* Leaves the coordinates, with the layer and a level. */
static int put_coordinates(struct lowering *l, unsigned int at, uint32_t level)
{
	unsigned int geometry = l->instr->geometry, n = n_coordinates(geometry);
	bool layered = is_layered(geometry);
	struct operands from = elements_of(l, at);
	uint32_t zero = lower_constant(l, CLASS_32, 0);
	uint32_t values[5] = { zero, zero, zero, zero, level };

	if (from.n < n + layered)
		return lower_unsupported(l);
	if (layered)
		values[3] = lower_source_of(l, from.items, PTX_TYPE_B32);
	for (unsigned int i = 0; i < n; i++)
		values[i] = lower_source_of(l, &from.items[i + layered], PTX_TYPE_B32);
	put(l, values, 0);
	return l->error;
}

static int find_gradients(struct lowering *l, uint32_t rows[6])
{
	unsigned int n = n_coordinates(l->instr->geometry);

	for (unsigned int k = 0; k < 2; k++) {
		struct operands from = elements_of(l, 5 + k);

		if (from.n < n)
			return lower_unsupported(l);
		for (unsigned int i = 0; i < n; i++)
			rows[3 * k + i] =
				lower_source_of(l, &from.items[i], PTX_TYPE_F32);
	}
	return l->error;
}

static uint32_t result_options(unsigned int type, unsigned int vector)
{
	if (type == PTX_TYPE_F16X2 && vector == 2)
		return TEX_F16X2;
	return type == PTX_TYPE_F16 ? TEX_F16 : 0;
}

/* The fetch itself, and the predicate that shows residency. It follows the coordinates
 * directly: @number is computed before them. */
static int fetch(struct lowering *l, uint32_t number, uint32_t options)
{
	static const uint8_t fields[4] = { FIELD_D, FIELD_B, FIELD_E, FIELD_F };
	unsigned int type = l->instr->types[0];
	struct operands to = elements_of(l, 0);
	uint32_t results[4];
	struct operation *o;

	options |= result_options(type, l->instr->vector);
	if (to.n != l->instr->vector || (to.n != 4 && !(options & TEX_F16X2)) ||
		ptx_type_size(type) > 4)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < 4; i++)
		results[i] = i < to.n ? lower_destination_of(l, &to.items[i], type)
				      : lower_temporary(l, CLASS_32);
	o = lower_emit(l, OP_TEX, 0, number, 0, 0);
	o->imm = options;
	for (unsigned int i = 0; i < 4; i++)
		o->field[fields[i]] = results[i];
	for (unsigned int i = 0; i < to.n; i++)
		lower_finish_of(l, &to.items[i], type, results[i]);
	if (lower_has_operand(l, 1))
		lower_emit(l, OP_MOV_P, lower_destination(l, 1, PTX_TYPE_PRED),
			VALUE_TRUE, 0, 0);
	return l->error;
}

/* Whether a single operand behind the coordinates is no depth: that would be a float. */
static bool is_offset(const struct lowering *l, unsigned int i)
{
	const struct ptx_operand *operand = &l->operands[i];

	if (operand->kind == PTX_OPERAND_VECTOR || operand->kind == PTX_OPERAND_INT ||
		l->instr->types[1] == PTX_TYPE_S32)
		return true;
	return operand->kind == PTX_OPERAND_REG &&
	       (l->frame->body->registers[operand->index] == PTX_TYPE_S32 ||
		       l->frame->body->registers[operand->index] == PTX_TYPE_U32);
}

/*
 * The operands from @at on: offsets of texels, in braces unless there is one only, and a
 * depth to compare with. @rows is where the offsets go.
 */
static int find_offsets(
	struct lowering *l, unsigned int at, uint32_t rows[3], uint32_t *optionsp)
{
	unsigned int geometry = l->instr->geometry, n = n_coordinates(geometry);
	struct operands from;

	if (!lower_has_operand(l, at))
		return 0;
	if (!is_offset(l, at) || lower_has_operand(l, at + 1))
		return lower_refuse(l, "CUDA makes no textures of depths");
	from = elements_of(l, at);
	if (geometry == PTX_GEOMETRY_CUBE || geometry == PTX_GEOMETRY_ACUBE)
		return lower_refuse(l, "a cube has no offsets");
	if (from.n < n)
		return lower_refuse(l, "there are fewer offsets than coordinates");
	for (unsigned int i = 0; i < n; i++)
		rows[i] = lower_source_of(l, &from.items[i], PTX_TYPE_B32);
	*optionsp |= TEX_OFFSETS;
	return l->error;
}

/* The variable that operand @i names, if it is a sampler; or NULL. */
static const struct ptx_variable *sampler_variable(
	const struct lowering *l, unsigned int i)
{
	const struct ptx_operand *operand = &l->operands[i];
	const struct ptx_variable *variable;

	if ((operand->kind != PTX_OPERAND_SYMBOL &&
		    operand->kind != PTX_OPERAND_ADDRESS_SYMBOL) ||
		operand->symbol != PTX_SYMBOL_VARIABLE || operand->imm ||
		operand->index >= l->module->n_variables)
		return NULL;
	variable = &l->module->variables[operand->index];
	return variable->type == PTX_TYPE_SAMPLERREF &&
			       variable->linkage != PTX_LINKAGE_EXTERN &&
			       variable->size == ptx_type_size(PTX_TYPE_SAMPLERREF)
		       ? variable
		       : NULL;
}

/* A sampler beside the texture: nothing but its initial value determines it. */
static int find_sampler(struct lowering *l, uint32_t *optionsp)
{
	const struct ptx_variable *variable;

	if (!lower_has_operand(l, 3))
		return 0;
	variable = sampler_variable(l, 3);
	if (!variable)
		return lower_refuse(l, "the sampler is no variable of the module");
	*optionsp |= TEX_SAMPLER | (uint32_t)(variable->sampling & 0xff)
					   << TEX_SAMPLER_SHIFT;
	return 0;
}

static int texture(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	bool level = in->mode == PTX_MODE_TEX_LEVEL, grad = in->mode == PTX_MODE_TEX_GRAD;
	uint32_t options = shape_of(in), number, rows[10];
	uint32_t lod = lower_constant(l, CLASS_32, 0);
	int r;

	if (in->geometry > PTX_GEOMETRY_ACUBE)
		return lower_refuse(l, "CUDA makes no textures of several samples");
	if (!in->geometry ||
		(in->types[1] != PTX_TYPE_S32 && in->types[1] != PTX_TYPE_F32))
		return lower_unsupported(l);
	options |= in->types[1] == PTX_TYPE_S32 ? TEX_INTEGER : 0;
	options |= grad ? TEX_GRADIENT : 0;
	for (unsigned int i = 0; i < 10; i++)
		rows[i] = lower_constant(l, CLASS_32, 0);
	r = find_sampler(l, &options);
	if (!r)
		r = find_offsets(l, grad ? 7 : level ? 6 : 5, rows + 6, &options);
	if (!r && grad)
		r = find_gradients(l, rows);
	if (r)
		return r;
	if (level)
		lod = lower_source(l, 5, PTX_TYPE_B32);
	number = object_number(l, 2);
	r = put_coordinates(l, 4, lod);
	if (r)
		return r;
	if (grad)
		put(l, rows, 1);
	if (options & (TEX_GRADIENT | TEX_OFFSETS))
		put(l, rows + 5, 2);
	return fetch(l, number, options);
}

static int gather(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t options = shape_of(in) | TEX_GATHER, zero, number, rows[5];
	int r;

	if (!in->geometry || in->geometry > PTX_GEOMETRY_ACUBE || !in->mode ||
		in->types[1] != PTX_TYPE_F32)
		return lower_unsupported(l);
	options |= (uint32_t)(in->mode - PTX_MODE_TLD4_R) << TEX_CHANNEL_SHIFT;
	zero = lower_constant(l, CLASS_32, 0);
	for (unsigned int i = 0; i < 5; i++)
		rows[i] = zero;
	r = find_sampler(l, &options);
	if (!r)
		r = find_offsets(l, 5, rows + 1, &options);
	if (r)
		return r;
	number = object_number(l, 2);
	r = put_coordinates(l, 4, zero);
	if (r)
		return r;
	if (options & TEX_OFFSETS)
		put(l, rows, 2);
	return fetch(l, number, options);
}

/* A field of a sampler variable, which is known now. */
static int query_sampler(struct lowering *l, const struct ptx_variable *variable)
{
	uint32_t sampling = variable->sampling, value, d;

	switch (l->instr->query) {
	case PTX_QUERY_ADDRESS_0:
	case PTX_QUERY_ADDRESS_1:
	case PTX_QUERY_ADDRESS_2:
		value = sampling >> 2 * (l->instr->query - PTX_QUERY_ADDRESS_0) & 3;
		break;
	case PTX_QUERY_FILTER:
		value = sampling & PTX_SAMPLING_LINEAR ? 1 : 0;
		break;
	case PTX_QUERY_IS_UNNORMALIZED:
		value = sampling & PTX_SAMPLING_UNNORMALIZED ? 1 : 0;
		break;
	default:
		return lower_unsupported(l);
	}
	d = lower_destination(l, 0, PTX_TYPE_B32);
	lower_emit(l, OP_MOV_32, d, lower_constant(l, CLASS_32, value), 0, 0);
	lower_finish(l, 0, PTX_TYPE_B32, d);
	return l->error;
}

static int query(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	uint32_t level = lower_constant(l, CLASS_32, 0), number, d;

	if (!in->query || (in->mode && in->mode != PTX_MODE_TEX_LEVEL))
		return lower_unsupported(l);
	if (sampler_variable(l, 1))
		return query_sampler(l, sampler_variable(l, 1));
	if (in->mode && lower_has_operand(l, 2))
		level = lower_source(l, 2, PTX_TYPE_B32);
	number = object_number(l, 1);
	d = lower_destination(l, 0, PTX_TYPE_B32);
	lower_emit_imm(l, OP_TXQ, d, number, level, 0,
		(uint32_t)(in->query - PTX_QUERY_WIDTH) |
			(in->op == PTX_OP_SUQ ? TXQ_SURFACE : 0));
	lower_finish(l, 0, PTX_TYPE_B32, d);
	return l->error;
}

/*
 * Surfaces
 */

static uint32_t surface_options(const struct ptx_instr *in, unsigned int n)
{
	enum surface_bounds bounds = SURFACE_TRAP;
	uint32_t size = ptx_type_size(in->types[0]);

	if (in->wrap == PTX_WRAP_CLAMP)
		bounds = SURFACE_CLAMP;
	else if (in->wrap == PTX_WRAP_ZERO)
		bounds = SURFACE_ZERO;
	return shape_of(in) | (uint32_t)bounds << SURFACE_BOUNDS_SHIFT |
	       (uint32_t)__builtin_ctz(size) << SURFACE_SIZE_SHIFT |
	       n << SURFACE_COUNT_SHIFT;
}

static bool is_surface_access(const struct ptx_instr *in)
{
	unsigned int size = ptx_type_size(in->types[0]);

	return in->geometry && in->geometry < PTX_GEOMETRY_CUBE &&
	       !(in->flags & PTX_FLAG_FORMATTED) && in->vector <= 4 && size &&
	       size * in->vector <= 16 && size <= 8;
}

static int surface_load(struct lowering *l)
{
	static const uint8_t fields[4] = { FIELD_D, FIELD_B, FIELD_E, FIELD_F };
	unsigned int type = l->instr->types[0];
	struct operands to = elements_of(l, 0);
	enum value_class class = lower_class_of(type);
	uint32_t results[4], number;
	struct operation *o;
	int r;

	if (!is_surface_access(l->instr) || lower_has_operand(l, 2) ||
		to.n != l->instr->vector)
		return lower_unsupported(l);
	number = object_number(l, 1);
	r = put_coordinates(l, 3, lower_constant(l, CLASS_32, 0));
	if (r)
		return r;
	for (unsigned int i = 0; i < 4; i++)
		results[i] = i < to.n ? lower_destination_of(l, &to.items[i], type)
				      : lower_temporary(l, class);
	o = lower_emit(l, class == CLASS_64 ? OP_SULD_64 : OP_SULD_32, 0, number, 0, 0);
	o->imm = surface_options(l->instr, to.n);
	for (unsigned int i = 0; i < 4; i++)
		o->field[fields[i]] = results[i];
	for (unsigned int i = 0; i < to.n; i++)
		lower_finish_of(l, &to.items[i], type, results[i]);
	return l->error;
}

/* sust.p: whatever the surface's format is, its channels are written. */
static bool is_formatted_store(const struct ptx_instr *in)
{
	return in->geometry && in->geometry < PTX_GEOMETRY_CUBE &&
	       in->flags & PTX_FLAG_FORMATTED && in->vector <= 4 &&
	       lower_class_of(in->types[0]) == CLASS_32 &&
	       ptx_type_size(in->types[0]) == 4;
}

static int surface_store(struct lowering *l)
{
	static const uint8_t fields[4] = { FIELD_B, FIELD_C, FIELD_E, FIELD_F };
	unsigned int type = l->instr->types[0];
	struct operands from = elements_of(l, 3);
	enum value_class class = lower_class_of(type);
	bool formatted = is_formatted_store(l->instr);
	uint32_t values[4], number;
	struct operation *o;
	int r;

	if ((!formatted && !is_surface_access(l->instr)) || lower_has_operand(l, 1) ||
		from.n != l->instr->vector)
		return lower_unsupported(l);
	for (unsigned int i = 0; i < 4; i++)
		values[i] = i < from.n ? lower_source_of(l, &from.items[i], type)
				       : lower_constant(l, class, 0);
	number = object_number(l, 0);
	r = put_coordinates(l, 2, lower_constant(l, CLASS_32, 0));
	if (r)
		return r;
	o = lower_emit(l,
		formatted	    ? OP_SUST_P
		: class == CLASS_64 ? OP_SUST_64
				    : OP_SUST_32,
		0, number, 0, 0);
	o->imm = surface_options(l->instr, from.n);
	for (unsigned int i = 0; i < 4; i++)
		o->field[fields[i]] = values[i];
	return l->error;
}

/* sured.p: whether the integers are signed is in the surface's format. */
static bool is_formatted_reduction(const struct ptx_instr *in)
{
	if (!in->geometry || in->geometry >= PTX_GEOMETRY_CUBE ||
		!(in->flags & PTX_FLAG_FORMATTED))
		return false;
	return in->types[0] == PTX_TYPE_B32 ||
	       (in->types[0] == PTX_TYPE_B64 &&
		       (in->atom == PTX_ATOM_MIN || in->atom == PTX_ATOM_MAX));
}

static int surface_reduction(struct lowering *l)
{
	const struct ptx_instr *in = l->instr;
	unsigned int type = in->types[0];
	bool formatted = is_formatted_reduction(in), is_known;
	uint32_t number, value;
	int r;

	is_known = in->atom == PTX_ATOM_ADD || in->atom == PTX_ATOM_MIN ||
		   in->atom == PTX_ATOM_MAX || in->atom == PTX_ATOM_AND ||
		   in->atom == PTX_ATOM_OR;
	if ((!formatted && !is_surface_access(in)) || lower_has_operand(l, 1) ||
		!is_known || ptx_type_size(type) < 4)
		return lower_unsupported(l);
	value = lower_source(l, 3, type);
	number = object_number(l, 0);
	r = put_coordinates(l, 2, lower_constant(l, CLASS_32, 0));
	if (r)
		return r;
	lower_emit_imm(l, lower_class_of(type) == CLASS_64 ? OP_SURED_64 : OP_SURED_32, 0,
		number, value, 0,
		surface_options(in, 1) | (uint32_t)in->atom << SURFACE_ATOM_SHIFT |
			(lower_type_is_signed(type) ? SURFACE_SIGNED : 0) |
			(formatted ? SURFACE_FORMATTED : 0));
	return l->error;
}

int translate_texture(struct lowering *l)
{
	switch (l->instr->op) {
	case PTX_OP_TEX:
		return texture(l);
	case PTX_OP_TLD4:
		return gather(l);
	case PTX_OP_SULD:
		return surface_load(l);
	case PTX_OP_SUST:
		return surface_store(l);
	case PTX_OP_SURED:
		return surface_reduction(l);
	case PTX_OP_TXQ:
	case PTX_OP_SUQ:
		return query(l);
	default:
		return lower_unsupported(l);
	}
}
