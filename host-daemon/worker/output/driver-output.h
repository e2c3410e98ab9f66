/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Driver output: the standard output and error of a driver
 */

struct session;

/*
 * Replaces the descriptors 1 and 2 by pipes and starts the thread that reads them; the
 * log continues on the former descriptor 2. Once, before the sandbox.
 *
 * Return: 0 or -errno.
 */
int driver_output_start(void);

/* From here on, output belongs to the session; earlier output is logged or dropped. */
void driver_output_serve(struct session *session);

/* Reads all output written so far, if driver_output_start() was called. */
void driver_output_collect(void);
