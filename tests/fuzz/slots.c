/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: handles that all threads of a program of random calls share
 */

#include <stddef.h>

/* Inside the project, or as programs have it. */
#ifdef VGPU_CUDA_INTERNAL
#include "vgpu/cuda.h"
#else
#include <cuda.h>
#endif

#include "slots.h"

/* Few, so that threads meet. */
#define SLOTS_OF_A_KIND 4u

static void *slots[_SLOT_N][SLOTS_OF_A_KIND];

static void destroy(enum slot_kind kind, void *handle)
{
	switch (kind) {
	case SLOT_CONTEXT:
		cuCtxDestroy_v2(handle);
		break;
	case SLOT_GREEN:
		cuGreenCtxDestroy(handle);
		break;
	case SLOT_STREAM:
		cuStreamDestroy_v2(handle);
		break;
	case SLOT_EVENT:
		cuEventDestroy_v2(handle);
		break;
	case SLOT_MEMORY:
		cuMemFree_v2((uintptr_t)handle);
		break;
	case SLOT_PINNED:
		cuMemFreeHost(handle);
		break;
	case SLOT_ALLOCATION:
		cuMemRelease((uintptr_t)handle);
		break;
	case SLOT_ARRAY:
		cuArrayDestroy(handle);
		break;
	case SLOT_MIPMAP:
		cuMipmappedArrayDestroy(handle);
		break;
	case SLOT_TEXTURE:
		cuTexObjectDestroy((uintptr_t)handle);
		break;
	case SLOT_SURFACE:
		cuSurfObjectDestroy((uintptr_t)handle);
		break;
	case SLOT_OWN_TEXREF:
		cuTexRefDestroy(handle);
		break;
	case SLOT_MODULE:
		cuModuleUnload(handle);
		break;
	case SLOT_LIBRARY:
		cuLibraryUnload(handle);
		break;
	case SLOT_LINK:
		cuLinkDestroy(handle);
		break;
	case SLOT_GRAPH:
		cuGraphDestroy(handle);
		break;
	case SLOT_EXEC:
		cuGraphExecDestroy(handle);
		break;
	case SLOT_USER:
		while (!cuUserObjectRelease(handle, 1))
			;
		break;
	/* The others are freed with the object that they are part of. */
	default:
		break;
	}
}

void *slot_get(enum slot_kind kind, uint8_t which)
{
	return __atomic_load_n(&slots[kind][which % SLOTS_OF_A_KIND], __ATOMIC_RELAXED);
}

void slot_put(enum slot_kind kind, uint8_t which, void *handle)
{
	void *before = __atomic_exchange_n(
		&slots[kind][which % SLOTS_OF_A_KIND], handle, __ATOMIC_RELAXED);

	if (before)
		destroy(kind, before);
}

void slot_destroy(enum slot_kind kind, uint8_t which, uint8_t how)
{
	void *handle = slot_get(kind, which);

	if (!handle)
		return;
	if (how % 2)
		slot_put(kind, which, NULL);
	else
		destroy(kind, handle);
}

void slots_clear(void)
{
	for (unsigned int kind = _SLOT_N; kind--;)
		for (unsigned int i = 0; i < SLOTS_OF_A_KIND; i++)
			slot_put(kind, i, NULL);
}
