/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences: what is wrong with the way to the host, and what to do
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/hello.h"

#include "wire/sentence.h"

const char shim_sentence_no_answer[] =
	"vgpud on the host is gone or does not answer: see its log there; once it runs "
	"again, restart the virtual machine, or detach and attach its vGPU device";

const char shim_sentence_removed[] = "the vGPU device was taken from this virtual "
				     "machine: once it has one again, start "
				     "the program anew";

/* The text before and after a name. */
struct sentence {
	int error;
	const char *before;
	const char *behind;
};

static const struct sentence of_device[] = {
	{ EACCES, "this user may not open the vGPU device ",
		" (PCI device 1af4:1110): add the user to the group vgpu (usermod -aG "
		"vgpu USER) and log in again; install.sh of the guest package makes that "
		"group" },
	{ EPERM, "the kernel lets no program map the vGPU device ",
		": it is locked down, as under Secure Boot; load the kernel's driver "
		"vgpu "
		"(kernel-driver.md of the guest package), or switch Secure Boot off" },
	{ EROFS, "/sys is read-only here, so no program can open the vGPU device ",
		": give a container /sys/devices writable (docker run -v "
		"/sys/devices:/sys/devices), a systemd unit ProtectKernelTunables=no" },
	{ EINVAL, "the kernel's driver vgpu has taken the vGPU device ",
		", and there is no /dev/vgpu0 here: give a container the device (docker "
		"run --device /dev/vgpu0), a systemd unit PrivateDevices=no" },
	{ ENXIO, "no vgpud is behind the ivshmem device ",
		" (PCI device 1af4:1110): start vgpud on the host, then the virtual "
		"machine with the device at vgpud's socket" },
	{ ENOSPC, "the memory of the vGPU device ",
		" (PCI device 1af4:1110) has no addresses here, as dmesg says of its BAR "
		"2: lower size = in vgpud.conf on the host, or give the virtual machine "
		"a larger window for 64-bit PCI memory" },
	{ ENOENT, "there is no ",
		" to find PCI devices in: mount /sys, and attach a vGPU device (PCI "
		"device 1af4:1110, ivshmem) to the virtual machine" },
};

static const struct sentence of_driver[] = {
	{ EACCES, "this user may not open ",
		": add the user to the group vgpu (usermod -aG vgpu USER) and log in "
		"again; install.sh of the guest package makes that group" },
	{ EPERM, "this container or service may not open ",
		": allow the device (docker run --device /dev/vgpu0, "
		"DeviceAllow=/dev/vgpu0 rw of systemd)" },
	{ EPROTO, "the kernel's driver behind ",
		" is of another release than this libcuda.so.1: install the guest "
		"package of the host's release, and load the driver again" },
	{ ENODEV, "the vGPU device was just taken from this virtual machine: ", "" },
};

static const struct sentence of_socket[] = {
	{ ENOENT, "there is no socket ",
		", which VGPU_SOCKET names: start vgpud with it, or correct "
		"VGPU_SOCKET" },
	{ ECONNREFUSED, "nobody serves the socket ",
		", which VGPU_SOCKET names: start vgpud" },
	{ EACCES, "this user may not use the socket ",
		", which VGPU_SOCKET names: let socket-group = in vgpud.conf be a group "
		"of the user" },
	{ ETIMEDOUT, "vgpud does not answer at the socket ", ": see its log" },
	{ ECONNRESET, "vgpud closed the connection to the socket ", ": see its log" },
};

/* Return: whether the list has a sentence for the error. */
static bool find(char text[SHIM_SENTENCE_SIZE], const struct sentence *list, size_t n,
	const char *name, int error)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].error != -error)
			continue;
		snprintf(text, SHIM_SENTENCE_SIZE, "%s%.256s%s", list[i].before, name,
			list[i].behind);
		return true;
	}
	return false;
}

void shim_sentence_of_device(char text[SHIM_SENTENCE_SIZE], const char *name, int error)
{
	if (!name)
		snprintf(text, SHIM_SENTENCE_SIZE,
			"this machine has no vGPU device (PCI device 1af4:1110, "
			"ivshmem): attach one to the virtual machine, as QEMU's -device "
			"ivshmem-doorbell does");
	else if (!find(text, of_device, sizeof(of_device) / sizeof(of_device[0]), name,
			 error))
		snprintf(text, SHIM_SENTENCE_SIZE,
			"the vGPU device %.256s (PCI device 1af4:1110) cannot be used: "
			"%s",
			name, strerror(-error));
}

void shim_sentence_of_driver(char text[SHIM_SENTENCE_SIZE], const char *path, int error)
{
	if (!find(text, of_driver, sizeof(of_driver) / sizeof(of_driver[0]), path, error))
		snprintf(text, SHIM_SENTENCE_SIZE, "the device %.256s cannot be used: %s",
			path, strerror(-error));
}

void shim_sentence_of_socket(char text[SHIM_SENTENCE_SIZE], const char *path, int error)
{
	if (!find(text, of_socket, sizeof(of_socket) / sizeof(of_socket[0]), path, error))
		snprintf(text, SHIM_SENTENCE_SIZE,
			"the socket %.256s, which VGPU_SOCKET names, cannot be used: %s",
			path, strerror(-error));
}

static void of_dead_worker(char text[SHIM_SENTENCE_SIZE], uint64_t signal)
{
	const char *name = signal && signal < 64 ? strsignal((int)signal) : NULL;

	snprintf(text, SHIM_SENTENCE_SIZE,
		"the process that served this one on the host died%s%s%s: vgpud's log "
		"says more; please report it, unless somebody killed it",
		name ? " (" : "", name ? name : "", name ? ")" : "");
}

/* Those that have no number. */
static const char *const of_channel[_VGPU_REASON_N] = {
	[VGPU_REASON_NO_DEVICE] =
		"the driver on the host does not start, or has no device: nvidia-smi has "
		"to work there, or set driver = soft in vgpud.conf; vgpud's log says "
		"more",
	[VGPU_REASON_LIMIT] =
		"the shared memory of this virtual machine has no room for one more "
		"process: end one, or raise size = in its section of vgpud.conf on the "
		"host",
	[VGPU_REASON_HOST] =
		"the host could not serve this process: vgpud's log says why",
	[VGPU_REASON_PROTOCOL] =
		"the host ended the session, because what this process sent broke the "
		"protocol: a program that writes beyond its memory does that; if this "
		"one does not, please report it",
	[VGPU_REASON_SHUTDOWN] =
		"vgpud on the host was told to stop: once it runs again, restart the "
		"virtual machine, or detach and attach its vGPU device",
	[VGPU_REASON_NO_DRIVER] = "the host has no driver to serve with: its NVIDIA "
				  "driver (libcuda.so.1), or "
				  "what driver = in vgpud.conf names, was not found; "
				  "vgpud's log says which file is missing, and what to "
				  "install or to set",
};

void shim_sentence_of_channel(
	char text[SHIM_SENTENCE_SIZE], const struct vgpu_channel_entry *entry)
{
	const uint32_t reason = entry->reason;
	const unsigned long long detail = entry->detail;

	switch (reason) {
	case VGPU_REASON_PROCESSES:
		snprintf(text, SHIM_SENTENCE_SIZE,
			"this virtual machine has reached its limit of %llu processes on "
			"the GPU: end one, or raise max-processes = in its section of "
			"vgpud.conf on the host",
			detail);
		return;
	case VGPU_REASON_WORKERS:
		snprintf(text, SHIM_SENTENCE_SIZE,
			"the host has reached its limit of %llu processes of all virtual "
			"machines together: end one, or raise max-workers = in "
			"vgpud.conf on the host",
			detail);
		return;
	case VGPU_REASON_HOST_MEMORY:
		snprintf(text, SHIM_SENTENCE_SIZE,
			"the host ended the session: the processes of this virtual "
			"machine exceeded their limit of %llu MiB of the host's memory, "
			"and this one used most; use less, or raise host-memory = in its "
			"section of vgpud.conf",
			detail);
		return;
	case VGPU_REASON_WORKER_DIED:
		of_dead_worker(text, detail);
		return;
	default:
		snprintf(text, SHIM_SENTENCE_SIZE, "%s",
			reason < _VGPU_REASON_N && of_channel[reason]
				? of_channel[reason]
				: of_channel[VGPU_REASON_HOST]);
	}
}
