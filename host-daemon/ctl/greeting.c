/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greeting: whether the guest of a machine has sent its boot id
 *
 * The host sees the guest only through the shared memory: the kernel's driver writes the
 * boot id there when it is loaded, and so does each process that uses the device. A guest
 * without that driver is silent until the first of its programs runs. So nobody can wait
 * for a guest in general, and all waiting here has an end.
 */

#include <stdint.h>
#include <time.h>

#include "ctl/greeting.h"
#include "vgpud/clock.h"

/* Between two questions; vgpud looks at the memory ten times a second. */
#define ASK_MS 200

static enum ctl_status ask(struct client *client, const char *vm, bool *is_connectedp,
	VgpuCtl__Greeting *greetingp)
{
	VgpuCtl__Reply *reply;
	enum ctl_status status = client_find(client, vm, &reply);

	if (status)
		return status;
	if (!reply)
		return ctl_fail(CTL_NO_VM, "vgpud has no machine %s any more", vm);
	*is_connectedp = reply->show->vm->connections > 0;
	*greetingp = reply->show->vm->greeting;
	ctl_reply_freep(&reply);
	return CTL_OK;
}

static enum ctl_status give_up(const char *vm, unsigned int seconds, bool is_connected)
{
	if (!is_connected)
		return ctl_fail(CTL_SILENT,
			"%s has the device, but after %u s its QEMU is not connected to "
			"vgpud: see vgpuctl logs %s",
			vm, seconds, vm);
	return ctl_fail(CTL_SILENT,
		"%s has the device, but its guest has not greeted within %u s: without "
		"the kernel's driver it does when a program there uses the device; run "
		"vgpu-doctor in the guest",
		vm, seconds);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

enum ctl_status greeting_wait(struct client *client, const char *vm, unsigned int seconds,
	VgpuCtl__Greeting *greetingp)
{
	const int64_t end = clock_now() + (int64_t)seconds * 1000;
	bool is_connected = false, is_told = false;

	for (;;) {
		enum ctl_status status = ask(client, vm, &is_connected, greetingp);

		if (status || !seconds || *greetingp == VGPU_CTL__GREETING__GREETED)
			return status;
		if (*greetingp == VGPU_CTL__GREETING__UNTOLD)
			return ctl_fail(CTL_SILENT,
				"this vgpud does not tell whether guests have greeted");
		if (!is_told)
			ctl_fail(CTL_SILENT,
				"waiting up to %u s until the guest of %s greets: its "
				"kernel's driver, or a program that uses the device",
				seconds, vm);
		is_told = true;
		if (clock_now() >= end)
			return give_up(vm, seconds, is_connected);
		pause_ms(ASK_MS);
	}
}
