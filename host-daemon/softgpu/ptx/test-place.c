/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests: where a line of PTX comes from
 */

#include <string.h>

#include "ptx/place.h"
#include "test.h"

#define HEAD ".version 9.0\n.target sm_80\n.address_size 64\n"

static void check_place(const char *text, uint32_t line, const char *expected)
{
	char place[128];

	check_eq(ptx_place_find(text, line, place, sizeof(place)), strlen(expected));
	check_str(place, expected);
}

TEST(the_last_loc_before_a_line_counts)
{
	static const char text[] = HEAD ".visible .entry k()\n{\n\t.loc\t1 7 0\n\tret;\n"
					"\t.loc 2 8 3\n\tret;\n\tret;\n}\n"
					"\t.file\t1 \"/a/b/first.cu\"\n"
					".file 2 \"second.h\", 1, 2\n";

	check_place(text, 6, "");
	check_place(text, 7, "first.cu:7");
	check_place(text, 9, "second.h:8");
	check_place(text, 10, "second.h:8");
}

TEST(a_loc_ends_with_its_function)
{
	static const char text[] = HEAD ".file 1 \"a.cu\"\n.entry k()\n{\n.loc 1 7 0\n"
					"ret;\n}\n.visible .entry l()\n{\nret;\n}\n";

	check_place(text, 8, "a.cu:7");
	check_place(text, 12, "");
	check_place(text, 100, "");
}

TEST(inlined_calls_are_named_up_to_the_function)
{
	static const char text[] =
		HEAD ".visible .entry k()\n{\n.loc 1 10 5\n"
		     ".loc 1 5 3, function_name $L__info_string0, inlined_at 1 10 5\n"
		     "add;\n"
		     ".loc 1 2 3, function_name $L__info_string1, inlined_at 1 5 3\n"
		     "ret;\n}\n"
		     ".file 1 \"t.cu\"\n";

	check_place(text, 8, "t.cu:5, inlined at t.cu:10");
	check_place(text, 10, "t.cu:2, inlined at t.cu:5, inlined at t.cu:10");
}

TEST(a_call_that_names_itself_ends)
{
	static const char text[] = HEAD ".entry k()\n{\n"
					".loc 1 2 3, function_name f, inlined_at 1 2 3\n"
					".loc 1 2 3, function_name f, inlined_at 1 2 3\n"
					"ret;\n}\n";

	check_place(text, 8, "line 2, inlined at line 2, inlined at line 2");
}

TEST(of_linked_texts_each_has_its_files)
{
	static const char text[] = HEAD ".entry k()\n{\n.loc 1 1 0\nret;\n}\n"
					".file 1 \"a.cu\"\n.entry l()\n{\n.loc 1 2 0\n"
					"ret;\n}\n"
					".file 1 \"b.cu\"\n";

	check_place(text, 7, "a.cu:1");
	check_place(text, 13, "b.cu:2");
}

TEST(what_is_no_loc_is_ignored)
{
	static const char text[] =
		HEAD ".entry k()\n{\n.loc 1 x 3\n.loc\n.location 1 2 3\n"
		     ".loc 99999999999999999999999 1 1\nret;\n}";

	check_place(text, 7, "");
	check_place(text, 9, "");
	check_place(text, 10, "line 1");
}

TEST(a_small_buffer_is_filled_to_its_end)
{
	static const char text[] = HEAD ".entry k()\n{\n"
					".loc 1 2 3, function_name f, inlined_at 1 2 4\n"
					"ret;\n}\n"
					".file 1 \"name.cu\"\n";
	char place[16];

	for (size_t size = 1; size <= sizeof(place); size++) {
		check_eq(ptx_place_find(text, 7, place, size), strlen(place));
		check(strlen(place) < size);
		check(!strncmp("name.cu:2, inlined at", place, strlen(place)));
	}
}

TEST(a_word_is_found_in_its_line_alone)
{
	static const char text[] = "a\nst.shared.u32 [s], 1;\nst.global.u32 [%d], 1;";

	check(ptx_line_has(text, 2, ".shared"));
	check(!ptx_line_has(text, 1, ".shared") && !ptx_line_has(text, 3, ".shared"));
	check(ptx_line_has(text, 3, ".global") && !ptx_line_has(text, 4, ".global"));
	check(ptx_line_has(text, 1, "a") && !ptx_line_has(text, 0, "b"));
}
