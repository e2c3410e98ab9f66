/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes: all mistakes in a configuration, in the order of detection
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "vgpud/mistakes.h"
#include "vgpu/cleanup.h"

/* A file of another format has a mistake in each line. */
#define MISTAKES_MAX 32

static void append(struct mistakes *mistakes, const char *line)
{
	char *text = NULL;

	if (asprintf(&text, "%s%s%s", mistakes->text ? mistakes->text : "",
		    mistakes->text ? "\n" : "", line) < 0) {
		mistakes->no_memory = true;
		return;
	}
	free(mistakes->text);
	mistakes->text = text;
}

static void add_file(struct mistakes *mistakes, const char *file)
{
	const char **files;

	if (mistakes_are_in(mistakes, file))
		return;
	files = reallocarray(mistakes->files, mistakes->n_files + 1, sizeof(*files));
	if (!files) {
		mistakes->no_memory = true;
		return;
	}
	mistakes->files = files;
	files[mistakes->n_files++] = file;
}

void mistakes_add(
	struct mistakes *mistakes, struct text_place place, const char *format, ...)
{
	_vgpu_cleanup_(vgpu_freep) char *reason = NULL;
	_vgpu_cleanup_(vgpu_freep) char *whole = NULL;
	va_list ap;
	int n;

	add_file(mistakes, place.file);
	if (mistakes->n++ >= MISTAKES_MAX)
		return;
	va_start(ap, format);
	n = vasprintf(&reason, format, ap);
	va_end(ap);
	if (n < 0)
		reason = NULL;
	if (!reason ||
		asprintf(&whole, "%s:%d: %s", place.file, place.line, reason) < 0) {
		whole = NULL;
		mistakes->no_memory = true;
		return;
	}
	append(mistakes, whole);
}

char *mistakes_take(struct mistakes *mistakes)
{
	char line[64], *text;

	if (mistakes->n > MISTAKES_MAX) {
		snprintf(line, sizeof(line), "and %u more", mistakes->n - MISTAKES_MAX);
		append(mistakes, line);
	}
	text = mistakes->text;
	mistakes->text = NULL;
	return text;
}

bool mistakes_are_in(const struct mistakes *mistakes, const char *file)
{
	for (size_t i = 0; i < mistakes->n_files; i++)
		if (mistakes->files[i] == file)
			return true;
	return false;
}

void mistakes_deinit(struct mistakes *mistakes)
{
	free(mistakes->text);
	free(mistakes->files);
	mistakes->text = NULL;
	mistakes->files = NULL;
	mistakes->n_files = 0;
}
