/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Running a program and checking its output
 */

struct run {
	int status; /* exit status, or 128 + signal */
	char out[16384];
	char err[65536];
};

/* Runs argv with these variables and no others but PATH and the sanitizers'. */
void run_program(
	struct run *run, const char *const argv[], const char *const environment[]);

/* The same, and fails the test, showing both outputs, unless the status is 0. */
void run_successfully(
	struct run *run, const char *const argv[], const char *const environment[]);
