/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices a program sees, and in which order
 */

#include <stdlib.h>
#include <string.h>

#include "process/device.h"
#include "process/environment.h"
#include "test.h"

#define N_DEVICES 4

/* UUIDs 8932f9..., 8932ab..., 11..., 22...; the places on the bus are 3, 1, 2, 0. */
static const struct vgpu_device_info *some_devices(void)
{
	static const uint8_t first[N_DEVICES][3] = { { 0x89, 0x32, 0xf9 },
		{ 0x89, 0x32, 0xab }, { 0x11 }, { 0x22 } };
	static const int bus[N_DEVICES] = { 3, 1, 2, 0 };
	static struct vgpu_device_info devices[N_DEVICES];

	for (int i = 0; i < N_DEVICES; i++) {
		memcpy(devices[i].uuid, first[i], sizeof(first[i]));
		devices[i].attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = bus[i];
		devices[i].known[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID / 8] |=
			1 << CU_DEVICE_ATTRIBUTE_PCI_BUS_ID % 8;
	}
	return devices;
}

/* Compares what is chosen with the digits of a text. */
static void check_choice(const char *order, const char *list, const char *expected)
{
	int chosen[N_DEVICES];
	char found[N_DEVICES + 1] = "";
	int n = shim_environment_choose(order, list, some_devices(), N_DEVICES, chosen);

	check(n >= 0 && n <= N_DEVICES);
	for (int i = 0; i < n; i++)
		found[i] = (char)('0' + chosen[i]);
	if (strcmp(found, expected) != 0)
		test_fail(__FILE__, __LINE__, "list \"%s\" chooses \"%s\", not \"%s\"",
			list ? list : "(none)", found, expected);
}

TEST(without_a_list_all_devices_are_visible)
{
	check_choice(NULL, NULL, "0123");
	check_choice("", NULL, "0123");
	check_choice("FASTEST_FIRST", NULL, "0123");
	check_choice("of no such name", NULL, "0123");
}

TEST(an_empty_list_names_no_device)
{
	check_choice(NULL, "", "");
	check_choice(NULL, " ", "");
	check_choice(NULL, ",0", "");
}

TEST(ordinals_choose_and_order)
{
	check_choice(NULL, "2", "2");
	check_choice(NULL, "3,1", "31");
	check_choice(NULL, " 3 ,\t1 ", "31");
	check_choice(NULL, "0,1,2,3", "0123");
	check_choice(NULL, "00000000001", "1");
}

TEST(a_list_ends_at_the_first_entry_that_names_nothing)
{
	check_choice(NULL, "0,2,-1,1", "02");
	check_choice(NULL, "-1", "");
	check_choice(NULL, "1,4,2", "1");
	check_choice(NULL, "1,2x,3", "1");
	check_choice(NULL, "1,,3", "1");
	check_choice(NULL, "1,+2", "1");
	check_choice(NULL, "NoDevFiles", "");
	check_choice(NULL, "3,99999999999999999999999999", "3");
	check_choice(NULL, "4294967296", "");
	check_choice(NULL, "2,0,", "20");
}

TEST(a_device_named_twice_leaves_none)
{
	check_choice(NULL, "0,0", "");
	check_choice(NULL, "1,2,1,3", "");
	check_choice(NULL, "2,GPU-11", "");
	/* entries after an invalid one do not count */
	check_choice(NULL, "1,2,-1,1", "12");
}

TEST(a_uuid_may_be_shortened_while_it_is_unique)
{
	check_choice(NULL, "GPU-8932f900-0000-0000-0000-000000000000", "0");
	check_choice(NULL, "GPU-8932f9", "0");
	check_choice(NULL, "GPU-8932A", "1");
	check_choice(NULL, "GPU-2,GPU-1,0", "320");
	check_choice(NULL, "3,GPU-8932", "3");
	check_choice(NULL, "GPU-", "");
	check_choice(NULL, "GPU-77", "");
	check_choice(NULL, "GPU-8932f900-0000-0000-0000-0000000000000", "");
	check_choice(NULL, "gpu-8932f9", "");
	check_choice(NULL, "8932f9", "");
}

TEST(instances_of_devices_are_no_devices)
{
	check_choice(NULL, "MIG-GPU-8932f900-0000-0000-0000-000000000000/1/2", "");
	check_choice(NULL, "1,MIG-8932f900-0000-0000-0000-000000000000,2", "1");
}

TEST(ordinals_count_in_the_order_of_the_bus)
{
	check_choice("PCI_BUS_ID", NULL, "3120");
	check_choice("PCI_BUS_ID", "0", "3");
	check_choice("PCI_BUS_ID", "3,GPU-11,0", "023");
}

TEST(variables_are_read_at_the_start)
{
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	setenv("VGPU_SYNC", "1", 1);
	shim_environment_read();
	check_eq(shim_environment.loading_mode, CU_MODULE_EAGER_LOADING);
	check(shim_environment.launches_block && shim_environment.is_synchronous);
	setenv("CUDA_MODULE_LOADING", "neither", 1);
	setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
	setenv("VGPU_SYNC", "", 1);
	shim_environment_read();
	check_eq(shim_environment.loading_mode, CU_MODULE_LAZY_LOADING);
	check(!shim_environment.launches_block && !shim_environment.is_synchronous);
}
