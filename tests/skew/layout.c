/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints where the fields of all structures are that guest and host share, one a line
 */

#include <stddef.h>
#include <stdio.h>

#include "vgpu/array-box.h"
#include "vgpu/device-info.h"
#include "vgpu/frame.h"
#include "vgpu/hello.h"
#include "vgpu/launch.h"
#include "vgpu/load.h"
#include "vgpu/mirror.h"
#include "vgpu/right.h"
#include "vgpu/ring-layout.h"
#include "vgpu/status.h"

#define SIZE(_type) printf("size %s %zu\n", #_type, sizeof(struct _type))
#define FIELD(_type, _field)                                                             \
	printf("field %s %s %zu %zu\n", #_type, #_field, offsetof(struct _type, _field), \
		sizeof(((struct _type *)0)->_field))
#define NUMBER(_name) printf("number %s %llu\n", #_name, (unsigned long long)(_name))

static void print_header(void)
{
	SIZE(vgpu_shm_header);
	FIELD(vgpu_shm_header, magic);
	FIELD(vgpu_shm_header, protocol_version);
	FIELD(vgpu_shm_header, n_channels);
	FIELD(vgpu_shm_header, shm_size);
	FIELD(vgpu_shm_header, area_off);
	FIELD(vgpu_shm_header, extents_off);
	FIELD(vgpu_shm_header, n_extents);
	FIELD(vgpu_shm_header, protocol_minor);
	FIELD(vgpu_shm_header, features);
	FIELD(vgpu_shm_header, status_off);
	FIELD(vgpu_shm_header, heartbeat);
	FIELD(vgpu_shm_header, generation);
	FIELD(vgpu_shm_header, owners_off);
	FIELD(vgpu_shm_header, n_served);
	FIELD(vgpu_shm_header, boot_id);
	FIELD(vgpu_shm_header, n_requests);
	FIELD(vgpu_shm_header, is_leaving);
}

static void print_entry(void)
{
	SIZE(vgpu_channel_entry);
	FIELD(vgpu_channel_entry, state);
	FIELD(vgpu_channel_entry, claim);
	FIELD(vgpu_channel_entry, protocol_version);
	FIELD(vgpu_channel_entry, api_version);
	FIELD(vgpu_channel_entry, features);
	FIELD(vgpu_channel_entry, pid);
	FIELD(vgpu_channel_entry, uid);
	FIELD(vgpu_channel_entry, start_time);
	FIELD(vgpu_channel_entry, boot_id);
	FIELD(vgpu_channel_entry, window_base);
	FIELD(vgpu_channel_entry, window_size);
	FIELD(vgpu_channel_entry, comm);
	FIELD(vgpu_channel_entry, pid_namespace);
	FIELD(vgpu_channel_entry, protocol_minor);
	FIELD(vgpu_channel_entry, host_protocol_version);
	FIELD(vgpu_channel_entry, host_api_version);
	FIELD(vgpu_channel_entry, host_features);
	FIELD(vgpu_channel_entry, reason);
	FIELD(vgpu_channel_entry, worker_pid);
	FIELD(vgpu_channel_entry, area_off);
	FIELD(vgpu_channel_entry, first_extent);
	FIELD(vgpu_channel_entry, n_extents);
	FIELD(vgpu_channel_entry, detail);
	FIELD(vgpu_channel_entry, host_protocol_minor);
}

static void print_states(void)
{
	NUMBER(VGPU_CHANNEL_FREE);
	NUMBER(VGPU_CHANNEL_CLAIMED);
	NUMBER(VGPU_CHANNEL_OPENING);
	NUMBER(VGPU_CHANNEL_OPEN);
	NUMBER(VGPU_CHANNEL_REFUSED);
	NUMBER(VGPU_CHANNEL_DEAD);
	NUMBER(VGPU_CHANNEL_CLOSING);
	NUMBER(VGPU_REASON_VERSION);
	NUMBER(VGPU_REASON_WINDOW);
	NUMBER(VGPU_REASON_NO_DEVICE);
	NUMBER(VGPU_REASON_LIMIT);
	NUMBER(VGPU_REASON_HOST);
	NUMBER(VGPU_REASON_PROTOCOL);
	NUMBER(VGPU_REASON_WORKER_DIED);
	NUMBER(VGPU_REASON_SHUTDOWN);
	NUMBER(VGPU_REASON_PROCESSES);
	NUMBER(VGPU_REASON_WORKERS);
	NUMBER(VGPU_REASON_HOST_MEMORY);
	NUMBER(VGPU_REASON_NO_DRIVER);
}

static void print_area(void)
{
	NUMBER(VGPU_SHM_MAGIC);
	NUMBER(VGPU_SHM_TABLE_OFF);
	NUMBER(VGPU_IVSHMEM_VECTORS);
	NUMBER(VGPU_EXTENT_SIZE);
	NUMBER(VGPU_AREA_SIZE);
	NUMBER(VGPU_RING_OFF);
	NUMBER(VGPU_RING_SIZE);
	NUMBER(VGPU_WORDS_OFF);
	NUMBER(VGPU_WORDS_MAX);
	NUMBER(VGPU_SLOTS_OFF);
	NUMBER(VGPU_SLOTS_MAX);
	NUMBER(VGPU_SLOT_SIZE);
	NUMBER(VGPU_RECORDS_OFF);
	NUMBER(VGPU_RECORDS_MAX);
	NUMBER(VGPU_RECORD_SLOT_BITS);
	SIZE(vgpu_channel_control);
	FIELD(vgpu_channel_control, tail);
	FIELD(vgpu_channel_control, asked);
	FIELD(vgpu_channel_control, head);
	FIELD(vgpu_channel_control, consumer_sleeping);
	FIELD(vgpu_channel_control, consumer_idle);
	FIELD(vgpu_channel_control, answered);
	FIELD(vgpu_channel_control, n_faults);
	FIELD(vgpu_channel_control, n_captures);
	FIELD(vgpu_channel_control, printed);
	FIELD(vgpu_channel_control, may_print);
	SIZE(vgpu_word);
	SIZE(vgpu_reply_slot);
	FIELD(vgpu_reply_slot, sequence);
	FIELD(vgpu_reply_slot, size);
	FIELD(vgpu_reply_slot, waiting);
	FIELD(vgpu_reply_slot, reason);
	FIELD(vgpu_reply_slot, body);
}

static void print_frame(void)
{
	NUMBER(VGPU_FRAME_MAX);
	NUMBER(VGPU_FRAME_REPLY);
	SIZE(vgpu_frame);
	FIELD(vgpu_frame, size);
	FIELD(vgpu_frame, call);
	FIELD(vgpu_frame, flags);
	FIELD(vgpu_frame, lane);
	FIELD(vgpu_frame, sequence);
	SIZE(vgpu_socket_greeting);
	FIELD(vgpu_socket_greeting, magic);
	FIELD(vgpu_socket_greeting, protocol_version);
	FIELD(vgpu_socket_greeting, n_fds);
}

static void print_blocks(void)
{
	SIZE(vgpu_array_side);
	SIZE(vgpu_array_box);
	FIELD(vgpu_array_side, address);
	FIELD(vgpu_array_side, pitch);
	FIELD(vgpu_array_side, rows);
	FIELD(vgpu_array_side, x);
	FIELD(vgpu_array_box, to);
	FIELD(vgpu_array_box, from);
	FIELD(vgpu_array_box, width);
	SIZE(vgpu_device_info);
	FIELD(vgpu_device_info, uuid);
	FIELD(vgpu_device_info, total_memory);
	FIELD(vgpu_device_info, known);
	FIELD(vgpu_device_info, attributes);
	SIZE(vgpu_launch_dims);
	FIELD(vgpu_launch_dims, shared_bytes);
	FIELD(vgpu_launch_dims, flags);
	FIELD(vgpu_launch_dims, axis);
	FIELD(vgpu_launch_axis, block);
	SIZE(vgpu_load);
	FIELD(vgpu_load, n_options);
	FIELD(vgpu_load, log_address);
	FIELD(vgpu_load, info_size);
	FIELD(vgpu_load, first);
	FIELD(vgpu_load, options);
	FIELD(vgpu_load, flags);
	FIELD(vgpu_load, digest);
	FIELD(vgpu_load, more);
	SIZE(vgpu_load_option);
	FIELD(vgpu_load_option, value);
	SIZE(vgpu_load_result);
	FIELD(vgpu_load_result, info_size);
	FIELD(vgpu_load_result, flags);
	FIELD(vgpu_load_result, digest);
	SIZE(vgpu_right);
	FIELD(vgpu_right, flags);
	SIZE(vgpu_mirror_piece);
	FIELD(vgpu_mirror_piece, size);
	FIELD(vgpu_mirror_piece, offset);
}

static void print_status(void)
{
	NUMBER(VGPU_STATUS_SIZE);
	FIELD(vgpu_status, flags);
	FIELD(vgpu_status, updated_us);
	FIELD(vgpu_status, n_devices);
	FIELD(vgpu_status, cuda_version);
	FIELD(vgpu_status, driver_version);
	FIELD(vgpu_status, memory_limit);
	FIELD(vgpu_status, devices);
	FIELD(vgpu_status, processes);
	FIELD(vgpu_status, uses);
	FIELD(vgpu_status, samples);
	FIELD(vgpu_status, events);
	FIELD(vgpu_status, peers);
	FIELD(vgpu_status, distances);
	SIZE(vgpu_status_device);
	FIELD(vgpu_status_device, memory_total);
	FIELD(vgpu_status_device, utilisation);
	FIELD(vgpu_status_device, sensors_known);
	FIELD(vgpu_status_device, sensors);
	SIZE(vgpu_status_process);
	FIELD(vgpu_status_process, start_time);
	FIELD(vgpu_status_process, comm);
	FIELD(vgpu_status_process, memory_used);
	SIZE(vgpu_status_use);
	SIZE(vgpu_status_sample);
	FIELD(vgpu_status_sample, utilisation);
	SIZE(vgpu_status_event);
	FIELD(vgpu_status_event, detail);
}

int main(void)
{
	print_header();
	print_entry();
	print_states();
	print_area();
	print_frame();
	print_blocks();
	print_status();
	return 0;
}
