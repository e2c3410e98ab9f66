/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/elf-file.h"
#include "fatbin/image.h"
#include "fatbin/standin.h"
#include "vgpu/error.h"

#include "tool/finding.h"

static enum finding_kind kind_of(const struct source_image *image)
{
	const char *text;
	size_t size;

	if (fatbin_is_container(image->bytes, image->size))
		return FINDING_CONTAINER;
	if (!elf_is_file(image->bytes, image->size))
		return FINDING_PTX;
	return standin_find(image->bytes, image->size, &text, &size) ? FINDING_STANDIN
								     : FINDING_CUBIN;
}

static int note_entry(struct finding *finding, const struct fatbin_entry *entry)
{
	struct finding_entry *entries =
		realloc(finding->entries, (finding->n_entries + 1) * sizeof(*entries));
	int has_ptx;

	if (!entries)
		return vgpu_error_origin(-ENOMEM);
	finding->entries = entries;
	has_ptx = image_entry_has_ptx(entry);
	if (has_ptx < 0)
		return vgpu_error_trace(has_ptx);
	entries[finding->n_entries++] = (struct finding_entry){
		.kind = entry->kind,
		.is_standin = has_ptx && entry->kind != FATBIN_KIND_PTX,
		.arch = entry->arch,
		.suffix = entry->flags & FATBIN_FLAG_ARCH     ? 'a'
			  : entry->flags & FATBIN_FLAG_FAMILY ? 'f'
							      : 0,
		.version = entry->version_major * 10u + entry->version_minor,
	};
	return 0;
}

static int note_entries(struct finding *finding, const struct source_image *image)
{
	struct fatbin_entry entry;
	struct fatbin fatbin;
	int r = 0;

	if (fatbin_init(&fatbin, image->bytes, image->size))
		return 0;
	while (!r && !fatbin_next(&fatbin, &entry))
		r = note_entry(finding, &entry);
	return r;
}

int finding_init(
	struct finding *finding, const struct source_image *image, unsigned int cc)
{
	struct softgpu_image chosen;
	int r;

	*finding = (struct finding){ .kind = kind_of(image) };
	memcpy(finding->where, image->where, sizeof(finding->where));
	machine_code_describe(image->bytes, image->size, finding->machine_code);
	r = note_entries(finding, image);
	if (r)
		return vgpu_error_trace(r);
	r = softgpu_image_select(image->bytes, image->size, cc, 0, &chosen);
	if (r < 0)
		return vgpu_error_trace(r);
	if (r) {
		finding->result = softgpu_image_result(r);
		if (r == SOFTGPU_IMAGE_E_INVALID && finding->kind == FINDING_PTX)
			finding->kind = FINDING_OTHER;
		return 0;
	}
	finding->arch = chosen.arch;
	r = report_new(&finding->report, chosen.text, chosen.size, cc);
	softgpu_image_deinit(&chosen);
	return r ? vgpu_error_trace(r) : 0;
}

void finding_deinit(struct finding *finding)
{
	free(finding->entries);
	report_free(finding->report);
	*finding = (struct finding){ 0 };
}

enum verdict finding_verdict(const struct finding *finding)
{
	const struct report *report = finding->report;
	const int result = report ? report->result : finding->result;

	switch (result) {
	case 0:
		return report && report->n_running == report->n_kernels ? VERDICT_RUNS
									: VERDICT_PARTLY;
	case 209: /* CUDA_ERROR_NO_BINARY_FOR_GPU */
	case 222: /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
		return VERDICT_NO_PTX;
	default:
		return VERDICT_DAMAGED;
	}
}
