/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: what handles of the API point to
 */

#include <pthread.h>
#include <stdlib.h>

#include "api/object.h"

static pthread_mutex_t graves_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *graves[OBJECT_GRAVES];
static size_t next_grave;

void *object_new(enum object_kind kind, size_t size)
{
	struct object *object = calloc(1, size);

	if (object)
		object->kind = kind;
	return object;
}

void object_free(struct object *object)
{
	struct object *oldest;

	__atomic_store_n(&object->kind, OBJECT_NONE, __ATOMIC_RELAXED);
	pthread_mutex_lock(&graves_lock);
	oldest = graves[next_grave];
	graves[next_grave] = object;
	next_grave = (next_grave + 1) % OBJECT_GRAVES;
	pthread_mutex_unlock(&graves_lock);
	free(oldest);
}
