/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of one key in the text of a configuration
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpud/config-edit.h"
#include "vgpud/config.h"

static void check_edit(
	const char *text, const char *key, const char *value, const char *expected)
{
	char *edited;

	check_eq(config_edit(text, "vm a", key, value, &edited), 0);
	check_str(edited, expected);
	free(edited);
}

TEST(the_line_of_a_key_is_replaced)
{
	check_edit("[vm a]\nsize = 1G\nhandles = 20\n", "size", "2G",
		"[vm a]\nsize = 2G\nhandles = 20\n");
	check_edit("[vm a]\nhandles=20", "handles", "30", "[vm a]\nhandles = 30\n");
	check_edit("[vm a]\nhandles : 20 ; why\n", "handles", "30",
		"[vm a]\nhandles = 30\n");
}

TEST(a_key_that_is_not_there_is_added_below_the_head)
{
	check_edit("[vm a]\n# mine\n\nsize = 1G\n", "handles", "20",
		"[vm a]\nhandles = 20\n# mine\n\nsize = 1G\n");
	check_edit("[vm a]", "handles", "20", "[vm a]\nhandles = 20\n");
}

TEST(without_a_value_the_line_is_removed)
{
	check_edit("[vm a]\nsize = 1G\nhandles = 20\n", "size", "",
		"[vm a]\nhandles = 20\n");
	check_edit("[vm a]\nsize = 1G\n", "handles", "", "[vm a]\nsize = 1G\n");
	check_edit("[vm a]", "handles", "", "[vm a]");
}

TEST(other_sections_and_comments_stay_as_they_are)
{
	check_edit("[vm b]\nsize = 4G\n; [vm a]\n [vm a] \n#size = 8G\nsize = 1G\n"
		   "[vm aa]\nsize = 2G\n",
		"size", "64M",
		"[vm b]\nsize = 4G\n; [vm a]\n [vm a] \n#size = 8G\nsize = 64M\n"
		"[vm aa]\nsize = 2G\n");
	check_edit("[vm a]\n[vm b]\nsize = 4G\n", "size", "64M",
		"[vm a]\nsize = 64M\n[vm b]\nsize = 4G\n");
	check_edit("[vm a]\nsize-x = 1\nx-size = 2\n", "size", "64M",
		"[vm a]\nsize = 64M\nsize-x = 1\nx-size = 2\n");
}

TEST(a_section_that_is_not_there_is_reported)
{
	char *edited;

	check_eq(config_edit("[vm b]\n", "vm a", "size", "1G", &edited),
		CONFIG_EDIT_E_ABSENT);
	check_eq(config_edit("", "vm a", "size", "1G", &edited), CONFIG_EDIT_E_ABSENT);
	check_eq(config_edit("#[vm a]\n", "vm a", "size", "1G", &edited),
		CONFIG_EDIT_E_ABSENT);
}

TEST(values_that_end_early_or_begin_another_line_are_refused)
{
	static const char *const wrong[] = { "1G\n[vgpud]", "1G ; x", " 1G", "1G ", "1\t",
		";", "\x7f" };
	char *edited;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check_eq(config_edit("[vm a]\n", "vm a", "size", wrong[i], &edited),
			CONFIG_EDIT_E_VALUE);
}

TEST(what_was_edited_is_what_the_parser_reads)
{
	static const char text[] = "[vm z]\nsocket = /z\n\n[vm a]\nsocket = /a\n";
	struct config *config;
	char *edited, *error;

	check_eq(config_edit(text, "vm a", "handles", "77", &edited), 0);
	check_eq(config_new_from_text(&config, "text", edited, &error), 0);
	check_eq(config_vm_at(config, 1)->handles, 77);
	check(config_vm_at(config, 0)->handles != 77);
	config_free(config);
	free(edited);
}
