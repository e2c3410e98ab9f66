/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest trace: the lines that the guest library writes for VGPU_TRACE, and the difference
 * between a guest's clock and the host's
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/guest-trace.h"

/* The library writes times in microseconds, rounded down. */
#define ROUNDED_NS 1000
/* Beyond any time that makes sense; sums of some do not overflow. */
#define SECONDS_MAX 100000000000ull

/* Where a range of possible differences begins, or ends behind. */
struct edge {
	int64_t at;
	int step; /* 1 or -1 */
};

/* Reads digits and the character behind them. */
static bool take_number(const char **textp, char behind, uint64_t max, uint64_t *np)
{
	char *end;

	if (!isdigit((unsigned char)**textp))
		return false;
	errno = 0;
	*np = strtoull(*textp, &end, 10);
	if (errno || *np > max || *end != behind)
		return false;
	*textp = end + 1;
	return true;
}

/* Seconds, a dot and so many digits. */
static bool take_time(const char **textp, char behind, unsigned int digits, uint64_t unit,
	uint64_t *nsp)
{
	uint64_t seconds, rest;

	if (!take_number(textp, '.', SECONDS_MAX, &seconds) ||
		strspn(*textp, "0123456789") != digits ||
		!take_number(textp, behind, 999999999, &rest))
		return false;
	if (seconds > (uint64_t)INT64_MAX / 4000000000u)
		return false;
	*nsp = seconds * 1000000000u + rest * unit;
	return true;
}

static const char *last_bracket(const char *text)
{
	const char *found = NULL;

	for (; (text = strstr(text, " <")); text++)
		found = text + 2;
	return found;
}

bool guest_trace_parse(const char *line, struct guest_call *call)
{
	uint64_t pid, tid, duration;
	const char *end;
	size_t size;

	if (!take_time(&line, ' ', 6, 1000, &call->begin_ns) ||
		!take_number(&line, '/', INT32_MAX, &pid) ||
		!take_number(&line, ' ', INT32_MAX, &tid))
		return false;
	size = strcspn(line, "(");
	if (!line[size] || !size || size >= sizeof(call->name))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)line[i]) && line[i] != '_')
			return false;
	end = last_bracket(line);
	if (!end || !take_time(&end, '>', 9, 1, &duration))
		return false;
	snprintf(call->name, sizeof(call->name), "%.*s", (int)size, line);
	call->pid = (uint32_t)pid;
	call->tid = (uint32_t)tid;
	call->end_ns = call->begin_ns + duration;
	return true;
}

static int64_t length_of(const struct guest_wait *wait)
{
	return wait->end_ns - wait->begin_ns;
}

static void find_shortest(struct guest_waits *waits)
{
	waits->shortest = 0;
	for (size_t i = 1; i < waits->n; i++)
		if (length_of(&waits->list[i]) < length_of(&waits->list[waits->shortest]))
			waits->shortest = i;
}

void guest_waits_add(
	struct guest_waits *waits, const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	struct guest_wait wait;

	if (begin_ns > end_ns || end_ns > INT64_MAX / 2)
		return;
	snprintf(wait.name, sizeof(wait.name), "%s", name);
	wait.begin_ns = (int64_t)begin_ns;
	wait.end_ns = (int64_t)end_ns;
	if (waits->n < GUEST_TRACE_PAIRS)
		waits->list[waits->n++] = wait;
	else if (length_of(&wait) > length_of(&waits->list[waits->shortest]))
		waits->list[waits->shortest] = wait;
	else
		return;
	if (waits->n == GUEST_TRACE_PAIRS)
		find_shortest(waits);
}

/* A beginning comes before an end at the same place: the ranges include both. */
static int compare(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	if (left->at != right->at)
		return left->at < right->at ? -1 : 1;
	return right->step - left->step;
}

/* Adds the range of a pair, if it has one near the guess. Return: the number of edges. */
static size_t add_pair(const struct guest_wait *host, const struct guest_wait *guest,
	int64_t guess, struct edge *edges)
{
	const int64_t low = host->end_ns - guest->end_ns - ROUNDED_NS;
	const int64_t high = host->begin_ns - guest->begin_ns;

	if (strcmp(host->name, guest->name) != 0 || low > high ||
		low < guess - GUEST_TRACE_OFF_NS || high > guess + GUEST_TRACE_OFF_NS)
		return 0;
	edges[0] = (struct edge){ low, 1 };
	edges[1] = (struct edge){ high, -1 };
	return 2;
}

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

/* Return: the depth of the deepest part; of several the one nearest to the guess. */
static size_t find_deepest(const struct edge *edges, size_t n, int64_t guess,
	int64_t *offsetp, int64_t *errorp)
{
	int64_t middle, nearest = INT64_MAX;
	int depth = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		depth += edges[i].step;
		/* A part is between a beginning and the end that follows. */
		if (edges[i].step < 0 || i + 1 == n || edges[i + 1].step > 0 ||
			depth < most)
			continue;
		middle = edges[i].at + (edges[i + 1].at - edges[i].at) / 2;
		if (depth == most && distance(middle, guess) >= nearest)
			continue;
		most = depth;
		nearest = distance(middle, guess);
		*offsetp = middle;
		*errorp = (edges[i + 1].at - edges[i].at + 1) / 2;
	}
	return (size_t)most;
}

size_t guest_trace_match(const struct guest_waits *host, const struct guest_waits *guest,
	int64_t guess, int64_t *offsetp, int64_t *errorp)
{
	struct edge *edges = calloc(2 * host->n * guest->n + 2, sizeof(*edges));
	size_t n = 0, n_pairs;

	*offsetp = guess;
	*errorp = GUEST_TRACE_OFF_NS;
	for (size_t i = 0; edges && i < host->n; i++)
		for (size_t k = 0; k < guest->n; k++)
			n += add_pair(&host->list[i], &guest->list[k], guess, edges + n);
	if (n)
		qsort(edges, n, sizeof(*edges), compare);
	n_pairs = find_deepest(edges, n, guess, offsetp, errorp);
	free(edges);
	return n_pairs;
}
