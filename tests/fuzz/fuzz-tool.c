/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: files for vgpu-softgpu-info
 *
 * The input is a file: each of its images is examined, and printed as text and as JSON.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/finding.h"
#include "tool/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IMAGES_MAX 16u /* keeps an execution short */

static FILE *out;

static void examine(const struct source_image *image)
{
	struct finding finding;

	if (finding_init(&finding, image, 121))
		abort();
	finding_print(&finding, out);
	finding_print_json(&finding, out);
	if (finding_verdict(&finding) == VERDICT_RUNS && !finding.report)
		abort();
	finding_deinit(&finding);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source source = { .bytes = malloc(size + 1), .size = size };
	struct source_image image;

	if (!out)
		out = fopen("/dev/null", "we");
	if (!out || !source.bytes)
		abort();
	memcpy(source.bytes, data, size);
	source.bytes[size] = 0;
	for (unsigned int i = 0; i < IMAGES_MAX && source_next(&source, &image); i++)
		examine(&image);
	source_deinit(&source);
	return 0;
}
