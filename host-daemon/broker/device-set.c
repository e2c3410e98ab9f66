/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device set: VMs that have the same devices in the same order, and their workers
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/device-set.h"
#include "broker/state.h"
#include "vgpu/error.h"

static struct device_set *find_by_list(struct broker *broker, const char *list)
{
	if (!list)
		return &broker->sets[0];
	for (unsigned int i = 1; i < broker->n_sets; i++)
		if (!strcmp(broker->sets[i].list, list))
			return &broker->sets[i];
	return NULL;
}

int device_sets_init(struct broker *broker)
{
	const struct config_vm *vm;

	broker->sets = calloc(broker->config->n_vms + 1, sizeof(*broker->sets));
	if (!broker->sets)
		return vgpu_error_origin(-ENOMEM);
	broker->sets[0].broker = broker;
	broker->n_sets = 1;
	TAILQ_FOREACH(vm, &broker->config->vms, entry) {
		struct device_set *set = find_by_list(broker, vm->devices);

		if (!set) {
			set = &broker->sets[broker->n_sets++];
			set->broker = broker;
			set->list = vm->devices;
			set->request = vm->index + 1;
		}
		set->n_sections++;
		broker->accounts[vm->index].devices = set;
	}
	return 0;
}

void device_sets_deinit(struct broker *broker)
{
	for (unsigned int i = 0; i < broker->n_sets; i++)
		free(broker->sets[i].status);
	free(broker->sets);
	broker->sets = NULL;
	broker->n_sets = 0;
}

struct device_set *device_set_find(struct broker *broker, uint64_t request)
{
	for (unsigned int i = 0; i < broker->n_sets; i++)
		if (broker->sets[i].request == request)
			return &broker->sets[i];
	return NULL;
}
