/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMs with the same devices
 */

#include <stdio.h>
#include <stdlib.h>

#include "broker/device-set.h"
#include "broker/state.h"
#include "test.h"

static struct account accounts[4];
static struct broker broker;

static void make_sets(void)
{
	static const char *const lines[] = { "", "devices = 1, 0\n", "devices = 2\n",
		"devices = 1,0\n" };
	struct config *config = NULL;
	char text[1024] = "", *error;
	size_t n = 0;

	for (int i = 0; i < 4; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"[vm v%d]\ntransport = socket\nsocket = /s%d\n%s", i, i,
			lines[i]);
	check_eq(config_new_from_text(&config, "f", text, &error), 0);
	broker = (struct broker){ .config = config, .accounts = accounts };
	check_eq(device_sets_init(&broker), 0);
}

static void free_sets(void)
{
	device_sets_deinit(&broker);
	config_free((struct config *)broker.config);
}

TEST(vms_with_one_list_share_a_set)
{
	make_sets();
	check_eq(broker.n_sets, 3);
	check(accounts[0].devices == &broker.sets[0] && !broker.sets[0].list);
	check(accounts[1].devices == accounts[3].devices);
	check_str(accounts[1].devices->list, "1,0");
	check_eq(accounts[1].devices->n_sections, 2);
	check_str(accounts[2].devices->list, "2");
	free_sets();
}

TEST(a_set_is_found_by_its_request)
{
	make_sets();
	check(device_set_find(&broker, 0) == &broker.sets[0]);
	check(device_set_find(&broker, 2) == accounts[1].devices);
	check(device_set_find(&broker, 3) == accounts[2].devices);
	check(!device_set_find(&broker, 1) && !device_set_find(&broker, 4));
	check(!device_set_find(&broker, UINT64_MAX));
	free_sets();
}
