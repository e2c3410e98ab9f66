/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Options: the command line of a worker, which only vgpud writes
 */

#include "driver/driver.h"
#include "vgpu/log.h"
#include "worker/run/sandbox.h"

enum {
	_OPTIONS_E_SUCCESS,

	OPTIONS_E_HELP,	   /* requested and printed */
	OPTIONS_E_INVALID, /* a line on stderr names the argument */
};

struct options {
	int control; /* descriptors inherited */
	int stats;
	enum vgpu_log_level log_level;
	struct driver_options driver;
	struct sandbox_options sandbox;
	bool meter; /* drivers other than softgpu are measured */
};

/* Return: 0, OPTIONS_E_HELP, OPTIONS_E_INVALID or -errno. */
int options_parse(struct options *options, int argc, char **argv);
