/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Exposition: a snapshot as text, in the formats of Prometheus and OpenMetrics
 *
 * docs/metrics.md is the reference of all names and labels, which a test compares with
 * what is served. A name that was released keeps its meaning.
 */

#include <stdbool.h>
#include <stddef.h>

#include "metrics/snapshot.h"

enum exposition_format {
	EXPOSITION_PROMETHEUS,	/* text/plain; version=0.0.4 */
	EXPOSITION_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
	_EXPOSITION_FORMAT_N,
};

/*
 * @with_processes:	also the metrics of processes
 * @sizep:		without the NUL that follows
 *
 * Return: the text, to be freed, or NULL without memory.
 */
char *exposition_write(const struct snapshot *snapshot, enum exposition_format format,
	bool with_processes, size_t *sizep);
