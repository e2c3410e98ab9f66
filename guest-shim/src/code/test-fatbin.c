/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a fat binary the devices get what they can use
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "code/fatbin.h"

#define PTX 1
#define ELF 2
#define LTO 8
#define HEADER_SIZE 64

static uint8_t bytes[4096], copy[4096];
static struct shim_processors processors;
static struct shim_fatbin fatbin;

static void put(uint64_t offset, const void *value, size_t size)
{
	memcpy(bytes + offset, value, size);
}

static void put_size(void)
{
	const uint64_t size = fatbin.size - 16;

	put(8, &size, sizeof(size));
}

/* A container with a header alone. */
static void begin(uint32_t major, uint32_t minor)
{
	const uint32_t magic = 0xba55ed50;
	const uint16_t version = 1, header_size = 16;

	memset(bytes, 0, sizeof(bytes));
	put(0, &magic, sizeof(magic));
	put(4, &version, sizeof(version));
	put(6, &header_size, sizeof(header_size));
	processors = (struct shim_processors){ 1, { { major, minor } } };
	fatbin = (struct shim_fatbin){ bytes, 16, &processors };
	put_size();
}

/* An entry in which each byte of the payload identifies its processor. */
static void add(uint16_t kind, uint32_t architecture, uint64_t payload_size)
{
	const uint16_t version = 0x101;
	const uint32_t header_size = HEADER_SIZE;

	put(fatbin.size, &kind, sizeof(kind));
	put(fatbin.size + 2, &version, sizeof(version));
	put(fatbin.size + 4, &header_size, sizeof(header_size));
	put(fatbin.size + 8, &payload_size, sizeof(payload_size));
	put(fatbin.size + 28, &architecture, sizeof(architecture));
	memset(bytes + fatbin.size + HEADER_SIZE, (int)architecture, payload_size);
	fatbin.size += HEADER_SIZE + payload_size;
	put_size();
}

/* Whether the copy has the entries of just these processors, in this order. */
static void check_copy(const uint32_t *expected, uint32_t n)
{
	uint64_t size = shim_fatbin_usable_size(&fatbin), offset = 16, inner;

	memset(copy, 0xee, sizeof(copy));
	shim_fatbin_copy_usable(&fatbin, copy, size);
	check_eq(copy[size], 0xee);
	memcpy(&inner, copy + 8, sizeof(inner));
	check_eq(inner, size - 16);
	check(!memcmp(copy, bytes, 8));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t architecture;
		uint64_t payload_size;

		memcpy(&architecture, copy + offset + 28, sizeof(architecture));
		memcpy(&payload_size, copy + offset + 8, sizeof(payload_size));
		check_eq(architecture, expected[i]);
		check_eq(copy[offset + HEADER_SIZE], (uint8_t)architecture);
		check_eq(copy[offset + HEADER_SIZE + payload_size - 1],
			(uint8_t)architecture);
		offset += HEADER_SIZE + payload_size;
	}
	check_eq(offset, size);
}

TEST(code_for_other_processors_is_left_out)
{
	begin(8, 6);
	add(ELF, 75, 8);
	add(ELF, 80, 16);
	add(ELF, 86, 24);
	add(ELF, 89, 8);
	add(ELF, 90, 8);
	check_copy((const uint32_t[]){ 80, 86 }, 2);
}

TEST(ptx_is_for_every_processor_that_is_not_older)
{
	begin(8, 6);
	add(PTX, 50, 8);
	add(PTX, 75, 8);
	add(PTX, 86, 8);
	add(PTX, 87, 8);
	add(PTX, 90, 8);
	add(ELF, 120, 8);
	check_copy((const uint32_t[]){ 50, 75, 86 }, 3);
}

TEST(minor_versions_have_one_digit)
{
	begin(12, 1);
	add(ELF, 100, 8);
	add(ELF, 120, 8);
	add(ELF, 121, 8);
	add(ELF, 122, 8);
	add(PTX, 121, 8);
	check_copy((const uint32_t[]){ 120, 121, 121 }, 3);
}

TEST(entries_that_any_of_several_devices_can_use_are_kept)
{
	begin(7, 5);
	processors.n = 2;
	processors.capabilities[1].major = 9;
	add(ELF, 75, 8);
	add(ELF, 80, 8);
	add(ELF, 90, 8);
	add(PTX, 80, 8);
	check_copy((const uint32_t[]){ 75, 90, 80 }, 3);
}

TEST(kinds_that_are_not_known_stay)
{
	begin(8, 0);
	add(LTO, 120, 8);
	add(ELF, 120, 8);
	add(64, 30, 8);
	check_copy((const uint32_t[]){ 120, 30 }, 2);
}

TEST(where_nothing_is_left_all_is_sent)
{
	begin(8, 0);
	add(ELF, 90, 8);
	add(PTX, 90, 8);
	check_copy((const uint32_t[]){ 90, 90 }, 2);
	begin(8, 0);
	check_eq(shim_fatbin_usable_size(&fatbin), 16);
}

TEST(without_devices_all_is_sent)
{
	begin(8, 0);
	processors.n = 0;
	add(ELF, 90, 8);
	add(PTX, 50, 8);
	check_copy((const uint32_t[]){ 90, 50 }, 2);
}

TEST(damaged_containers_are_sent_as_they_are)
{
	const uint64_t beyond = UINT64_MAX;
	const uint32_t none = 0;

	begin(8, 0);
	add(ELF, 90, 8);
	add(ELF, 80, 8);
	put(16 + 8, &beyond, sizeof(beyond));
	check_eq(shim_fatbin_usable_size(&fatbin), fatbin.size);
	begin(8, 0);
	add(ELF, 80, 8);
	add(ELF, 90, 8);
	put(16 + HEADER_SIZE + 8 + 4, &none, sizeof(none));
	check_eq(shim_fatbin_usable_size(&fatbin), fatbin.size);
	shim_fatbin_copy_usable(&fatbin, copy, fatbin.size);
	check(!memcmp(copy, bytes, fatbin.size));
	fatbin.size -= 8;
	check_eq(shim_fatbin_usable_size(&fatbin), fatbin.size);
}

/* The program changes it meanwhile: it gets garbage, and no memory is corrupted. */
TEST(no_more_is_written_than_was_measured)
{
	const uint32_t architecture = 80;
	uint64_t size;

	begin(8, 0);
	add(ELF, 80, 8);
	add(ELF, 90, 800);
	size = shim_fatbin_usable_size(&fatbin);
	check_eq(size, 16 + HEADER_SIZE + 8);
	put(16 + HEADER_SIZE + 8 + 28, &architecture, sizeof(architecture));
	memset(copy, 0xee, sizeof(copy));
	shim_fatbin_copy_usable(&fatbin, copy, size);
	check_eq(copy[size], 0xee);
}
