/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The end of this process after a number of further instructions
 */

/* The process is killed after about so many instructions of the calling thread; where
 * they cannot be counted, at once. */
void dying_after(unsigned long n_instructions);
