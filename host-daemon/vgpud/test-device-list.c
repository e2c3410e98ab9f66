/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of the devices of a VM
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test.h"
#include "vgpud/device-list.h"

#define UUID "01234567-89ab-cdef-0123-456789abcdef"

static char list[DEVICE_LIST_MAX], reason[256];

static bool is_refused(const char *text, const char *why)
{
	return device_list_parse(text, list, reason, sizeof(reason)) == -EINVAL &&
	       strstr(reason, why);
}

static bool becomes(const char *text, const char *expected)
{
	return !device_list_parse(text, list, reason, sizeof(reason)) &&
	       !strcmp(list, expected);
}

TEST(indices_and_uuids_in_any_order)
{
	check(becomes("0", "0"));
	check(becomes("2, 0", "2,0"));
	check(becomes(" 63 ,\t7", "63,7"));
	check(becomes("GPU-" UUID ",1", "GPU-" UUID ",1"));
	check(becomes("GPU-ABCD", "GPU-abcd"));
	check(becomes("MIG-" UUID, "MIG-" UUID));
}

TEST(what_is_no_device)
{
	static const char *const wrong[] = { "", ",", "0,", ",0", "0,,1", "64", "100",
		"01", "-1", "0x1", "0 1", "all", "GPU-", "GPU-abc", "GPU-abcx",
		"gpu-abcd", "GPU-" UUID "0", "GPU-0123-4567", "MIG-01234567",
		"MIG-GPU-" UUID "/1/0", "1;2" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check(is_refused(wrong[i], "is not a device"));
}

TEST(one_device_twice)
{
	check(is_refused("1,0,1", "\"1\" is there twice"));
	check(is_refused("GPU-0123,GPU-" UUID, "twice"));
	check(is_refused("GPU-" UUID ",GPU-0123", "twice"));
	check(becomes("GPU-0123,GPU-0124", "GPU-0123,GPU-0124"));
}

TEST(a_mig_instance_beside_anything)
{
	check(is_refused("MIG-" UUID ",0", "one MIG instance"));
	check(is_refused("0,MIG-" UUID, "one MIG instance"));
}

TEST(a_list_that_is_too_long)
{
	char text[4 * 64] = "";

	for (int i = 10; i < 64; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d",
			i > 10 ? "," : "", i);
	check(becomes(text, text));
	check_eq(device_list_count(list), 54);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ",GPU-" UUID);
	check(is_refused(text, "too long"));
}

TEST(entries_are_counted)
{
	check_eq(device_list_count("3"), 1);
	check_eq(device_list_count("3,1,GPU-abcd"), 3);
}
