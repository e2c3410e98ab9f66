/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binary: one container, and what the devices can use of it
 *
 * Compiled code runs on processors of the same major version and the same or a higher
 * minor one; PTX is compiled for any that is not older (CUDA C++ Programming Guide,
 * "Application Compatibility"). Code for one model only ("a" and "f" of an architecture)
 * keeps to narrower rules: to send it where these allow it is harmless.
 */

#include <stdbool.h>
#include <string.h>

#include "code/fatbin.h"

enum {
	KIND_PTX = 1,
	KIND_ELF = 2,
};

struct entry {
	uint16_t kind;
	uint16_t version;
	uint32_t header_size;
	uint64_t payload_size;
	uint32_t compressed_size;
	uint32_t options;
	uint32_t format_version;
	uint32_t architecture; /* 86 is 8.6 */
};

struct header {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint64_t entries_size;
};

static bool is_usable(const struct shim_fatbin *fatbin, const struct entry *entry)
{
	const uint32_t major = entry->architecture / 10, minor = entry->architecture % 10;

	if (entry->kind != KIND_PTX && entry->kind != KIND_ELF)
		return true;
	for (uint32_t i = 0; i < fatbin->processors->n; i++) {
		const uint32_t own_major = fatbin->processors->capabilities[i].major;
		const uint32_t own_minor = fatbin->processors->capabilities[i].minor;

		if ((major == own_major && minor <= own_minor) ||
			(entry->kind == KIND_PTX && major < own_major))
			return true;
	}
	return false;
}

/*
 * Steps to the next entry.
 *
 * Return: its size, 0 at the end, or where the rest is no entry.
 */
static uint64_t next_entry(
	const struct shim_fatbin *fatbin, uint64_t offset, struct entry *entry)
{
	const uint64_t left = fatbin->size - offset;

	if (left < sizeof(*entry))
		return 0;
	memcpy(entry, fatbin->bytes + offset, sizeof(*entry));
	if (entry->header_size < sizeof(*entry) || entry->header_size > left ||
		entry->payload_size > left - entry->header_size)
		return 0;
	return entry->header_size + entry->payload_size;
}

static uint64_t first_entry(const struct shim_fatbin *fatbin)
{
	struct header header;

	memcpy(&header, fatbin->bytes, sizeof(header));
	return header.size;
}

uint64_t shim_fatbin_usable_size(const struct shim_fatbin *fatbin)
{
	const uint64_t first = first_entry(fatbin);
	uint64_t usable = first, offset = first, size;
	struct entry entry;

	while ((size = next_entry(fatbin, offset, &entry))) {
		if (is_usable(fatbin, &entry))
			usable += size;
		offset += size;
	}
	return offset == fatbin->size && usable > first ? usable : fatbin->size;
}

void shim_fatbin_copy_usable(const struct shim_fatbin *fatbin, uint8_t *to, uint64_t size)
{
	uint64_t done = first_entry(fatbin), offset = done, entry_size;
	struct header header;
	struct entry entry;

	if (size == fatbin->size) {
		memcpy(to, fatbin->bytes, size);
		return;
	}
	memcpy(to, fatbin->bytes, done < size ? done : size);
	memcpy(&header, to, sizeof(header));
	header.entries_size = size - done;
	memcpy(to, &header, sizeof(header));
	while ((entry_size = next_entry(fatbin, offset, &entry))) {
		/* It may have changed since it was measured, if the program is wrong. */
		if (is_usable(fatbin, &entry) && entry_size <= size - done) {
			memcpy(to + done, fatbin->bytes + offset, entry_size);
			done += entry_size;
		}
		offset += entry_size;
	}
	memset(to + done, 0, size - done);
}
