/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place: where in the program's source a line of PTX comes from
 *
 * A directive .loc applies to all instructions up to the next one; the parser ends it
 * with its line, too. What is inlined names the place of its call, which another .loc of
 * the function has described before if that was inlined itself.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/place.h"

struct position {
	unsigned long file, line, column;
};

struct loc {
	struct position at;
	bool is_inlined;
	struct position call; /* if it is */
};

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t\r");
}

static const char *next_line(const char *p)
{
	p = strchr(p, '\n');
	return p ? p + 1 : NULL;
}

/* Returns: what follows the directive that the line begins with, or NULL. */
static const char *directive(const char *line, const char *name)
{
	size_t n = strlen(name);

	line = skip_blanks(line);
	if (strncmp(line, name, n))
		return NULL;
	return line[n] == ' ' || line[n] == '\t' ? line + n : NULL;
}

/* Returns: what follows, or NULL if these are not three numbers. */
static const char *parse_position(const char *p, struct position *position)
{
	unsigned long *numbers[] = { &position->file, &position->line,
		&position->column };

	for (unsigned int i = 0; i < 3; i++) {
		char *end;

		p = skip_blanks(p);
		if (*p < '0' || *p > '9')
			return NULL;
		*numbers[i] = strtoul(p, &end, 10);
		p = end;
	}
	return p;
}

static bool parse_loc(const char *line, struct loc *loc)
{
	static const char inlined_at[] = "inlined_at";
	const char *p = directive(line, ".loc"), *end, *call;

	*loc = (struct loc){};
	p = p ? parse_position(p, &loc->at) : NULL;
	if (!p)
		return false;
	end = strchrnul(p, '\n');
	call = memmem(p, (size_t)(end - p), inlined_at, sizeof(inlined_at) - 1);
	loc->is_inlined =
		call && parse_position(call + sizeof(inlined_at) - 1, &loc->call);
	return true;
}

/* Whether a declaration begins there: what .loc said before does not apply to it. */
static bool begins_function(const char *line)
{
	static const char *const words[] = { ".visible", ".weak", ".entry", ".func",
		".extern" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (directive(line, words[i]))
			return true;
	return false;
}

/* Returns: the line of the last .loc before @line, or NULL; *functionp: where its
 * function begins. */
static const char *find_loc(const char *text, uint32_t line, const char **functionp)
{
	const char *found = NULL;

	*functionp = text;
	for (uint32_t i = 1; text && i < line; i++, text = next_line(text)) {
		struct loc loc;

		if (begins_function(text)) {
			*functionp = text;
			found = NULL;
		} else if (parse_loc(text, &loc)) {
			found = text;
		}
	}
	return found;
}

/* The last .loc before @end about that position. */
static const char *find_caller(
	const char *from, const char *end, const struct position *position)
{
	const char *found = NULL;

	for (; from && from < end; from = next_line(from)) {
		struct loc loc;

		if (parse_loc(from, &loc) && loc.at.file == position->file &&
			loc.at.line == position->line &&
			loc.at.column == position->column)
			found = from;
	}
	return found;
}

/* nvcc names files after all functions, others before; linked texts have several lists.
 * Returns: the name in quotation marks, or NULL. */
static const char *find_file(const char *text, const char *at, unsigned long number)
{
	const char *found = NULL;

	for (; text; text = next_line(text)) {
		const char *p = directive(text, ".file");
		char *end;

		if (!p || strtoul(skip_blanks(p), &end, 10) != number)
			continue;
		p = skip_blanks(end);
		if (*p == '"')
			found = p;
		if (found > at)
			break;
	}
	return found;
}

static size_t append_position(char *to, size_t size, const char *text, const char *at,
	const struct position *position)
{
	const char *name = find_file(text, at, position->file);
	size_t length = name ? strcspn(name + 1, "\"\n") : 0, start = 0;
	int n;

	for (size_t i = 0; i < length; i++)
		if (name[1 + i] == '/' || name[1 + i] == '\\')
			start = i + 1;
	if (name)
		n = snprintf(to, size, "%.*s:%lu",
			(int)(length - start < 64 ? length - start : 64),
			name + 1 + start, position->line);
	else
		n = snprintf(to, size, "line %lu", position->line);
	return (size_t)n < size ? (size_t)n : size - 1;
}

size_t ptx_place_find(const char *text, uint32_t line, char *to, size_t size)
{
	const char *function, *at = find_loc(text, line, &function);
	struct loc loc;
	size_t n;

	to[0] = 0;
	if (!at || !parse_loc(at, &loc))
		return 0;
	n = append_position(to, size, text, at, &loc.at);
	for (unsigned int i = 1; i < PTX_PLACE_DEPTH_MAX && loc.is_inlined; i++) {
		struct position call = loc.call;

		n += (size_t)snprintf(to + n, size - n, ", inlined at ");
		if (n >= size)
			break;
		n += append_position(to + n, size - n, text, at, &call);
		at = find_caller(function, at, &call);
		if (!at || !parse_loc(at, &loc))
			break;
	}
	return strlen(to);
}

bool ptx_line_has(const char *text, uint32_t line, const char *word)
{
	for (uint32_t i = 1; text && i < line; i++)
		text = next_line(text);
	return text &&
	       memmem(text, (size_t)(strchrnul(text, '\n') - text), word, strlen(word));
}
