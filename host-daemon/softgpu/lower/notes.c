/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes: what an access finds out about its addresses, for those after it
 *
 * Code that reads several elements of a row has one register for the address, and the
 * offsets in the instructions. In a block of operations, which all lanes enter at its
 * beginning, those addresses go on from lane to lane in the same way as long as nothing
 * writes the register.
 */

#include <stdlib.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* The access of the block that was the first one with that address. */
struct first {
	uint32_t block; /* number + 1; 0: none, or the register was written since */
	uint32_t op;
};

static bool is_noted(unsigned int op)
{
	return (op >= OP_LDG_U8 && op <= OP_STG4_64) ||
	       (op >= OP_LDS_U8 && op <= OP_STS4_64);
}

/* Return: the number of the note, ACCESS_NOTES_MAX if there are too many. */
static uint32_t note_of(struct operation *first, uint32_t *n_notes)
{
	if (first->reserved & ACCESS_NOTES)
		return first->reserved >> ACCESS_NOTE_SHIFT & (ACCESS_NOTES_MAX - 1);
	if (*n_notes >= ACCESS_NOTES_MAX)
		return ACCESS_NOTES_MAX;
	first->reserved |= (uint16_t)(ACCESS_NOTES | *n_notes << ACCESS_NOTE_SHIFT);
	return (*n_notes)++;
}

static void note_access(struct lowering *l, uint32_t i, struct first *first,
	uint32_t block, uint32_t *n_notes)
{
	struct operation *o = &l->ops[i];
	struct first *of = &first[o->field[FIELD_A]];
	uint32_t note;

	if (of->block != block) {
		*of = (struct first){ .block = block, .op = i };
		return;
	}
	note = note_of(&l->ops[of->op], n_notes);
	if (note < ACCESS_NOTES_MAX)
		o->reserved |= (uint16_t)(ACCESS_NOTED | note << ACCESS_NOTE_SHIFT);
}

int lower_notes(struct lowering *l)
{
	_vgpu_cleanup_(vgpu_freep) struct first *first =
		calloc(l->n_values, sizeof(*first));
	_vgpu_cleanup_(vgpu_freep) bool *is_target =
		calloc((size_t)l->n_ops + 1, sizeof(*is_target));
	uint32_t block = 1, n_notes = 0;

	if (!first || !is_target)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->n_labels; i++)
		is_target[l->labels[i]] = true;
	for (uint32_t i = 0; i < l->n_ops; i++) {
		const struct operation *o = &l->ops[i];
		const char *signature = op_signature(o->op);

		if (is_target[i] || (i && lower_leaves(&l->ops[i - 1]))) {
			block++;
			n_notes = 0;
		}
		if (is_noted(o->op))
			note_access(l, i, first, block, &n_notes);
		for (unsigned int k = 0; k < _FIELD_N; k++)
			if (signature[k] == 'W' || signature[k] == 'X')
				first[o->field[k]].block = 0;
	}
	return 0;
}
