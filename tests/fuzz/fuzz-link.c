/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the linker
 *
 * The input is several PTX texts, separated by form feeds. The result of linking the
 * valid ones is parsed and checked as a load would.
 */

#include <stdlib.h>
#include <string.h>

#include "link/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const char *text, size_t size)
{
	struct ptx_module *module;
	struct ptx_error error;

	if (strlen(text) != size)
		abort();
	if (ptx_module_new(&module, text, size, 121, &error))
		return;
	link_check(module, &error);
	ptx_module_free(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct link *link = link_new();
	struct ptx_error error;
	char *text = NULL;

	while (link && size) {
		const uint8_t *end = memchr(data, '\f', size);
		size_t n = end ? (size_t)(end - data) : size;

		link_add(link, (const char *)data, n, 121, &error);
		n += n < size;
		data += n;
		size -= n;
	}
	if (link && !link_finish(link, &text, &size, &error))
		load(text, size);
	free(text);
	link_free(link);
	return 0;
}
