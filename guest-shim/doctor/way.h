/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Way: the transport that programs would use, and the host behind it
 */

#include "doctor/doctor.h"

/* Adds a failure by a sentence of the libraries, "WHAT IS WRONG: WHAT TO DO", after
 * another text. */
void doctor_add_sentence(struct doctor *doctor, const char *subject, const char *before,
	const char *sentence);
