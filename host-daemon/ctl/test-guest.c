/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host sees of a guest, from replies of vgpud
 */

#include <string.h>

#include "ctl/guest.h"
#include "test.h"

static VgpuCtl__Vm vm;
static VgpuCtl__Session session;
static VgpuCtl__Session *sessions[] = { &session };
static VgpuCtl__Details details;
static struct vgpu_findings found;

static void set_up(void)
{
	vgpu_ctl__vm__init(&vm);
	vgpu_ctl__session__init(&session);
	vgpu_ctl__details__init(&details);
	vm.transport = "ivshmem";
	vm.connections = 1;
	vm.sessions = 1;
	vm.max_processes = 4;
	session.name = "train";
	session.pid = 7;
	details.vm = &vm;
	details.sessions = sessions;
	details.n_sessions = 1;
}

static void check_finding(size_t i, enum vgpu_finding_level level, const char *text)
{
	found = (struct vgpu_findings){ 0 };
	guest_look(&found, &details);
	check_eq(found.n, 4);
	if (!strstr(found.list[i].text, text))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", found.list[i].text,
			text);
	check_eq(found.list[i].level, level);
	check((level == VGPU_FINDING_OK) == !found.list[i].advice);
	vgpu_findings_deinit(&found);
}

TEST(a_machine_that_does_not_run_is_named)
{
	set_up();
	check_finding(0, VGPU_FINDING_OK, "1 connection");
	vm.greeting = VGPU_CTL__GREETING__SILENT;
	check_finding(0, VGPU_FINDING_OK, "1 connection, the guest has not greeted yet");
	vm.greeting = VGPU_CTL__GREETING__GREETED;
	check_finding(0, VGPU_FINDING_OK, "1 connection, the guest has greeted");
	vm.connections = 0;
	check_finding(0, VGPU_FINDING_FAIL, "no QEMU is connected");
	vm.transport = "socket";
	check_finding(0, VGPU_FINDING_WARN, "socket, nobody is connected");
}

TEST(processes_are_named_and_counted)
{
	set_up();
	check_finding(1, VGPU_FINDING_OK, "1 of 4 permitted, the first is train (pid 7");
	vm.sessions = 4;
	check_finding(1, VGPU_FINDING_WARN, "further ones are refused");
	vm.sessions = 0;
	details.n_sessions = 0;
	check_finding(1, VGPU_FINDING_WARN, "no process of the guest");
}

TEST(limits_that_are_nearly_reached_are_named)
{
	set_up();
	check_finding(2, VGPU_FINDING_OK, "0/- are in use");
	vm.device_memory = 94;
	vm.device_memory_limit = 100;
	check_finding(2, VGPU_FINDING_OK, "94/100 are in use");
	vm.device_memory = 95;
	check_finding(2, VGPU_FINDING_WARN, "nearly reached");
	vm.host_memory = UINT64_MAX;
	vm.host_memory_limit = UINT64_MAX;
	check_finding(3, VGPU_FINDING_WARN, "nearly reached");
}

TEST(ends_for_lack_of_memory_are_named)
{
	set_up();
	vm.oom_kills = 3;
	guest_look(&found, &details);
	check_eq(found.n, 5);
	check_eq(found.list[4].level, VGPU_FINDING_WARN);
	check(strstr(found.list[4].text, "3 so far"));
}
