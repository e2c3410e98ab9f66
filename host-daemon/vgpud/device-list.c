/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device list: which devices a VM has, and in which order
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"
#include "vgpu/handle.h"
#include "vgpud/device-list.h"

#define UUID_LENGTH 36
/* Hexadecimal digits that the beginning of a UUID has at least. */
#define UUID_START_MIN 4

/* Whether it is a UUID, or with a smaller `min` the beginning of one. */
static bool is_uuid(const char *text, size_t min)
{
	size_t n = strlen(text);

	if (n < min || n > UUID_LENGTH)
		return false;
	for (size_t i = 0; i < n; i++) {
		const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

static bool is_index(const char *text)
{
	const size_t n = strlen(text);

	return n && n <= 2 && strspn(text, "0123456789") == n &&
	       (n == 1 || *text != '0') && strtoul(text, NULL, 10) < VGPU_DEVICES_MAX;
}

static bool is_mig(const char *entry)
{
	return !strncmp(entry, "MIG-", 4);
}

static bool is_entry(const char *entry)
{
	if (!strncmp(entry, "GPU-", 4))
		return is_uuid(entry + 4, UUID_START_MIN);
	return is_mig(entry) ? is_uuid(entry + 4, UUID_LENGTH) : is_index(entry);
}

/* Whether both name one device, as far as the texts tell. */
static bool is_same(const char *a, const char *b)
{
	const size_t length_a = strlen(a), length_b = strlen(b);

	if (strncmp(a, "GPU-", 4))
		return !strcmp(a, b);
	return !strncmp(a, b, length_a < length_b ? length_a : length_b);
}

static int refuse(char *reason, size_t size, const char *format, const char *entry)
{
	snprintf(reason, size, format, entry);
	return -EINVAL;
}

/* One entry without blanks, its UUID in small letters. Return: false if it is longer
 * than any. */
static bool copy_entry(char *entry, size_t size, const char *text, size_t length)
{
	while (length && isblank((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length && isblank((unsigned char)text[length - 1]))
		length--;
	if (length >= size)
		return false;
	memcpy(entry, text, length);
	entry[length] = '\0';
	for (char *c = entry + (length < 4 ? length : 4); *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return true;
}

/* Whether the entry is one of the list, all of which are complete. */
static bool is_listed(const char *list, const char *entry)
{
	char other[48];

	for (const char *at = list; *at; at += *at == ',') {
		const size_t n = strcspn(at, ",");

		snprintf(other, sizeof(other), "%.*s", (int)n, at);
		if (is_same(other, entry))
			return true;
		at += n;
	}
	return false;
}

int device_list_parse(const char *text, char list[static DEVICE_LIST_MAX], char *reason,
	size_t reason_size)
{
	static const char wrong[] = "\"%s\" is not a device: an index from 0 on, "
				    "GPU-UUID, the beginning of one, or MIG-UUID";
	char entry[48];
	size_t used = 0, n;
	bool has_mig = false;

	list[0] = '\0';
	for (const char *at = text;; at += n + 1) {
		n = strcspn(at, ",");
		if (!copy_entry(entry, sizeof(entry), at, n) || !is_entry(entry))
			return refuse(reason, reason_size, wrong,
				n < sizeof(entry) ? entry : "a long word");
		if (is_listed(list, entry))
			return refuse(
				reason, reason_size, "\"%s\" is there twice", entry);
		if (used && (has_mig || is_mig(entry)))
			return refuse(reason, reason_size,
				"with \"%s\" there is more than the one MIG instance "
				"that a process can use",
				entry);
		has_mig |= is_mig(entry);
		if (used + strlen(entry) + 2 > DEVICE_LIST_MAX)
			return refuse(reason, reason_size,
				"the list ends before \"%s\": "
				"it is too long",
				entry);
		used += (size_t)snprintf(list + used, DEVICE_LIST_MAX - used, "%s%s",
			used ? "," : "", entry);
		if (!at[n])
			return 0;
	}
}

unsigned int device_list_count(const char *list)
{
	unsigned int n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}
