/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* All messages */

#include "messages.h"
#include "vgpu/g-calls.h"
#include "vgpu/g-driver.pb-c.h"

const struct message_pair message_pairs[] = {
	{
		VGPU_CALL_vgpuHello,
		&vgpu__vgpu_hello_request__descriptor,
		&vgpu__vgpu_hello_reply__descriptor,
	},
	{
		VGPU_CALL_cuStreamGetPriority,
		&vgpu__cu_stream_get_priority_request__descriptor,
		&vgpu__cu_stream_get_priority_reply__descriptor,
	},
	{
		VGPU_CALL_cuMemsetD16Async,
		&vgpu__cu_memset_d16_async_request__descriptor,
		&vgpu__cu_memset_d16_async_reply__descriptor,
	},
	{
		VGPU_CALL_cuMemAlloc_v2,
		&vgpu__cu_mem_alloc_v2_request__descriptor,
		&vgpu__cu_mem_alloc_v2_reply__descriptor,
	},
	{
		VGPU_CALL_cuEventDestroy,
		&vgpu__cu_event_destroy_request__descriptor,
		&vgpu__cu_event_destroy_reply__descriptor,
	},
	{
		VGPU_CALL_cuEventQuery,
		&vgpu__cu_event_query_request__descriptor,
		&vgpu__cu_event_query_reply__descriptor,
	},
	{
		VGPU_CALL_cuFind,
		&vgpu__cu_find_request__descriptor,
		&vgpu__cu_find_reply__descriptor,
	},
	{
		VGPU_CALL_cuLaunch,
		&vgpu__cu_launch_request__descriptor,
		&vgpu__cu_launch_reply__descriptor,
	},
};

const size_t n_message_pairs = sizeof(message_pairs) / sizeof(message_pairs[0]);
