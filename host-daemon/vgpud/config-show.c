/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config show: the settings of a configuration as text
 *
 * What a connected virtual machine was given at its start (socket, memory and their
 * sizes) would take its device away if it changed; all else is applied to it by a reload.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "vgpud/config-show.h"

enum kind {
	KIND_SIZE,    /* uint64_t */
	KIND_LIMIT,   /* the same, 0: not shown */
	KIND_NUMBER,  /* unsigned int */
	KIND_PERCENT, /* the same, 0: not shown */
	KIND_MODE,    /* mode_t */
	KIND_GROUP,   /* gid_t, -1: not shown */
	KIND_OWNER,   /* uid_t, -1: not shown */
	KIND_STRING,  /* char *, NULL: not shown */
	KIND_TRANSPORT,
	KIND_HUGEPAGES,
	KIND_PRIORITY,
	KIND_YES, /* bool */
};

static const struct row {
	const char *key;
	size_t offset;
	enum kind kind;
	bool is_live;
} rows[] = {
	{ "transport", offsetof(struct config_vm, transport), KIND_TRANSPORT, false },
	{ "socket", offsetof(struct config_vm, socket), KIND_STRING, false },
	{ "memory", offsetof(struct config_vm, memory), KIND_STRING, false },
	{ "memory-owner", offsetof(struct config_vm, memory_owner), KIND_OWNER, false },
	{ "size", offsetof(struct config_vm, size), KIND_SIZE, false },
	{ "hugepages", offsetof(struct config_vm, hugepages), KIND_HUGEPAGES, false },
	{ "devices", offsetof(struct config_vm, devices), KIND_STRING, true },
	{ "device-memory", offsetof(struct config_vm, device_memory), KIND_LIMIT, true },
	{ "evictable", offsetof(struct config_vm, evictable), KIND_YES, true },
	{ "weight", offsetof(struct config_vm, weight), KIND_NUMBER, true },
	{ "priority", offsetof(struct config_vm, priority), KIND_PRIORITY, true },
	{ "paused", offsetof(struct config_vm, paused), KIND_YES, true },
	{ "image-memory", offsetof(struct config_vm, image_memory), KIND_SIZE, true },
	{ "image-store", offsetof(struct config_vm, image_store), KIND_SIZE, true },
	{ "host-memory", offsetof(struct config_vm, host_memory), KIND_LIMIT, true },
	{ "cpu", offsetof(struct config_vm, cpu), KIND_PERCENT, true },
	{ "copy-bandwidth", offsetof(struct config_vm, copy_bandwidth), KIND_LIMIT,
		true },
	{ "handles", offsetof(struct config_vm, handles), KIND_NUMBER, true },
	{ "max-threads", offsetof(struct config_vm, max_threads), KIND_NUMBER, true },
	{ "max-processes", offsetof(struct config_vm, max_processes), KIND_NUMBER, true },
	{ "process-rate", offsetof(struct config_vm, process_rate), KIND_NUMBER, true },
	{ "log-lines", offsetof(struct config_vm, log_lines), KIND_NUMBER, true },
	{ "softgpu-launch-timeout", offsetof(struct config_vm, softgpu_launch_timeout),
		KIND_NUMBER, true },
	{ "socket-mode", offsetof(struct config_vm, socket_mode), KIND_MODE, true },
	{ "socket-group", offsetof(struct config_vm, socket_group), KIND_GROUP, true },
};

static const size_t n_rows = sizeof(rows) / sizeof(*rows);

static_assert(sizeof(rows) / sizeof(*rows) == CONFIG_VM_KEYS, "those of config.c");
static_assert(CONFIG_VM_KEYS <= CONFIG_SHOW_MAX, "room for all");

const char *config_transport_name(enum config_transport transport)
{
	static const char *const names[_CONFIG_TRANSPORT_N] = {
		[CONFIG_IVSHMEM] = "ivshmem",
		[CONFIG_SOCKET] = "socket",
		[CONFIG_PLAIN] = "plain",
	};

	return names[transport];
}

const char *config_hugepages_name(enum config_hugepages hugepages)
{
	static const char *const names[_CONFIG_HUGEPAGES_N] = {
		[CONFIG_HUGEPAGES_NO] = "no",
		[CONFIG_HUGEPAGES_TRANSPARENT] = "transparent",
		[CONFIG_HUGEPAGES_HUGETLB] = "hugetlb",
	};

	return names[hugepages];
}

const char *config_priority_name(enum config_priority priority)
{
	static const char *const names[_CONFIG_PRIORITY_N] = {
		[CONFIG_PRIORITY_LOW] = "low",
		[CONFIG_PRIORITY_NORMAL] = "normal",
		[CONFIG_PRIORITY_HIGH] = "high",
	};

	return names[priority];
}

void config_show_size(uint64_t size, char *text, size_t text_size)
{
	static const char units[] = "KMGT";
	unsigned int unit = 0;

	while (unit < sizeof(units) - 1 && size && !(size % 1024)) {
		size /= 1024;
		unit++;
	}
	if (unit)
		snprintf(text, text_size, "%" PRIu64 "%c", size, units[unit - 1]);
	else
		snprintf(text, text_size, "%" PRIu64, size);
}

/* By number: a look-up of its name may ask the network. */
static bool show_id(unsigned int id, char *text, size_t size)
{
	if (id == (unsigned int)-1)
		return false;
	snprintf(text, size, "%u", id);
	return true;
}

static bool show_string(const char *string, char *text, size_t size)
{
	if (string)
		snprintf(text, size, "%s", string);
	return string;
}

/* Return: whether the key has a value. */
static bool show(const void *field, enum kind kind, char *text, size_t size)
{
	switch (kind) {
	case KIND_LIMIT:
		if (!*(const uint64_t *)field)
			return false;
		__attribute__((fallthrough));
	case KIND_SIZE:
		config_show_size(*(const uint64_t *)field, text, size);
		return true;
	case KIND_PERCENT:
		if (!*(const unsigned int *)field)
			return false;
		__attribute__((fallthrough));
	case KIND_NUMBER:
		snprintf(text, size, "%u", *(const unsigned int *)field);
		return true;
	case KIND_MODE:
		snprintf(text, size, "%04o", (unsigned int)*(const mode_t *)field);
		return true;
	case KIND_GROUP:
		return show_id(*(const gid_t *)field, text, size);
	case KIND_OWNER:
		return show_id(*(const uid_t *)field, text, size);
	case KIND_STRING:
		return show_string(*(char *const *)field, text, size);
	case KIND_TRANSPORT:
		return show_string(
			config_transport_name(*(const enum config_transport *)field),
			text, size);
	case KIND_HUGEPAGES:
		return show_string(
			config_hugepages_name(*(const enum config_hugepages *)field),
			text, size);
	case KIND_PRIORITY:
		return show_string(
			config_priority_name(*(const enum config_priority *)field), text,
			size);
	case KIND_YES:
		return show_string(*(const bool *)field ? "yes" : "no", text, size);
	}
	return false;
}

size_t config_show(
	const struct config_vm *vm, struct config_setting list[CONFIG_SHOW_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < n_rows; i++) {
		list[n].key = rows[i].key;
		list[n].is_live = rows[i].is_live;
		n += show((const char *)vm + rows[i].offset, rows[i].kind, list[n].value,
			sizeof(list[n].value));
	}
	return n;
}

bool config_is_live(bool is_vm, const char *key)
{
	static const char *const live[] = { "log-level", "warm-workers", "max-workers" };

	for (size_t i = 0; is_vm && i < n_rows; i++)
		if (!strcmp(rows[i].key, key))
			return rows[i].is_live;
	for (size_t i = 0; !is_vm && i < sizeof(live) / sizeof(*live); i++)
		if (!strcmp(live[i], key))
			return true;
	return false;
}
