/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Doctor: whether a host has what vgpud and its virtual machines need
 */

#include <stddef.h>

#include "vgpud/config.h"

enum finding_level {
	FINDING_OK,
	FINDING_WARN, /* it works, but not as well as it could */
	FINDING_FAIL,
	_FINDING_N,
};

struct finding {
	enum finding_level level;
	const char *subject;
	char *text;
	const char *advice; /* what to do; NULL: nothing */
};

#define DOCTOR_FINDINGS_MAX 32

struct doctor {
	const char *root; /* of the files that are looked at, "" for this host's */
	const struct config *config; /* NULL: there is none */
	unsigned int pid;	     /* of vgpud, 0: it does not run */
	struct finding findings[DOCTOR_FINDINGS_MAX];
	size_t n;
};

/* Adds a finding. */
void doctor_find(struct doctor *doctor, enum finding_level level, const char *subject,
	const char *advice, const char *format, ...)
	__attribute__((__format__(__printf__, 5, 6)));

/* Each looks at one subject, and adds at least one finding. */
void doctor_look_at_kvm(struct doctor *doctor);
void doctor_look_at_io_uring(struct doctor *doctor);
void doctor_look_at_driver(struct doctor *doctor);
void doctor_look_at_memory(struct doctor *doctor);
void doctor_look_at_hugepages(struct doctor *doctor);
void doctor_look_at_files(struct doctor *doctor);
void doctor_look_at_programs(struct doctor *doctor);

enum finding_level doctor_worst(const struct doctor *doctor);
void doctor_deinit(struct doctor *doctor);
