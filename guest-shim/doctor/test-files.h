/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files below the root of a test, and what a look says about them
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor/doctor.h"
#include "test.h"

/* The whole path, valid until the next call. */
static inline const char *path_of(const char *path)
{
	static char whole[1024];

	snprintf(whole, sizeof(whole), "%s%s", test_tmpdir(), path);
	return whole;
}

/* Makes the folders that a file is in. */
static inline void put_folders(const char *path)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "%s", path_of(path));
	for (char *c = whole + strlen(test_tmpdir()) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(whole, 0755);
		*c = '/';
	}
}

static inline void put(const char *path, const char *text)
{
	FILE *file;

	put_folders(path);
	file = fopen(path_of(path), "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
}

/* The last finding of a doctor has that level, a text and an advice that contain these;
 * NULL: no advice. */
static inline void check_last(const struct doctor *doctor, enum vgpu_finding_level level,
	const char *text, const char *advice)
{
	const struct vgpu_finding *last = &doctor->found.list[doctor->found.n - 1];

	check(doctor->found.n > 0);
	if (!strstr(last->text, text))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", last->text, text);
	check_eq(last->level, level);
	if (!advice)
		check(!last->advice);
	else if (!last->advice || !strstr(last->advice, advice))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"",
			last->advice ? last->advice : "", advice);
}
