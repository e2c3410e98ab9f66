/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots: handles that all threads of a program of random calls share
 *
 * A thread that puts a handle into a slot destroys the previous one. A destroyed handle
 * may stay in its slot, if it is one that other threads use without knowing of its end.
 */

#include <stdint.h>

enum slot_kind {
	SLOT_CONTEXT,
	SLOT_GREEN,
	SLOT_STREAM,
	SLOT_EVENT,
	SLOT_MEMORY,
	SLOT_PINNED,
	SLOT_ALLOCATION,
	SLOT_ARRAY,
	SLOT_MIPMAP,
	SLOT_TEXTURE,
	SLOT_SURFACE,
	SLOT_OWN_TEXREF,
	SLOT_TEXREF,
	SLOT_SURFREF,
	SLOT_MODULE,
	SLOT_LIBRARY,
	SLOT_LINK,
	SLOT_FUNCTION,
	SLOT_KERNEL,
	SLOT_GRAPH,
	SLOT_EXEC,
	SLOT_NODE,
	SLOT_USER,
	_SLOT_N,
};

void *slot_get(enum slot_kind kind, uint8_t which);
void slot_put(enum slot_kind kind, uint8_t which, void *handle);

/* Destroys the object in a slot; how determines whether it stays there. */
void slot_destroy(enum slot_kind kind, uint8_t which, uint8_t how);

/* Destroys all, contexts last. */
void slots_clear(void);
