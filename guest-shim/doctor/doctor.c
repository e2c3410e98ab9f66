/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doctor: whether programs in this virtual machine can use the vGPU
 */

#include <stdlib.h>
#include <unistd.h>

#include "vgpu/hello.h"

#include "doctor/doctor.h"

void doctor_init(struct doctor *doctor, const char *root)
{
	int n;

	*doctor = (struct doctor){
		.root = root, .uid = geteuid(), .seconds = DOCTOR_SECONDS
	};
	n = getgroups(DOCTOR_GROUPS_MAX - 1, doctor->groups);
	doctor->n_groups = n < 0 ? 0 : (unsigned int)n;
	/* It need not be one of them. */
	doctor->groups[doctor->n_groups++] = getegid();
}

void doctor_deinit(struct doctor *doctor)
{
	vgpu_findings_deinit(&doctor->found);
}

void doctor_look(struct doctor *doctor)
{
	const char *socket = getenv(VGPU_SOCKET_ENV);

	if (*doctor->root) {
		doctor_look_at_driver(doctor);
		doctor_look_at_group(doctor);
		doctor_look_at_libraries(doctor);
		return;
	}
	/* Programs with the variable use no device. */
	if (!socket || !*socket) {
		doctor_look_at_devices(doctor);
		doctor_look_at_driver(doctor);
	}
	doctor_look_at_way(doctor);
	if (!socket || !*socket)
		doctor_look_at_group(doctor);
	doctor_look_at_libraries(doctor);
	doctor_look_at_calls(doctor);
	doctor_look_at_nvml(doctor);
}
