/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries for test-select: a driver with cuInit only
 *
 * With TEST_NOTE it has the note of the guest library and must never be loaded; with
 * TEST_INIT its cuInit returns that.
 */

#include <stdlib.h>

#ifdef TEST_NOTE
__attribute__((used, section(".note.vgpu"), aligned(4))) static const struct {
	unsigned int name_size, text_size, type;
	char name[8], text[16];
} note = { 5, 16, 1, "vGPU", "libcuda 0.0.0" };

__attribute__((constructor)) static void was_loaded(void)
{
	abort();
}
#endif

__attribute__((visibility("default"))) int cuInit(unsigned int flags);

int cuInit(unsigned int flags)
{
	return TEST_INIT;
}
