/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the images in a file
 */

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/test-builder.h"
#include "test.h"
#include "tool/source.h"

#define PTX ".version 9.0\n.target sm_75\n.address_size 64\n"

/* Takes the bytes as if they had been read. */
static struct source source_of(const void *bytes, size_t size)
{
	struct source source = { .bytes = malloc(size + 1), .size = size };

	check(source.bytes);
	memcpy(source.bytes, bytes, size);
	source.bytes[size] = 0;
	return source;
}

static void builder_new(struct builder *b, uint32_t arch)
{
	builder_init(b);
	builder_add(b, FATBIN_KIND_PTX, arch, 0, 90, BUILDER_PLAIN, PTX);
	builder_close(b);
}

/* A program whose section .nv_fatbin has the contents. Returns: its size. */
static size_t program(uint8_t *to, const void *contents, size_t size)
{
	static const char names[] = "\0.nv_fatbin\0.names";
	const size_t names_off = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
	const size_t off = (names_off + sizeof(names) + 63) & ~63ul;
	Elf64_Shdr sections[3] = {
		[1] = { .sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_offset = off,
			.sh_size = size },
		[2] = { .sh_name = 12,
			.sh_type = SHT_STRTAB,
			.sh_offset = names_off,
			.sh_size = sizeof(names) },
	};
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_shoff = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};

	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), sections, sizeof(sections));
	memcpy(to + names_off, names, sizeof(names));
	memcpy(to + off, contents, size);
	return off + size;
}

TEST(text_is_one_image)
{
	struct source source = source_of(PTX, strlen(PTX));
	struct source_image image;

	check(source_next(&source, &image));
	check_eq(image.size, strlen(PTX));
	check_str(image.where, "");
	check(!source_next(&source, &image));
	source_deinit(&source);
}

TEST(program_has_each_container_of_its_section)
{
	static uint8_t bytes[4096], contents[1024];
	struct source_image image;
	struct source source;
	struct builder b;
	size_t at;

	builder_new(&b, 75);
	memcpy(contents, b.bytes, b.size);
	at = (b.size + 7) & ~7ul;
	/* There may be more padding than the next container needs. */
	memcpy(contents + at + 16, b.bytes, b.size);
	source = source_of(bytes, program(bytes, contents, at + 16 + b.size));
	check(source_next(&source, &image));
	check_str(image.where, ".nv_fatbin+0x0");
	check_eq(image.size, b.size);
	check(!memcmp(image.bytes, b.bytes, b.size));
	check(source_next(&source, &image));
	check_eq(image.size, b.size);
	check(!memcmp(image.bytes, b.bytes, b.size));
	check(!source_next(&source, &image));
	source_deinit(&source);
	builder_deinit(&b);
}

TEST(container_that_exceeds_its_section_is_the_rest_of_it)
{
	static uint8_t bytes[4096];
	struct source_image image;
	struct source source;
	struct builder b;

	builder_new(&b, 75);
	source = source_of(bytes, program(bytes, b.bytes, b.size - 1));
	check(source_next(&source, &image));
	check_eq(image.size, b.size - 1);
	check(!source_next(&source, &image));
	source_deinit(&source);
	builder_deinit(&b);
}

TEST(program_without_the_section_has_no_image)
{
	static uint8_t bytes[4096];
	struct source_image image;
	struct source source;
	size_t size = program(bytes, "x", 1);

	memcpy(bytes + sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 1, ".no", 3);
	source = source_of(bytes, size);
	check(!source_next(&source, &image));
	source_deinit(&source);
}

TEST(each_damaged_byte_of_the_tables_is_survived)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	static uint8_t bytes[4096];
	struct source_image image;
	struct builder b;
	size_t size;

	builder_new(&b, 75);
	size = program(bytes, b.bytes, b.size);
	for (size_t i = 0; i < size; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			struct source source = source_of(bytes, size);
			unsigned int n = 0;

			source.bytes[i] = values[k];
			while (source_next(&source, &image)) {
				check(image.bytes >= source.bytes);
				check(image.bytes + image.size <=
					source.bytes + source.size);
				check(++n < 100);
			}
			source_deinit(&source);
		}
	builder_deinit(&b);
}

TEST(file_that_cannot_be_read_has_its_error)
{
	struct source source;

	check_eq(source_init(&source, "/nonexistent/file"), -ENOENT);
	check_eq(source_init(&source, "/"), -EIO);
	check(!source_init(&source, "/dev/null"));
	check_eq(source.size, 0);
	source_deinit(&source);
}
