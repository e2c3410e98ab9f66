/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of loading.cu with separate fat binaries
 */

#include "runtime.h"

void run_second(unsigned int *out);
void run_third(unsigned int *out);
