/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config edit: changes one key in the text of a configuration
 *
 * Comments, order and blank lines stay as their author has written them. Lines are read
 * as config.c and inih read those of a text that has no mistakes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpud/config-edit.h"
#include "vgpu/error.h"

static const char blanks[] = " \t\r\v\f";

/* Where in a text the section begins, and the line of the key, if it has one. */
struct spot {
	const char *head_end; /* the line below the head; NULL: no such section */
	const char *line;     /* NULL: none */
	const char *line_end;
};

static bool is_head(const char *line)
{
	line += strspn(line, blanks);
	return *line == '[' && line[strcspn(line, "]\n")] == ']';
}

static bool is_head_of(const char *line, const char *section)
{
	const size_t size = strlen(section);

	line += strspn(line, blanks);
	return strcspn(line, "]\n") == size + 1 && !strncmp(line + 1, section, size);
}

static bool is_key(const char *line, const char *key)
{
	size_t size;

	line += strspn(line, blanks);
	size = strcspn(line, "=:\n");
	if (!line[size] || line[size] == '\n')
		return false;
	while (size && strchr(blanks, line[size - 1]))
		size--;
	return size == strlen(key) && !strncmp(line, key, size);
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static struct spot find(const char *text, const char *section, const char *key)
{
	struct spot spot = { NULL };
	bool is_inside = false;

	for (const char *line = text; *line; line = next_line(line)) {
		if (is_head(line)) {
			is_inside = !spot.head_end && is_head_of(line, section);
			if (is_inside)
				spot.head_end = next_line(line);
		} else if (is_inside && !spot.line && is_key(line, key)) {
			spot.line = line;
			spot.line_end = next_line(line);
		}
	}
	return spot;
}

/* inih takes " ;" as the beginning of a comment, and drops blanks at both ends. */
static bool is_value(const char *value)
{
	const size_t size = strlen(value);

	for (size_t i = 0; i < size; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == ';' || value[i] == 0x7f)
			return false;
	return !size || (value[0] != ' ' && value[size - 1] != ' ');
}

int config_edit(const char *text, const char *section, const char *key, const char *value,
	char **editedp)
{
	const struct spot spot = find(text, section, key);
	const char *end = spot.line ? spot.line : spot.head_end, *rest;
	bool is_open;
	int n;

	if (!spot.head_end)
		return CONFIG_EDIT_E_ABSENT;
	if (!is_value(value))
		return CONFIG_EDIT_E_VALUE;
	rest = spot.line ? spot.line_end : spot.head_end;
	/* The last line may lack its newline. */
	is_open = *value && end > text && end[-1] != '\n';
	n = asprintf(editedp, "%.*s%s%s%s%s%s%s", (int)(end - text), text,
		is_open ? "\n" : "", *value ? key : "", *value ? " = " : "", value,
		*value ? "\n" : "", rest);
	return n < 0 ? vgpu_error_origin(-ENOMEM) : 0;
}
