/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: initialisers of module variables
 *
 * `{ {1, 2}, {3} }` is read with a counter for each level of braces: an element goes to
 * the next place, and a closing brace advances to the end of its level's sub-array. The
 * bytes grow with the text, not with the declared size, so that a large zero-filled array
 * costs nothing.
 */

#include <stdlib.h>
#include <string.h>

#include "ptx/parser.h"

struct initialiser {
	struct ptx_parser *p;
	const struct ptx_declaration *declaration;
	struct ptx_variable *variable;
	struct ptx_array bytes;
	uint32_t element;   /* bytes */
	uint64_t place;	    /* elements before the next one */
	unsigned int depth; /* open braces */
	uint64_t start[9];  /* place at each open brace */
};

/* Elements, vectors unfolded, of the sub-array of braces at a depth. */
static uint64_t level_count(const struct initialiser *in, unsigned int depth)
{
	const struct ptx_declaration *d = in->declaration;
	uint64_t n = d->vector;

	for (unsigned int i = depth; i < d->n_dimensions; i++)
		n *= d->dimensions[i];
	return n;
}

/* Returns: how deep braces may be. */
static unsigned int depth_max(const struct initialiser *in)
{
	unsigned int n = in->declaration->n_dimensions + (in->declaration->vector > 1);

	return n ? n : 1;
}

static int reserve(struct initialiser *in, uint64_t end)
{
	struct ptx_parser *p = in->p;
	uint64_t more;

	if (end <= in->bytes.n)
		return 0;
	more = end - in->bytes.n;
	p->init_bytes += more;
	if (end > PTX_INITIALISER_MAX || p->init_bytes > PTX_INITIALISER_MAX)
		return ptx_fail(
			p, "initialisers of more than %u bytes", PTX_INITIALISER_MAX);
	if (!ptx_array_push(&in->bytes, more, 1))
		return vgpu_error_origin(-ENOMEM);
	return 0;
}

static int add_reloc(
	struct initialiser *in, const struct ptx_constant *constant, uint64_t offset)
{
	struct ptx_reloc *reloc;

	if (in->p->relocs.n == PTX_RELOCS_MAX)
		return ptx_fail(
			in->p, "more than %u addresses in initialisers", PTX_RELOCS_MAX);
	reloc = ptx_array_push(&in->p->relocs, 1, sizeof(*reloc));
	if (!reloc)
		return vgpu_error_origin(-ENOMEM);
	*reloc = (struct ptx_reloc){
		.offset = offset,
		.size = constant->size ? constant->size : in->element,
		.shift = constant->shift,
		.generic = constant->generic,
		.symbol = constant->symbol,
		.index = constant->index,
		.addend = (int64_t)constant->value,
	};
	if (reloc->size != 1 && reloc->size != 2 && reloc->size != 4 && reloc->size != 8)
		return ptx_fail(
			in->p, "an address in an element of %u bytes", in->element);
	if (reloc->size > in->element)
		return ptx_fail(in->p, "an address that does not fit its element");
	in->variable->n_relocs++;
	return 0;
}

static int store_element(struct initialiser *in)
{
	struct ptx_constant constant;
	uint64_t offset, bits;
	int r;

	r = ptx_parse_constant(in->p, &constant);
	if (r)
		return r;
	if (!in->declaration->is_unsized && in->place >= level_count(in, 0))
		return ptx_fail(in->p, "more initialisers than elements");
	offset = in->place++ * in->element;
	r = reserve(in, offset + in->element);
	if (r)
		return r;
	if (constant.kind == PTX_OPERAND_SYMBOL)
		return add_reloc(in, &constant, offset);
	bits = ptx_operand_bits(&(struct ptx_operand){ .kind = constant.kind,
					.imm = (int64_t)constant.value },
		in->declaration->type);
	memcpy((char *)in->bytes.items + offset, &bits,
		in->element < sizeof(bits) ? in->element : sizeof(bits));
	return 0;
}

static int open_brace(struct initialiser *in)
{
	if (in->depth == depth_max(in))
		return ptx_fail(in->p, "braces deeper than the array has dimensions");
	in->start[in->depth++] = in->place;
	ptx_next(in->p);
	return 0;
}

static int close_brace(struct initialiser *in)
{
	uint64_t end;

	in->depth--;
	/* the outermost braces need not be filled up */
	if (in->depth) {
		end = in->start[in->depth] + level_count(in, in->depth);
		if (in->place > end || end > PTX_VARIABLE_SIZE_MAX)
			return ptx_fail(in->p, "more initialisers than elements");
		in->place = end;
	}
	ptx_next(in->p);
	return 0;
}

/* After an element or a closing brace. *donep: the initialiser is complete. */
static int after_element(struct initialiser *in, bool *donep)
{
	int r;

	for (;;) {
		*donep = !in->depth;
		if (*donep)
			return 0;
		if (ptx_take(in->p, ',')) {
			if (in->p->token.kind != '}')
				return 0;
			continue;
		}
		if (in->p->token.kind != '}')
			return ptx_expect(in->p, '}');
		r = close_brace(in);
		if (r)
			return r;
	}
}

static int parse_elements(struct initialiser *in)
{
	bool done = false;
	int r = 0;

	while (!r && !done) {
		if (in->p->token.kind == '{') {
			r = open_brace(in);
			if (r || in->p->token.kind != '}')
				continue;
		} else {
			r = store_element(in);
			if (r)
				break;
		}
		r = after_element(in, &done);
	}
	return r;
}

static int keep(struct initialiser *in)
{
	struct ptx_variable *variable = in->variable;
	uint64_t row = level_count(in, 1);
	uint32_t n;
	void *items;
	int r;

	if (in->declaration->is_unsized) {
		/* the first dimension is as long as needed */
		variable->size =
			row ? (in->place + row - 1) / row * row * in->element : 0;
		variable->unsized = false;
		if (variable->size > PTX_VARIABLE_SIZE_MAX)
			return ptx_fail(in->p, "a variable of more than %u bytes",
				PTX_VARIABLE_SIZE_MAX);
	}
	r = ptx_array_keep(&in->bytes, 1, in->p->arena, &items, &n);
	if (r)
		return vgpu_error_trace(r);
	variable->init = items;
	variable->init_size = n;
	return 0;
}

int ptx_parse_initialiser(struct ptx_parser *p, const struct ptx_declaration *declaration,
	struct ptx_variable *variable)
{
	struct initialiser in = {
		.p = p,
		.declaration = declaration,
		.variable = variable,
		.element = ptx_type_size(declaration->type),
	};
	int r;

	if (declaration->space != PTX_SPACE_GLOBAL &&
		declaration->space != PTX_SPACE_CONST)
		return ptx_fail(p, "only .global and .const variables have initialisers");
	/* An array of them has no use for the host, and no instruction names its
	 * elements. */
	if (declaration->type >= PTX_TYPE_TEXREF)
		return declaration->is_array ? ptx_skip_braces(p)
					     : ptx_parse_opaque(p, variable);
	variable->first_reloc = p->relocs.n;
	r = parse_elements(&in);
	if (!r)
		r = keep(&in);
	ptx_array_deinit(&in.bytes);
	return r;
}
