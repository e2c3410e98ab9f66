/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: calls hold nothing
 *
 * Built instead of host-daemon/softgpu/api/call.c where the build option planted_bug is
 * missing-reference. A call goes on with what another thread destroys meanwhile.
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
