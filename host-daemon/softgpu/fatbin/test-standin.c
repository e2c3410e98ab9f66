/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of ELF files: stand-ins for cubins, their limits, and what a message says about
 * machine code
 */

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "fatbin/machine-code.h"
#include "fatbin/standin.h"
#include "fatbin/test-builder.h"
#include "test.h"

#define PTX ".version 8.0\n.target sm_90\n.address_size 64\n"
#define CC 121

struct file {
	uint8_t *bytes;
	size_t size;
};

static void file_deinit(struct file *file)
{
	free(file->bytes);
}

#define CLEAN_FILE __attribute__((__cleanup__(file_deinit))) struct file

static struct file standin(void)
{
	struct file file;

	check(!standin_new(90, PTX, strlen(PTX), "k 16 0\n", &file.bytes, &file.size));
	return file;
}

/* The result for an exact copy on the heap, where a sanitizer sees each byte too far. */
static int select_copy(const uint8_t *bytes, size_t size, struct softgpu_image *image)
{
	uint8_t *copy = malloc(size ? size : 1);
	char text[MACHINE_CODE_TEXT_MAX];
	int r;

	check(copy);
	memcpy(copy, bytes, size);
	machine_code_describe(copy, size, text);
	check(memchr(text, 0, sizeof(text)));
	r = softgpu_image_select(copy, size, CC, 0, image);
	free(copy);
	return r;
}

TEST(ptx_of_a_standin_is_taken)
{
	CLEAN_FILE file = standin();
	struct softgpu_image image;

	check_eq(elf_extent(file.bytes, file.size), file.size);
	check_eq(select_copy(file.bytes, file.size, &image), 0);
	check_str(image.text, PTX);
	check_eq(image.size, strlen(PTX));
	softgpu_image_deinit(&image);
}

TEST(standin_looks_like_a_cubin_of_its_architecture)
{
	CLEAN_FILE file = standin();
	struct elf_section section;
	struct elf elf;

	check(elf_init(&elf, file.bytes, file.size));
	check_eq(elf.machine, ELF_MACHINE_CUDA);
	check_eq(elf.arch, 90);
	check(elf_find(&elf, STANDIN_KERNELS, &section));
	check_eq(section.size, strlen("k 16 0\n"));
	check(!memcmp(section.bytes, "k 16 0\n", section.size));
	check(!elf_find(&elf, ".text.k", &section));
}

TEST(each_truncated_standin_is_refused_or_whole)
{
	CLEAN_FILE file = standin();
	const size_t text_end = file.size - strlen("k 16 0\n");
	struct softgpu_image image;

	for (size_t size = SELFMAG; size < file.size; size++) {
		int r = select_copy(file.bytes, size, &image);

		check_eq(r, size < text_end ? SOFTGPU_IMAGE_E_NO_BINARY : 0);
		softgpu_image_deinit(&image);
	}
}

/* Any byte of the tables may be any other: no read is outside. */
TEST(each_damaged_table_is_survived)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	CLEAN_FILE file = standin();
	const size_t tables = file.size - strlen(PTX) - strlen("k 16 0\n");
	struct softgpu_image image;
	unsigned int n_taken = 0;

	for (size_t i = SELFMAG; i < tables; i++) {
		const uint8_t before = file.bytes[i];

		for (size_t k = 0; k < sizeof(values); k++) {
			file.bytes[i] = values[k];
			n_taken += !select_copy(file.bytes, file.size, &image);
			softgpu_image_deinit(&image);
			check(elf_extent(file.bytes, file.size) >= ELF_HEADER_SIZE);
		}
		file.bytes[i] = before;
	}
	check(n_taken > 0 && n_taken < tables * sizeof(values));
}

TEST(extent_of_impossible_tables_is_no_image)
{
	CLEAN_FILE file = standin();
	Elf64_Shdr section;
	Elf64_Ehdr header;

	memcpy(&header, file.bytes, sizeof(header));
	memcpy(&section, file.bytes + header.e_shoff + 2 * sizeof(section),
		sizeof(section));
	section.sh_size = UINT64_MAX - 16;
	memcpy(file.bytes + header.e_shoff + 2 * sizeof(section), &section,
		sizeof(section));
	check_eq(elf_extent(file.bytes, file.size), SIZE_MAX);
	section.sh_type = SHT_NOBITS; /* has no bytes in the file */
	memcpy(file.bytes + header.e_shoff + 2 * sizeof(section), &section,
		sizeof(section));
	check_eq(elf_extent(file.bytes, file.size), file.size);
}

TEST(elf_files_of_other_machines_have_no_ptx)
{
	CLEAN_FILE file = standin();
	struct softgpu_image image;
	char text[MACHINE_CODE_TEXT_MAX];
	Elf64_Half machine = EM_X86_64;

	memcpy(file.bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	check_eq(select_copy(file.bytes, file.size, &image), SOFTGPU_IMAGE_E_NO_BINARY);
	machine_code_describe(file.bytes, file.size, text);
	check_str(text, "");
}

/* Adds a file as nvcc adds that of ptxas. */
static void add_file(struct builder *b, unsigned int arch, uint64_t flags,
	enum builder_packing packing, const struct file *file)
{
	builder_add_bytes(
		b, FATBIN_KIND_CUBIN, arch, flags, 18, packing, file->bytes, file->size);
}

static struct file standin_of(const char *text)
{
	struct file file;

	check(!standin_new(90, text, strlen(text), "", &file.bytes, &file.size));
	return file;
}

/* The text that is chosen from a container, or the condition that is the reason. */
static void chooses(const struct builder *b, unsigned int below, const char *text)
{
	struct softgpu_image image;

	check_eq(softgpu_image_select(b->bytes, b->size, CC, below, &image), 0);
	check_str(image.text, text);
	check_eq(image.size, strlen(text));
	softgpu_image_deinit(&image);
}

#define BUILDER(_b)                                                                      \
	__attribute__((__cleanup__(builder_deinit))) struct builder _b;                  \
	builder_init(&_b)

TEST(standin_in_a_container_is_taken)
{
	CLEAN_FILE file = standin();

	for (int packing = BUILDER_PLAIN; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		builder_add(&b, FATBIN_KIND_CUBIN, 100, 0, 18, packing, "\177ELF");
		add_file(&b, 90, 0, packing, &file);
		builder_close(&b);
		chooses(&b, 0, PTX);
	}
}

TEST(large_standin_in_a_container_is_taken)
{
	static char text[1000000];
	__attribute__((__cleanup__(file_deinit))) struct file file;

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = 'a' + i * i % 23;
	file = standin_of(text);
	for (int packing = BUILDER_PLAIN; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		add_file(&b, 90, 0, packing, &file);
		builder_close(&b);
		chooses(&b, 0, text);
		check(softgpu_image_text_size(b.bytes, b.size, CC) > strlen(text));
		check_eq(softgpu_image_text_size(b.bytes, b.size, 89), 0);
	}
}

TEST(standins_and_ptx_of_a_container_are_of_one_order)
{
	CLEAN_FILE ninety = standin_of("ninety");
	CLEAN_FILE specific = standin_of("specific");
	CLEAN_FILE high = standin_of("too high");
	struct softgpu_image image;

	BUILDER(b);
	builder_add(&b, FATBIN_KIND_PTX, 80, 0, 90, BUILDER_ZSTD, "eighty");
	add_file(&b, 90, 0, BUILDER_ZSTD, &ninety);
	add_file(&b, 100, FATBIN_FLAG_ARCH, BUILDER_ZSTD, &specific);
	add_file(&b, 130, 0, BUILDER_ZSTD, &high);
	builder_add(&b, FATBIN_KIND_PTX, 100, 0, 90, BUILDER_ZSTD, "hundred");
	builder_close(&b);
	chooses(&b, 0, "hundred");
	chooses(&b, 100, "ninety");
	chooses(&b, 90, "eighty");
	check_eq(softgpu_image_select(b.bytes, b.size, CC, 80, &image),
		SOFTGPU_IMAGE_E_NO_BINARY);
	add_file(&b, CC, FATBIN_FLAG_ARCH, BUILDER_LZ4, &specific);
	builder_close(&b);
	chooses(&b, 0, "specific");
}

/* Its head says that it is a stand-in, and the rest is missing or wrong. */
TEST(damaged_standin_in_a_container_is_no_image)
{
	CLEAN_FILE file = standin();
	struct softgpu_image image;
	Elf64_Half machine = EM_X86_64;

	check(standin_begins(file.bytes, file.size));
	memcpy(file.bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	for (int packing = BUILDER_PLAIN; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		add_file(&b, 90, 0, packing, &file);
		builder_close(&b);
		check_eq(softgpu_image_select(b.bytes, b.size, CC, 0, &image),
			SOFTGPU_IMAGE_E_INVALID);
	}
}

/* Machine code is not unpacked, so that damage in it does not matter. */
TEST(damaged_machine_code_in_a_container_is_passed_over)
{
	struct softgpu_image image;

	for (int packing = BUILDER_LZ4; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		builder_add(
			&b, FATBIN_KIND_CUBIN, 90, 0, 18, packing, "\177ELF and more");
		memset(b.bytes + b.size - 24, 0xff, 24);
		builder_close(&b);
		check_eq(softgpu_image_select(b.bytes, b.size, CC, 0, &image),
			SOFTGPU_IMAGE_E_NO_BINARY);
		builder_add(&b, FATBIN_KIND_PTX, 75, 0, 90, packing, PTX);
		builder_close(&b);
		chooses(&b, 0, PTX);
	}
}

TEST(first_bytes_of_an_entry_are_those_of_all)
{
	struct fatbin_entry entry;
	struct fatbin fatbin;
	char bytes[64];
	size_t size;

	for (int packing = BUILDER_PLAIN; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		builder_add(&b, FATBIN_KIND_PTX, 90, 0, 90, packing, PTX PTX PTX);
		builder_add(&b, FATBIN_KIND_PTX, 90, 0, 90, packing, "1234567");
		builder_close(&b);
		check_eq(fatbin_init(&fatbin, b.bytes, b.size), 0);
		check_eq(fatbin_next(&fatbin, &entry), 0);
		check_eq(fatbin_peek(&entry, bytes, sizeof(bytes), &size), 0);
		check_eq(size, sizeof(bytes));
		check(!memcmp(bytes, PTX PTX PTX, sizeof(bytes)));
		check_eq(fatbin_next(&fatbin, &entry), 0);
		check_eq(fatbin_peek(&entry, bytes, sizeof(bytes), &size), 0);
		check_eq(size, 8);
		check_str(bytes, "1234567");
	}
}

/* A cubin: the names of its sections say which kernels it has. */
static struct file cubin(unsigned int arch, const char *kernel, const char *other)
{
	static const char room[200];
	struct file file;
	Elf64_Shdr *sections;
	char *names;

	check(!standin_new(arch, room, sizeof(room), "", &file.bytes, &file.size));
	sections = (Elf64_Shdr *)(file.bytes + sizeof(Elf64_Ehdr));
	names = (char *)file.bytes + sections[2].sh_offset;
	memset(names, 0, 200);
	strcpy(names + 1, kernel);
	strcpy(names + 101, other);
	sections[1].sh_offset = sections[2].sh_offset;
	sections[1].sh_size = 200;
	sections[1].sh_name = 0;
	sections[2].sh_name = 1;
	sections[3].sh_name = 101;
	return file;
}

TEST(message_names_architectures_and_a_kernel)
{
	CLEAN_FILE one = cubin(90, ".text.add", ".nv.info");
	CLEAN_FILE two = cubin(75, ".text.a\nb", ".text.c");
	char text[MACHINE_CODE_TEXT_MAX];

	machine_code_describe(one.bytes, one.size, text);
	check_str(text, "machine code for sm_90 (kernel add)");
	machine_code_describe(two.bytes, two.size, text);
	check_str(text, "machine code for sm_75 (kernel a?b and 1 more)");
}

TEST(message_names_the_architectures_of_a_container)
{
	char text[MACHINE_CODE_TEXT_MAX];

	BUILDER(b);
	builder_add(&b, FATBIN_KIND_CUBIN, 80, 0, 0, BUILDER_ZSTD, "no ELF file");
	builder_add(&b, FATBIN_KIND_CUBIN, 90, 0, 0, BUILDER_PLAIN, "\177ELF");
	builder_add(&b, FATBIN_KIND_CUBIN, 80, 0, 0, BUILDER_PLAIN, "\177ELF");
	builder_close(&b);
	machine_code_describe(b.bytes, b.size, text);
	check_str(text, "machine code for sm_80, sm_90");
}

TEST(message_about_many_architectures_is_short)
{
	char text[MACHINE_CODE_TEXT_MAX];

	BUILDER(b);
	for (unsigned int i = 0; i < 40; i++)
		builder_add(
			&b, FATBIN_KIND_CUBIN, UINT32_MAX - i, 0, 0, BUILDER_PLAIN, "x");
	builder_close(&b);
	machine_code_describe(b.bytes, b.size, text);
	check(strstr(text, "sm_4294967295, sm_4294967294"));
	check(strlen(text) < MACHINE_CODE_TEXT_MAX);
}
