/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: calls take no references
 *
 * Built instead of host-daemon/softgpu/api/call.c if the build option planted_bug is
 * missing-reference. A call keeps using an object that another thread destroys meanwhile.
 */

#include "api/object.h"

struct call_objects {
	uint32_t depth; /* of calls in calls */
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

	objects->depth--;
}

bool object_keep(struct object *object)
{
	return true;
}
