/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flight files: what a worker's flight recorder had, one file an incident
 *
 * The name is VM@TIME-WORKER-KIND.txt, so that the names of one VM sort by time; no name
 * of a VM has an '@'. A VM has at most FLIGHT_FILES_MAX, the oldest is removed first. A
 * file appears under its name when it is complete.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/flight-text.h"

/* Of one VM, each of some 100 KiB at most. */
#define FLIGHT_FILES_MAX 16u

struct flight_report {
	char vm[CONTROL_VM_NAME_MAX];
	char comm[16];	 /* of the guest process; printable */
	char reason[96]; /* printable */
	char kind[16];	 /* of the incident, for the name of the file: "fault" or "end" */
	uint32_t channel;
	uint32_t guest_pid;
	pid_t worker;
	uint64_t worker_id;
	struct flight_time time;
	int64_t date;	      /* seconds since 1970 */
	bool is_of_fault;     /* the calls are those of `at_fault` */
	struct flight flight; /* a copy */
};

/* Writes the file, and removes the oldest ones of the VM. Return: 0 or -errno. */
int flight_file_write(const char *folder, const struct flight_report *report);

/*
 * The same on a thread, because a file system may be slow; one that fails is logged
 * there. Takes the report, which is from malloc(), in any case.
 *
 * Return: 0, or -errno: none is written.
 */
int flight_file_start(const char *folder, struct flight_report *report);
