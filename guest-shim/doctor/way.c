/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Way: the transport that programs would use, and the host behind it
 *
 * Opened by the code of the libraries, which also says why it cannot be.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vgpu/cleanup.h"
#include "vgpu/version.h"

#include "wire/reason.h"
#include "wire/transport.h"

#include "doctor/doctor.h"
#include "doctor/way.h"

/* The host writes its heartbeat every 200 ms, and may be busy. */
#define HEARTBEAT_TRIES 100
#define HEARTBEAT_PAUSE_NS 100000000

/* As shim_transport_open(), in the folders of the root. Return: as that. */
static int open_way(const struct doctor *doctor, struct shim_transport *transport)
{
	_vgpu_cleanup_(vgpu_freep) char *files = NULL, *devices = NULL;
	const char *socket = getenv(VGPU_SOCKET_ENV);
	int r;

	*transport = (struct shim_transport){
		.ops = &shim_transport_socket,
		.shm_fd = -1,
		.socket_fd = -1,
		.doorbell_fds = { -1, -1 },
	};
	if (socket && *socket)
		return shim_transport_socket.open(transport);
	if (asprintf(&files, "%s/dev", doctor->root) < 0)
		files = NULL;
	if (asprintf(&devices, "%s/sys/bus/pci/devices", doctor->root) < 0)
		devices = NULL;
	if (!files || !devices)
		return -ENOMEM;
	transport->ops = &shim_transport_device;
	r = shim_transport_device_open(transport, files);
	if (r != -ENOENT)
		return r;
	transport->ops = &shim_transport_sysfs;
	return shim_transport_sysfs_open(transport, devices);
}

void doctor_add_sentence(struct doctor *doctor, const char *subject, const char *before,
	const char *sentence)
{
	/* What is wrong, a colon, and what to do. */
	const char *colon = strstr(sentence, ": ");

	vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, subject,
		colon ? colon + 2 : "docs/troubleshooting.md has the line", "%s%.*s",
		before, (int)(colon ? colon - sentence : (long)strlen(sentence)),
		sentence);
}

static void tell_failure(struct doctor *doctor, int error)
{
	const char *reason = shim_reason_noted();

	/* That was said of the devices already. */
	if (reason && !(error == -ENODEV && doctor->has_no_device))
		doctor_add_sentence(
			doctor, error == -EPROTO ? "version" : "way", "", reason);
	else if (!reason)
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "way",
			"see docs/troubleshooting.md", "there is no way to the host: %s",
			strerror(-error));
	shim_reason_forget();
}

static bool is_alive(const struct shim_transport *transport)
{
	const struct timespec pause = { .tv_nsec = HEARTBEAT_PAUSE_NS };
	const uint64_t *heartbeat = &transport->header->heartbeat;
	const uint64_t first = __atomic_load_n(heartbeat, __ATOMIC_RELAXED);

	for (int i = 0; i < HEARTBEAT_TRIES; i++) {
		nanosleep(&pause, NULL);
		if (__atomic_load_n(heartbeat, __ATOMIC_RELAXED) != first)
			return true;
	}
	return false;
}

static void tell_version(struct doctor *doctor, const struct shim_transport *transport)
{
	const uint32_t host =
		__atomic_load_n(&transport->header->protocol_minor, __ATOMIC_RELAXED);

	vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "version", NULL,
		"the host speaks protocol version %u.%u, this release %u.%u: %u.%u is in "
		"force",
		VGPU_PROTOCOL_VERSION, host, VGPU_PROTOCOL_VERSION, vgpu_version.minor,
		VGPU_PROTOCOL_VERSION, vgpu_version_agree(host, 0).minor);
}

void doctor_look_at_way(struct doctor *doctor)
{
	struct shim_transport transport;
	int r;

	shim_reason_set_library("vgpu-doctor");
	r = open_way(doctor, &transport);
	if (r) {
		tell_failure(doctor, r);
		return;
	}
	doctor->transport = transport.ops->name;
	vgpu_findings_add(&doctor->found, VGPU_FINDING_OK, "way", NULL,
		"%s, %" PRIu64 " MiB of shared memory",
		transport.ops == &shim_transport_device ? "the kernel's driver"
		: transport.ops == &shim_transport_sysfs
			? "the device by sysfs"
			: "the socket of " VGPU_SOCKET_ENV,
		transport.shm_size >> 20);
	tell_version(doctor, &transport);
	doctor->is_reached = is_alive(&transport);
	if (doctor->is_reached)
		vgpu_findings_add(
			&doctor->found, VGPU_FINDING_OK, "host", NULL, "vgpud is alive");
	else
		vgpu_findings_add(&doctor->found, VGPU_FINDING_FAIL, "host",
			"see the log of vgpud on the host; once it runs again, restart "
			"the virtual machine, or detach and attach its vGPU device",
			"vgpud is gone or does not answer: its heartbeat stands still");
	shim_transport_close(&transport);
}
