/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Config show: the settings of a configuration as text, and which of them can change
 * while a virtual machine is connected
 */

#include <stdbool.h>
#include <stddef.h>

#include "vgpud/config.h"

/* Longest value: the path of a memory file. */
#define CONFIG_SHOW_VALUE_MAX 512
/* More than the keys of [vm NAME]. */
#define CONFIG_SHOW_MAX 32

struct config_setting {
	const char *key;
	char value[CONFIG_SHOW_VALUE_MAX];
	bool is_live;
};

/* Lists all keys of a section that have a value, also by default. Return: their number.
 */
size_t config_show(
	const struct config_vm *vm, struct config_setting list[CONFIG_SHOW_MAX]);

/* Whether a key of [vm NAME], or of [vgpud], exists and may change while virtual machines
 * are connected. */
bool config_is_live(bool is_vm, const char *key);

/* Writes a size as the configuration has it: "4G". */
void config_show_size(uint64_t size, char *text, size_t text_size);
