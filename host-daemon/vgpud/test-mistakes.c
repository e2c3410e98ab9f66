/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes in a configuration
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpu/cleanup.h"
#include "vgpud/mistakes.h"

static struct mistakes mistakes;

static unsigned int count_lines(const char *text)
{
	unsigned int n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static struct text_place line(int number)
{
	return (struct text_place){ "vgpud.conf", number };
}

static void begin(void)
{
	mistakes = (struct mistakes){ 0 };
}

TEST(without_mistakes_there_is_no_text)
{
	begin();
	check(!mistakes_take(&mistakes));
	mistakes_deinit(&mistakes);
}

TEST(mistakes_name_file_and_line_in_the_order_of_detection)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	begin();
	mistakes_add(&mistakes, line(7), "%s is no size", "4Q");
	mistakes_add(&mistakes, line(3), "no such key");
	text = mistakes_take(&mistakes);
	check_str(text, "vgpud.conf:7: 4Q is no size\nvgpud.conf:3: no such key");
	check_eq(mistakes.n, 2);
	check(!mistakes.no_memory);
	mistakes_deinit(&mistakes);
}

TEST(many_mistakes_are_counted)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	begin();
	for (int i = 1; i <= 1000; i++)
		mistakes_add(&mistakes, line(i), "wrong");
	text = mistakes_take(&mistakes);
	check_eq(mistakes.n, 1000);
	check_eq(count_lines(text), 33);
	check(strstr(text, "vgpud.conf:32: wrong\n"));
	check(!strstr(text, "vgpud.conf:33:"));
	check_str(strrchr(text, '\n') + 1, "and 968 more");
	mistakes_deinit(&mistakes);
}

TEST(the_last_that_is_printed_is_not_followed_by_a_count)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	begin();
	for (int i = 1; i <= 32; i++)
		mistakes_add(&mistakes, line(i), "wrong");
	text = mistakes_take(&mistakes);
	check_eq(count_lines(text), 32);
	check_str(strrchr(text, '\n') + 1, "vgpud.conf:32: wrong");
	mistakes_deinit(&mistakes);
}

TEST(a_mistake_of_any_length_is_kept_whole)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	static char value[20000];

	memset(value, 'v', sizeof(value) - 1);
	begin();
	mistakes_add(&mistakes, line(1), "%s", value);
	text = mistakes_take(&mistakes);
	check_str(text + strlen("vgpud.conf:1: "), value);
	mistakes_deinit(&mistakes);
}

TEST(the_files_with_mistakes_are_known)
{
	static char one[] = "one", same[] = "one", two[] = "two";

	begin();
	for (int i = 0; i < 100; i++)
		mistakes_add(&mistakes, (struct text_place){ one, i }, "wrong");
	mistakes_add(&mistakes, (struct text_place){ two, 1 }, "wrong");
	check(mistakes_are_in(&mistakes, one) && mistakes_are_in(&mistakes, two));
	check(!mistakes_are_in(&mistakes, same));
	check_eq(mistakes.n_files, 2);
	mistakes_deinit(&mistakes);
	check(!mistakes_are_in(&mistakes, one));
}
