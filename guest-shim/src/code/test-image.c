/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images say how long they are
 */

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "code/image.h"

struct container {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t size;
	uint8_t data[64];
};

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *container;
	const void *const *inputs;
};

static struct container container_of(uint64_t size)
{
	return (struct container){ 0xba55ed50, 1, 16, size, {} };
}

static struct shim_image image;

TEST(text_ends_with_its_nul)
{
	static const char ptx[] = "//\n.version 7.0\n.target sm_50\n";

	check_eq(shim_image_measure(ptx, &image), CUDA_SUCCESS);
	check_eq(image.n_parts, 1);
	check_eq(image.parts[0].size, sizeof(ptx));
}

TEST(the_size_of_a_container_is_in_its_header)
{
	struct container container = container_of(64);

	check_eq(shim_image_measure(&container, &image), CUDA_SUCCESS);
	check_eq(image.n_parts, 1);
	check_eq(image.parts[0].size, 80);
}

TEST(a_wrapper_leads_to_its_container)
{
	struct container container = container_of(32);
	struct wrapper wrapper = { 0x466243b1, 1, &container, NULL };

	check_eq(shim_image_measure(&wrapper, &image), CUDA_SUCCESS);
	check_eq(image.n_parts, 1);
	check(image.parts[0].data == &container);
	check_eq(image.parts[0].size, 48);
}

TEST(a_linked_wrapper_brings_what_it_was_linked_from)
{
	struct container containers[3] = { container_of(8), container_of(16),
		container_of(24) };
	const void *inputs[] = { &containers[1], &containers[2], NULL };
	struct wrapper wrapper = { 0x466243b1, 2, &containers[0], inputs };

	check_eq(shim_image_measure(&wrapper, &image), CUDA_SUCCESS);
	check_eq(image.n_parts, 3);
	check_eq(image.parts[2].size, 40);
}

TEST(more_inputs_than_can_travel_are_refused)
{
	struct container container = container_of(8);
	const void *inputs[SHIM_IMAGE_PARTS_MAX + 1];
	struct wrapper wrapper = { 0x466243b1, 2, &container, inputs };

	for (uint32_t i = 0; i < SHIM_IMAGE_PARTS_MAX; i++)
		inputs[i] = &container;
	inputs[SHIM_IMAGE_PARTS_MAX] = NULL;
	check_eq(shim_image_measure(&wrapper, &image), CUDA_ERROR_INVALID_IMAGE);
}

TEST(a_container_of_absurd_size_is_refused)
{
	struct container container = container_of(1ull << 40);

	check_eq(shim_image_measure(&container, &image), CUDA_ERROR_INVALID_IMAGE);
	container.size = UINT64_MAX - 4;
	check_eq(shim_image_measure(&container, &image), CUDA_ERROR_INVALID_IMAGE);
}

TEST(an_elf_file_ends_where_its_last_section_does)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[2];
		uint8_t data[100];
	} elf = {
		.header = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			.e_shoff = sizeof(Elf64_Ehdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 2,
		},
		.sections = {
			{ .sh_type = SHT_PROGBITS, .sh_offset = 200, .sh_size = 77 },
			{ .sh_type = SHT_NOBITS, .sh_offset = 9999, .sh_size = 9999 },
		},
	};

	check_eq(shim_image_measure(&elf, &image), CUDA_SUCCESS);
	check_eq(image.parts[0].size, 277);
	elf.sections[0].sh_size = UINT64_MAX;
	check_eq(shim_image_measure(&elf, &image), CUDA_ERROR_INVALID_IMAGE);
}

TEST(invalid_images_are_refused)
{
	check_eq(shim_image_measure("", &image), CUDA_ERROR_INVALID_IMAGE);
	check_eq(shim_image_measure("BC\xc0\xde", &image), CUDA_ERROR_INVALID_IMAGE);
}

TEST(a_file_that_is_not_there_is_not_found)
{
	struct shim_image_file file;

	check_eq(shim_image_file_read("/nonexistent/image", &file),
		CUDA_ERROR_FILE_NOT_FOUND);
	check_eq(shim_image_file_read("/", &file), CUDA_ERROR_FILE_NOT_FOUND);
	check(!file.data);
}

static CUresult measure_file(const void *bytes, size_t size)
{
	struct shim_image image_of_file = {};
	struct shim_image_file file;
	char path[256];
	CUresult result;
	FILE *out;

	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	out = fopen(path, "we");
	check(out && fwrite(bytes, 1, size, out) == size && !fclose(out));
	check_eq(shim_image_file_read(path, &file), CUDA_SUCCESS);
	check_eq(file.size, size);
	check(!memcmp(file.data, bytes, size) && !file.data[size]);
	check(file.is_known);
	check_eq(file.backing.size, size);
	image_of_file.file = &file;
	result = shim_image_measure(file.data, &image_of_file);
	shim_image_file_deinit(&file);
	return result;
}

TEST(an_image_is_not_read_past_the_end_of_its_file)
{
	struct container container = container_of(64);
	struct wrapper wrapper = { 0x466243b1, 1, (void *)4096, NULL };
	Elf64_Ehdr elf = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
		.e_shoff = 1 << 29,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 2,
	};

	check_eq(measure_file(&container, sizeof(container)), CUDA_SUCCESS);
	check_eq(measure_file(&container, sizeof(container) - 1),
		CUDA_ERROR_INVALID_IMAGE);
	check_eq(measure_file(&container, 4), CUDA_ERROR_INVALID_IMAGE);
	check_eq(measure_file(&elf, sizeof(elf)), CUDA_ERROR_INVALID_IMAGE);
	elf.e_shnum = 0;
	elf.e_shoff = 0;
	check_eq(measure_file(&elf, sizeof(elf)), CUDA_SUCCESS);
	check_eq(measure_file(&elf, sizeof(elf) - 1), CUDA_ERROR_INVALID_IMAGE);
	check_eq(measure_file("// text", 7), CUDA_SUCCESS);
	/* Its relative names would be addresses of another process. */
	check_eq(measure_file(&wrapper, sizeof(wrapper)), CUDA_ERROR_INVALID_IMAGE);
}
