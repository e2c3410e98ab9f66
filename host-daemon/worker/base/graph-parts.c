/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph parts: the host memory that copies in graphs access, for a recording
 */

#include <stdlib.h>

#include "worker/base/graph-parts.h"

void graph_parts_deinit(struct graph_parts *parts)
{
	free(parts->objects);
	*parts = (struct graph_parts){};
}

struct graph_parts_object *graph_parts_find(struct graph_parts *parts, uint64_t handle)
{
	const uint64_t n = parts->n_objects < GRAPH_PARTS_OBJECTS ? parts->n_objects
								  : GRAPH_PARTS_OBJECTS;

	for (uint64_t i = 0; i < n; i++)
		if (parts->objects[i].handle == handle)
			return &parts->objects[i];
	return NULL;
}

struct graph_parts_object *graph_parts_make(struct graph_parts *parts, uint64_t handle)
{
	struct graph_parts_object *object = graph_parts_find(parts, handle);

	if (!parts->objects)
		parts->objects = calloc(GRAPH_PARTS_OBJECTS, sizeof(*parts->objects));
	if (!parts->objects)
		return NULL;
	if (!object)
		object = &parts->objects[parts->n_objects++ % GRAPH_PARTS_OBJECTS];
	object->handle = handle;
	object->n = 0;
	return object;
}

void graph_parts_add(struct graph_parts_object *object, const struct graph_part *part)
{
	for (uint32_t i = 0; i < object->n; i++)
		if (object->parts[i].offset == part->offset &&
			object->parts[i].size == part->size)
			return;
	if (object->n < GRAPH_PARTS_MAX)
		object->parts[object->n++] = *part;
}

void graph_parts_join(
	struct graph_parts_object *object, const struct graph_parts_object *other)
{
	for (uint32_t i = 0; object != other && i < other->n; i++)
		graph_parts_add(object, &other->parts[i]);
}
