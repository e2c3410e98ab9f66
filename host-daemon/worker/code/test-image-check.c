/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image check: what leads out of an image is refused
 */

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/test-builder.h"
#include "test.h"
#include "worker/code/image-check.h"

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size)
{
	memcpy(bytes + at, &value, size);
}

/* A container of one entry of 64 + 32 bytes. */
static void container(uint8_t bytes[112])
{
	memset(bytes, 0, 112);
	put(bytes, 0, 0xba55ed50, 4);
	put(bytes, 4, 1, 2);
	put(bytes, 6, 16, 2);
	put(bytes, 8, 96, 8);
	put(bytes, 16, 1, 4);
	put(bytes, 20, 64, 4);
	put(bytes, 24, 32, 8);
}

TEST(text_and_whole_containers_pass)
{
	uint8_t bytes[112];

	check(image_is_contained((const uint8_t *)".version 7.0", 12));
	check(image_is_contained((const uint8_t *)"\n// x", 5));
	container(bytes);
	check(image_is_contained(bytes, sizeof(bytes)));
}

TEST(a_wrapper_whose_pointers_a_driver_would_follow_is_refused)
{
	uint8_t bytes[64] = { 0 };

	put(bytes, 0, 0x466243b1, 4);
	put(bytes, 4, 1, 4);
	put(bytes, 8, (uintptr_t)bytes, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
}

TEST(a_container_longer_than_its_bytes_is_refused)
{
	uint8_t bytes[112];

	container(bytes);
	check(!image_is_contained(bytes, sizeof(bytes) - 1));
	check(!image_is_contained(bytes, 15));
	put(bytes, 8, UINT64_MAX, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
	put(bytes, 8, 97, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
}

TEST(an_entry_that_leads_out_of_its_container_is_refused)
{
	uint8_t bytes[112];

	container(bytes);
	put(bytes, 24, 33, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
	put(bytes, 24, UINT64_MAX, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
	container(bytes);
	put(bytes, 20, 0, 4);
	put(bytes, 24, 0, 8);
	check(!image_is_contained(bytes, sizeof(bytes)));
}

TEST(an_elf_file_has_its_tables_and_sections_inside)
{
	struct {
		Elf64_Ehdr elf;
		Elf64_Shdr sections[2];
		uint8_t data[32];
	} file = { 0 };
	const uint8_t *bytes = (const uint8_t *)&file;

	memcpy(file.elf.e_ident, ELFMAG, SELFMAG);
	file.elf.e_ident[EI_CLASS] = ELFCLASS64;
	file.elf.e_shoff = sizeof(file.elf);
	file.elf.e_shnum = 2;
	file.elf.e_shentsize = sizeof(Elf64_Shdr);
	file.sections[1].sh_type = SHT_PROGBITS;
	file.sections[1].sh_offset = sizeof(file) - 32;
	file.sections[1].sh_size = 32;
	check(image_is_contained(bytes, sizeof(file)));
	file.sections[1].sh_size = 33;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[1].sh_offset = UINT64_MAX;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[1].sh_type = SHT_NOBITS;
	check(image_is_contained(bytes, sizeof(file)));
	file.elf.e_shnum = 60000;
	check(!image_is_contained(bytes, sizeof(file)));
	file.elf.e_shnum = 2;
	file.elf.e_shoff = UINT64_MAX - 10;
	check(!image_is_contained(bytes, sizeof(file)));
	check(!image_is_contained(bytes, 20));
}

/* Where a table's number is too large for the header it is in section 0, see elf(5). */
TEST(an_elf_file_with_extended_numbers_has_its_tables_inside)
{
	struct {
		Elf64_Ehdr elf;
		Elf64_Shdr sections[2];
		Elf64_Phdr segment;
	} file = { 0 };
	const uint8_t *bytes = (const uint8_t *)&file;

	memcpy(file.elf.e_ident, ELFMAG, SELFMAG);
	file.elf.e_ident[EI_CLASS] = ELFCLASS64;
	file.elf.e_shoff = sizeof(file.elf);
	file.elf.e_shentsize = sizeof(Elf64_Shdr);
	file.elf.e_shstrndx = SHN_XINDEX;
	file.elf.e_phoff = offsetof(typeof(file), segment);
	file.elf.e_phentsize = sizeof(Elf64_Phdr);
	file.elf.e_phnum = PN_XNUM;
	file.sections[0].sh_size = 2;
	file.sections[0].sh_link = 1;
	file.sections[0].sh_info = 1;
	check(image_is_contained(bytes, sizeof(file)));
	file.sections[0].sh_info = 2;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[0].sh_info = 1;
	file.sections[0].sh_link = 2;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[0].sh_link = 1;
	file.sections[0].sh_size = 4;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[0].sh_size = UINT64_MAX;
	check(!image_is_contained(bytes, sizeof(file)));
	file.sections[0].sh_size = 2;
	file.sections[1].sh_type = SHT_PROGBITS;
	file.sections[1].sh_size = sizeof(file) + 1;
	check(!image_is_contained(bytes, sizeof(file)));
	file.elf.e_shoff = 0;
	check(!image_is_contained(bytes, sizeof(file)));
}

TEST(the_names_of_sections_are_in_one_of_them)
{
	struct {
		Elf64_Ehdr elf;
		Elf64_Shdr section;
	} file = { 0 };
	const uint8_t *bytes = (const uint8_t *)&file;

	memcpy(file.elf.e_ident, ELFMAG, SELFMAG);
	file.elf.e_ident[EI_CLASS] = ELFCLASS64;
	file.elf.e_shoff = sizeof(file.elf);
	file.elf.e_shnum = 1;
	file.elf.e_shentsize = sizeof(Elf64_Shdr);
	check(image_is_contained(bytes, sizeof(file)));
	file.elf.e_shstrndx = 1;
	check(!image_is_contained(bytes, sizeof(file)));
}

TEST(an_elf_file_in_a_container_keeps_to_its_entry)
{
	uint8_t bytes[16 + 64 + sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr)];
	Elf64_Ehdr elf = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
		.e_shoff = sizeof(elf),
		.e_shnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	memset(bytes, 0, sizeof(bytes));
	container(bytes);
	put(bytes, 8, sizeof(bytes) - 16, 8);
	put(bytes, 24, sizeof(bytes) - 16 - 64, 8);
	memcpy(bytes + 80, &elf, sizeof(elf));
	check(image_is_contained(bytes, sizeof(bytes)));
	elf.e_shoff++;
	memcpy(bytes + 80, &elf, sizeof(elf));
	check(!image_is_contained(bytes, sizeof(bytes)));
}

TEST(bytes_of_no_format_are_refused)
{
	static const uint8_t bytes[16] = { 0x01, 0x80, 0xff };

	check(!image_is_contained(bytes, sizeof(bytes)));
	check(!image_is_contained(bytes, 0));
}

#define PLAIN ".version 7.0\n.target sm_70\n"
#define PRINTS PLAIN ".extern .func vprintf(\n"
#define ASSERTS PLAIN ".extern .func __assertfail(\n"

static bool text_may_print(const char *text)
{
	return image_may_print((const uint8_t *)text, strlen(text) + 1);
}

TEST(text_that_may_print_is_found)
{
	check(!text_may_print(PLAIN));
	check(text_may_print(PRINTS));
	check(text_may_print(ASSERTS));
}

/* A container of two entries; the second one's header says another size if not 0. */
static bool entries_may_print(
	enum builder_packing packing, const char *text, uint64_t unpacked)
{
	struct builder builder;
	bool may;

	builder_init(&builder);
	builder_add(&builder, FATBIN_KIND_PTX, 70, 0, 70, packing, PLAIN);
	builder_add(&builder, FATBIN_KIND_PTX, 80, 0, 70, packing, text);
	if (unpacked)
		builder_poke(&builder, 56, unpacked, 8);
	builder_close(&builder);
	check(image_is_contained(builder.bytes, builder.size));
	may = image_may_print(builder.bytes, builder.size);
	builder_deinit(&builder);
	return may;
}

TEST(containers_that_may_print_are_found_however_they_are_packed)
{
	static const enum builder_packing packings[] = { BUILDER_PLAIN, BUILDER_LZ4,
		BUILDER_ZSTD };

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++) {
		check(!entries_may_print(packings[i], PLAIN, 0));
		check(entries_may_print(packings[i], PRINTS, 0));
		check(entries_may_print(packings[i], ASSERTS, 0));
	}
	/* Code that cannot be unpacked, or is too large, may print. */
	check(entries_may_print(BUILDER_ZSTD, PLAIN, strlen(PLAIN) + 9));
	check(entries_may_print(BUILDER_ZSTD, PLAIN, 1ull << 40));
}

TEST(an_archive_has_its_files_inside)
{
	uint8_t bytes[8 + 60 + 64 + 60 + 3] = "!<arch>\n";
	Elf64_Ehdr elf = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 } };

	memset(bytes + 8, ' ', 60);
	memcpy(bytes + 8 + 48, "64", 2);
	memcpy(bytes + 8 + 58, "`\n", 2);
	memcpy(bytes + 68, &elf, sizeof(elf));
	memset(bytes + 132, ' ', 60);
	memcpy(bytes + 132 + 48, "3", 1);
	memcpy(bytes + 132 + 58, "`\n", 2);
	check(image_archive_is_contained(bytes, sizeof(bytes)));
	check(!image_archive_is_contained(bytes, sizeof(bytes) - 1));
	check(!image_archive_is_contained(bytes, 40));
	put(bytes, 68 + offsetof(Elf64_Ehdr, e_shoff), 8, 8);
	put(bytes, 68 + offsetof(Elf64_Ehdr, e_shentsize), sizeof(Elf64_Shdr), 2);
	put(bytes, 68 + offsetof(Elf64_Ehdr, e_shnum), 1, 2);
	check(!image_archive_is_contained(bytes, sizeof(bytes)));
	check(!image_archive_is_contained((const uint8_t *)"no archive", 10));
}
