/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the walk over objects and archives
 */

#include <ar.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/object.h"
#include "fatbin/test-builder.h"
#include "test.h"

#define FILE_MAX 8192
#define NAMES "\0__nv_relfatbin\0.nv_fatbin\0.text\0.strings"
#define N_SECTIONS 5

/* An object: names, code for the host, and two sections with device code. */
struct object {
	uint8_t bytes[FILE_MAX];
	size_t size;
};

struct found {
	uint32_t n;
	size_t total;
	int answer;
};

static int count(void *data, const void *container, size_t size)
{
	struct found *found = data;

	check(fatbin_is_container(container, size));
	found->n++;
	found->total += size;
	return found->answer;
}

/* A container with PTX of a length that makes its size no multiple of 8 here. */
static size_t put_container(uint8_t *to, const char *text)
{
	struct builder builder;
	size_t size;

	builder_init(&builder);
	builder_add(&builder, FATBIN_KIND_PTX, 75, 0, 90, BUILDER_PLAIN, text);
	builder_close(&builder);
	size = builder.size;
	memcpy(to, builder.bytes, size);
	builder_deinit(&builder);
	return size;
}

static Elf64_Shdr *section(struct object *object, unsigned int i)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)object->bytes;

	return (Elf64_Shdr *)(object->bytes + header->e_shoff) + i;
}

static void add_section(struct object *object, unsigned int i, uint32_t name,
	uint32_t type, const void *bytes, size_t size)
{
	*section(object, i) = (Elf64_Shdr){
		.sh_name = name,
		.sh_type = type,
		.sh_offset = object->size,
		.sh_size = size,
	};
	memcpy(object->bytes + object->size, bytes, size);
	object->size += (size + 7) & ~(size_t)7;
}

static void object_init(struct object *object)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)object->bytes;
	uint8_t containers[2048];
	size_t size;

	memset(object, 0, sizeof(*object));
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_shoff = sizeof(*header);
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = N_SECTIONS;
	header->e_shstrndx = 1;
	object->size = sizeof(*header) + N_SECTIONS * sizeof(Elf64_Shdr);
	add_section(object, 1, 33, SHT_STRTAB, NAMES, sizeof(NAMES));
	add_section(object, 2, 27, SHT_PROGBITS, "code", 4);
	size = put_container(containers, ".version 9.0\n");
	size += put_container(containers + size, ".version 9.0\n.target sm_75\n");
	add_section(object, 3, 1, SHT_PROGBITS, containers, size);
	size = put_container(containers, ".version 9.0\n");
	add_section(object, 4, 16, SHT_PROGBITS, containers, size);
}

/* Walks over an exact copy on the heap, where a sanitizer sees each byte too far. */
static int walk(const void *bytes, size_t size, bool is_archive, struct found *found)
{
	void *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, bytes, size);
	if (is_archive)
		r = archive_walk(copy, size, count, found);
	else
		r = object_walk(copy, size, count, found);
	free(copy);
	return r;
}

static void check_walk(const struct object *object, int result, uint32_t n)
{
	struct found found = {};

	check_eq(walk(object->bytes, object->size, false, &found), result);
	check_eq(found.n, n);
}

TEST(containers_of_all_sections_are_found)
{
	struct object object;

	object_init(&object);
	check_walk(&object, 0, 3);
}

TEST(the_walk_ends_when_it_is_told_to)
{
	struct found found = { .answer = 7 };
	struct object object;

	object_init(&object);
	check_eq(walk(object.bytes, object.size, false, &found), 7);
	check_eq(found.n, 1);
}

TEST(numbers_that_do_not_fit_the_header_are_in_the_first_section)
{
	struct object object;

	object_init(&object);
	((Elf64_Ehdr *)object.bytes)->e_shnum = 0;
	((Elf64_Ehdr *)object.bytes)->e_shstrndx = SHN_XINDEX;
	section(&object, 0)->sh_size = N_SECTIONS;
	section(&object, 0)->sh_link = 1;
	check_walk(&object, 0, 3);
	section(&object, 0)->sh_size = 0xffffffff;
	check_walk(&object, OBJECT_E_INVALID, 3);
}

TEST(an_object_that_is_cut_is_invalid)
{
	struct object object;
	struct found found;
	size_t end;

	object_init(&object);
	end = section(&object, 4)->sh_offset + section(&object, 4)->sh_size;
	for (size_t size = 0; size < end; size++) {
		found = (struct found){};
		check_eq(walk(object.bytes, size, false, &found), OBJECT_E_INVALID);
	}
}

/* What damaged numbers give is not checked, only that nothing is read outside. */
TEST(damaged_bytes_are_survived)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct object object, damaged;
	struct found found;

	object_init(&object);
	for (size_t i = 0; i < object.size; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			damaged = object;
			damaged.bytes[i] = values[k];
			found = (struct found){};
			walk(damaged.bytes, damaged.size, false, &found);
		}
}

TEST(a_section_that_reaches_beyond_the_file_is_invalid)
{
	struct object object;

	object_init(&object);
	section(&object, 4)->sh_size = UINT64_MAX;
	check_walk(&object, OBJECT_E_INVALID, 2);
	object_init(&object);
	section(&object, 4)->sh_offset = UINT64_MAX - 8;
	check_walk(&object, OBJECT_E_INVALID, 2);
	object_init(&object);
	((Elf64_Ehdr *)object.bytes)->e_shoff = UINT64_MAX - 8;
	check_walk(&object, OBJECT_E_INVALID, 0);
}

static size_t add_member(uint8_t *to, const char *size, const void *bytes, size_t n)
{
	char header[sizeof(struct ar_hdr) + 1];

	snprintf(header, sizeof(header), "%-48s%-10.10s%s", "member.o/", size, ARFMAG);
	memcpy(to, header, sizeof(struct ar_hdr));
	memcpy(to + sizeof(struct ar_hdr), bytes, n);
	return sizeof(struct ar_hdr) + n;
}

static size_t archive_init(uint8_t *to, const struct object *object)
{
	size_t size = SARMAG;
	char number[16];

	memcpy(to, ARMAG, SARMAG);
	size += add_member(to + size, "5", "text\n\n", 6);
	snprintf(number, sizeof(number), "%zu", object->size);
	for (int i = 0; i < 2; i++)
		size += add_member(to + size, number, object->bytes, object->size);
	return size;
}

TEST(containers_of_all_objects_of_an_archive_are_found)
{
	static uint8_t archive[4 * FILE_MAX];
	struct found found = {};
	struct object object;
	size_t size;

	object_init(&object);
	size = archive_init(archive, &object);
	check_eq(walk(archive, size, true, &found), 0);
	check_eq(found.n, 6);
	/* An archive of nothing is one. */
	found = (struct found){};
	check_eq(walk(archive, SARMAG, true, &found), 0);
	check_eq(found.n, 0);
	check_eq(walk(archive, SARMAG - 1, true, &found), OBJECT_E_INVALID);
	check_eq(walk(archive, size - 1, true, &found), OBJECT_E_INVALID);
	check_eq(walk(archive, SARMAG + 10, true, &found), OBJECT_E_INVALID);
	check_eq(walk(object.bytes, object.size, true, &found), OBJECT_E_INVALID);
}

TEST(a_member_of_a_wrong_size_makes_an_archive_invalid)
{
	static const char *const sizes[] = { "", "x", "9999999999", "-1", "6x" };
	struct found found = {};
	uint8_t archive[256];

	memcpy(archive, ARMAG, SARMAG);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_eq(walk(archive,
				 SARMAG + add_member(archive + SARMAG, sizes[i],
						  "text\n\n", 6),
				 true, &found),
			OBJECT_E_INVALID);
}
