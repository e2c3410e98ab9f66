/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Config edit: changes one key in the text of a configuration, and nothing else in it
 */

enum {
	_CONFIG_EDIT_E_SUCCESS,
	CONFIG_EDIT_E_ABSENT, /* there is no such section */
	CONFIG_EDIT_E_VALUE,  /* the value has characters that end it in a file */
};

/*
 * Replaces the line of a key, or adds one below the head of the section.
 *
 * @section:	without its brackets
 * @value:	empty: removes the line
 * @editedp:	the whole text, to be freed
 *
 * Return: 0, CONFIG_EDIT_E_* or -errno.
 */
int config_edit(const char *text, const char *section, const char *key, const char *value,
	char **editedp);
