/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a configuration as text
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpud/config-show.h"

static struct config_setting list[CONFIG_SHOW_MAX];

static size_t show(const char *text)
{
	struct config *config;
	char *error;
	size_t n;

	check_eq(config_new_from_text(&config, "text", text, &error), 0);
	n = config_show(config_vm_at(config, 0), list);
	config_free(config);
	return n;
}

/* Return: the value of a key, or NULL. */
static const char *value_of(size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].key, key))
			return list[i].value;
	return NULL;
}

TEST(values_are_those_of_the_file_or_defaults)
{
	size_t n = show("[vm a]\nsocket = /a\ndevice-memory = 3G\nsocket-mode = 600\n"
			"socket-group = 12\nhandles = 100\ncpu = 1024\n");

	check_str(value_of(n, "transport"), "ivshmem");
	check_str(value_of(n, "socket"), "/a");
	check_str(value_of(n, "device-memory"), "3G");
	check_str(value_of(n, "size"), "4G");
	check_str(value_of(n, "handles"), "100");
	check_str(value_of(n, "cpu"), "1024");
	check_str(value_of(n, "max-threads"), "1024");
	check_str(value_of(n, "max-processes"), "31");
	check_str(value_of(n, "socket-mode"), "0600");
	check_str(value_of(n, "socket-group"), "12");
}

TEST(keys_without_a_value_are_left_out)
{
	size_t n = show("[vm a]\nsocket = /a\n");

	check(!value_of(n, "device-memory"));
	check(!value_of(n, "host-memory"));
	check(!value_of(n, "cpu"));
	check(!value_of(n, "memory"));
	check(!value_of(n, "memory-owner"));
	check(!value_of(n, "socket-group"));
}

/* So none is shown that the parser refuses or reads differently. */
TEST(what_is_shown_is_a_section_that_is_shown_alike)
{
	static const char *const sections[] = {
		"[vm a]\ntransport = plain\nmemory = /m\nmemory-owner = 0\n",
		"[vm a]\nsocket = /a\nsocket-group = 5\nhost-memory = 1025M\n"
		"device-memory = 1234567\nsoftgpu-launch-timeout = 9\nhugepages = "
		"hugetlb\n",
	};
	struct config_setting first[CONFIG_SHOW_MAX];
	char text[4096];
	size_t n, used;

	for (size_t s = 0; s < sizeof(sections) / sizeof(*sections); s++) {
		n = show(sections[s]);
		memcpy(first, list, sizeof(first));
		used = (size_t)snprintf(text, sizeof(text), "[vm a]\n");
		for (size_t i = 0; i < n; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
				"%s = %s\n", list[i].key, list[i].value);
		check_eq(show(text), n);
		for (size_t i = 0; i < n; i++)
			check_str(list[i].value, first[i].value);
	}
}

TEST(sizes_have_the_largest_unit_that_divides_them)
{
	static const struct {
		uint64_t size;
		const char *text;
	} sizes[] = { { 0, "0" }, { 1, "1" }, { 1023, "1023" }, { 1024, "1K" },
		{ 1536, "1536" }, { 3ull << 20, "3M" }, { 1025ull << 20, "1025M" },
		{ 4ull << 40, "4T" }, { 1ull << 60, "1048576T" },
		{ UINT64_MAX, "18446744073709551615" } };
	char text[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		config_show_size(sizes[i].size, text, sizeof(text));
		check_str(text, sizes[i].text);
	}
}

TEST(live_keys_are_those_of_a_connected_vm)
{
	check(config_is_live(true, "device-memory"));
	check(!config_is_live(true, "socket"));
	check(!config_is_live(true, "size"));
	check(!config_is_live(true, "nonsense"));
	check(!config_is_live(true, "log-level"));
	check(config_is_live(false, "log-level"));
	check(!config_is_live(false, "worker"));
	check(!config_is_live(false, "device-memory"));
}
