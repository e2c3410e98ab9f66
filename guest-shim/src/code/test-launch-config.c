/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch configurations, as they are sent
 */

#include <string.h>

#include "test.h"

#include "code/launch-config.h"
#include "process/context.h"
#include "wait/event.h"

static struct shim_launch_config taken;
static CUlaunchAttribute attributes[VGPU_LAUNCH_ATTRIBUTES_MAX + 1];

static CUresult take(unsigned int n)
{
	const CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 2,
		.gridDimZ = 3,
		.blockDimX = 4,
		.blockDimY = 5,
		.blockDimZ = 6,
		.sharedMemBytes = 7,
		.attrs = attributes,
		.numAttrs = n,
	};

	return shim_launch_config_take(&taken, &config);
}

TEST(dimensions_are_taken_by_axis)
{
	check_eq(take(0), CUDA_SUCCESS);
	check_eq(taken.n_attributes, 0);
	for (uint32_t i = 0; i < 3; i++) {
		check_eq(taken.dims.axis[i].grid, 1 + i);
		check_eq(taken.dims.axis[i].block, 4 + i);
	}
	check_eq(taken.dims.shared_bytes, 7);
	check_eq(taken.dims.flags, 0);
}

TEST(the_last_cooperative_attribute_counts_and_is_a_flag)
{
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attributes[0].value.cooperative = 1;
	check_eq(take(1), CUDA_SUCCESS);
	check_eq(taken.n_attributes, 0);
	check_eq(taken.dims.flags, VGPU_LAUNCH_COOPERATIVE);
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attributes[1].value.cooperative = 0;
	check_eq(take(2), CUDA_SUCCESS);
	check_eq(taken.dims.flags, 0);
}

TEST(ignored_attributes_are_not_sent)
{
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	attributes[1].value.priority = -2;
	check_eq(take(2), CUDA_SUCCESS);
	check_eq(taken.n_attributes, 1);
	check_eq(taken.attributes[0].id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
	check_eq(taken.attributes[0].value.priority, -2);
}

TEST(only_the_bytes_of_a_value_are_sent)
{
	memset(&attributes[0], 0xff, sizeof(attributes[0]));
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attributes[0].value.clusterDim.x = 2;
	attributes[0].value.clusterDim.y = 1;
	attributes[0].value.clusterDim.z = 1;
	check_eq(take(1), CUDA_SUCCESS);
	check_eq(taken.attributes[0].value.clusterDim.x, 2);
	for (size_t i = sizeof(attributes[0].value.clusterDim);
		i < sizeof(attributes[0].value); i++)
		check_eq(((uint8_t *)&taken.attributes[0].value)[i], 0);
}

TEST(unknown_attributes_and_too_many_are_invalid)
{
	attributes[0].id = (CUlaunchAttributeID)12345;
	check_eq(take(1), CUDA_ERROR_INVALID_VALUE);
	for (unsigned int i = 0; i <= VGPU_LAUNCH_ATTRIBUTES_MAX; i++)
		attributes[i].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	check_eq(take(VGPU_LAUNCH_ATTRIBUTES_MAX), CUDA_SUCCESS);
	check_eq(taken.n_attributes, VGPU_LAUNCH_ATTRIBUTES_MAX);
	check_eq(take(VGPU_LAUNCH_ATTRIBUTES_MAX + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_count_without_attributes_is_invalid)
{
	const CUlaunchConfig config = { .numAttrs = 1 };

	check_eq(shim_launch_config_take(&taken, &config), CUDA_ERROR_INVALID_VALUE);
}

TEST(nodes_that_a_device_updates_are_not_supported)
{
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	check_eq(take(1), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(an_event_of_an_attribute_has_to_exist)
{
	CUevent event;

	shim_context_setup(1);
	event = shim_event_new(shim_context_primary(0), CU_EVENT_DISABLE_TIMING, NULL);
	check(event);
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	attributes[0].value.programmaticEvent.event = event;
	check_eq(take(1), CUDA_SUCCESS);
	check(taken.attributes[0].value.programmaticEvent.event == event);
	check(shim_event_free(event));
	check_eq(take(1), CUDA_ERROR_INVALID_HANDLE);
}
