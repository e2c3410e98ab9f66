/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: what each holds until it returns
 */

#include <assert.h>

#include "api/object.h"

struct call_objects {
	uint32_t depth; /* of calls in calls */
	uint32_t n;
	struct object *objects[CALL_OBJECTS_MAX];
};

static __thread struct call_objects held;

struct call_section call_begin(void)
{
	struct call_section section = { .objects = &held };

	section.objects->depth++;
	return section;
}

void call_end(const struct call_section *section)
{
	struct call_objects *objects = section->objects;

	if (objects->depth == 1)
		while (objects->n)
			object_unref(objects->objects[--objects->n]);
	objects->depth--;
}

static bool is_held(const struct call_objects *objects, const struct object *whole)
{
	for (uint32_t i = 0; i < objects->n; i++)
		if (objects->objects[i] == whole)
			return true;
	return false;
}

bool object_keep(struct object *object)
{
	struct call_objects *objects = &held;
	struct object *whole = object_whole(object);

	assert(objects->depth);
	if (is_held(objects, whole))
		return true;
	if (objects->n == CALL_OBJECTS_MAX)
		return false;
	object_ref(whole);
	objects->objects[objects->n++] = whole;
	return true;
}
