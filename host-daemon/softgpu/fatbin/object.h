/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: object files of the host, and archives of them, with device code inside
 *
 * nvcc puts the containers of an object into a section: one for relocatable code, another
 * one for code that is not. All numbers are untrusted.
 */

#include <stdbool.h>
#include <stddef.h>

#define OBJECT_MEMBERS_MAX 65536u    /* of an archive; NVIDIA's largest has thousands */
#define OBJECT_CONTAINERS_MAX 65536u /* of an object: one for each source that it has */

enum {
	_OBJECT_E_SUCCESS,
	OBJECT_E_INVALID, /* no such file, or a damaged one */
};

/* Called for each container. Return: 0 to go on; anything else ends the walk. */
typedef int (*object_found)(void *data, const void *container, size_t size);

/*
 * object_walk() - find the containers of an object file
 *
 * Return: 0, OBJECT_E_INVALID, or what @found returned.
 */
int object_walk(const void *bytes, size_t size, object_found found, void *data);

/* The same for all objects of an archive; other files in it are passed over. */
int archive_walk(const void *bytes, size_t size, object_found found, void *data);
