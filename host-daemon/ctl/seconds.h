/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Seconds: a time on the command line
 */

/* A whole number of seconds, from 0 to a day. Return: 0 or -EINVAL. */
int seconds_parse(const char *text, unsigned int *secondsp);
