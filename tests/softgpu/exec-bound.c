/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the work for one function ends: built with a bound that a small one reaches
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 9.0\n.target sm_121\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* As many nested loops, and a value of each that is needed after them all. */
static char *nested(unsigned int n)
{
	char *text = malloc(4096 + (size_t)n * 300), *at = text;

	check(text != NULL);
	at += sprintf(at,
		HEADER ".visible .entry small(.param .u64 p) { .reg .b64 %%d;\n"
		       "ld.param.u64 %%d, [p]; st.global.u32 [%%d], 5; ret; }\n"
		       ".visible .entry large(.param .u64 p) {\n"
		       ".reg .b32 %%r<%u>; .reg .pred %%q; .reg .b64 %%d;\n"
		       "ld.param.u64 %%d, [p];\n",
		n);
	for (unsigned int i = 0; i < n; i++)
		at += sprintf(at, "ld.global.u32 %%r%u, [%%d];\nL%u:\n", i, i);
	for (unsigned int i = n; i-- > 0;)
		at += sprintf(at,
			"sub.u32 %%r%u, %%r%u, 1; setp.ne.u32 %%q, %%r%u, 0;\n"
			"@%%q bra L%u;\n",
			i, i, i, i);
	for (unsigned int i = 0; i < n; i++)
		at += sprintf(at, "st.global.u32 [%%d], %%r%u;\n", i);
	sprintf(at, "ret; }\n");
	return text;
}

TEST(finding_where_values_live_is_given_up_with_a_reason)
{
	char *text = nested(1000);
	struct softgpu_message message = {};
	CLEAN_RIG rig = rig_new(text);
	uint32_t *word = rig_alloc(rig, 4);

	check_eq(rig_lookup(text, "large", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
	check(strstr(message.text, "function too large") &&
		strstr(message.text, "blocks"));
	/* The others of its module run. */
	rig_launch(rig, "small", 1, 1, &word, sizeof(word));
	check_eq(*word, 5);
	free(text);
}

TEST(a_small_function_stays_below)
{
	char *text = nested(10);
	CLEAN_RIG rig = rig_new(text);
	uint32_t *word = rig_alloc(rig, 4);

	*word = 1;
	rig_launch(rig, "large", 1, 1, &word, sizeof(word));
	check_eq(*word, 0);
	free(text);
}
