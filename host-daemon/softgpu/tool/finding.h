/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finding: one image, what it contains, and the report on the PTX that softgpu would take
 */

#include <stdio.h>

#include "fatbin/fatbin.h"
#include "fatbin/machine-code.h"
#include "tool/report.h"
#include "tool/source.h"

enum finding_kind {
	FINDING_PTX,
	FINDING_CONTAINER,
	FINDING_CUBIN,
	FINDING_STANDIN,
	FINDING_OTHER, /* nothing that can be loaded */
};

struct finding_entry {
	uint16_t kind;	 /* enum fatbin_kind */
	bool is_standin; /* of the kind of machine code, but with PTX */
	uint32_t arch;
	char suffix; /* 'a', 'f' or 0 */
	uint32_t version;
};

struct finding {
	enum finding_kind kind;
	char where[96];
	struct finding_entry *entries; /* of a container */
	uint32_t n_entries;
	int result; /* of the choice: a CUDA error, or 0 */
	char machine_code[MACHINE_CODE_TEXT_MAX];
	uint32_t arch;	       /* of the entry that was chosen */
	struct report *report; /* NULL: no text was chosen */
};

/* What a file comes to; the exit status of the program. */
enum verdict {
	VERDICT_RUNS = 0,    /* each kernel runs */
	VERDICT_PARTLY = 1,  /* some kernel does not */
	VERDICT_NO_PTX = 2,  /* there is machine code alone */
	VERDICT_DAMAGED = 3, /* an image is damaged, or there is none */
};

/* Returns: 0 or -ENOMEM. */
int finding_init(
	struct finding *finding, const struct source_image *image, unsigned int cc);
void finding_deinit(struct finding *finding);

enum verdict finding_verdict(const struct finding *finding);

/* Text for people, and an object of JSON. */
void finding_print(const struct finding *finding, FILE *out);
void finding_print_json(const struct finding *finding, FILE *out);

/* A string of JSON, quotes included; bytes that are not ASCII are escaped one by one. */
void json_string(const char *text, FILE *out);
