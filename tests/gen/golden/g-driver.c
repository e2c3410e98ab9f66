/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Table of driver functions */

#include <dlfcn.h>
#include <string.h>

#include "vgpu/g-driver.h"

#define ENTRY(_symbol) { #_symbol, offsetof(struct vgpu_driver, _symbol) }

static const struct {
	const char *symbol;
	size_t offset;
} entries[] = {
	ENTRY(cuInit),
	ENTRY(cuNameOf),
	ENTRY(cuNumberOf),
	ENTRY(cuNumber),
	ENTRY(cuStreamGetPriority),
	ENTRY(cuMemsetD16Async),
	ENTRY(cuMemAlloc),
	ENTRY(cuMemAlloc_v2),
	ENTRY(cuEventDestroy),
	ENTRY(cuEventQuery),
	ENTRY(cuFind),
	ENTRY(cuLaunch),
	ENTRY(cuGraphLaunch),
};

size_t vgpu_driver_resolve(struct vgpu_driver *driver, void *library)
{
	size_t n_found = 0;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *found = dlsym(library, entries[i].symbol);

		memcpy((char *)driver + entries[i].offset, &found, sizeof(found));
		n_found += found != NULL;
	}
	return n_found;
}
