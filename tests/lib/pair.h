/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private vgpud for one test
 *
 * Started in the test's temporary directory with one [vm test], over the socket transport
 * by default. Any error here fails the test.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pair_options {
	const char *driver;	 /* default: soft */
	const char *worker;	 /* default: the worker of the build */
	const char *transport;	 /* default: socket */
	const char *vgpud_lines; /* more of [vgpud], each line with its newline */
	const char *vm_lines;	 /* more of [vm test] */
	const char *sections;	 /* more sections */
	const char *argument;	 /* of vgpud, besides the configuration */
	void (*before_fn)(void); /* called in vgpud's process before it is executed */
};

struct pair {
	pid_t pid;	  /* of vgpud */
	char dir[96];	  /* the test's temporary directory */
	char socket[128]; /* of [vm test] */
	char config[128];
	char log[128];
};

/* One "session ended" line of the log. */
struct pair_session {
	char vm[64];
	unsigned int channel;
	unsigned int pid; /* of the guest process */
	uint64_t launches;
	uint64_t copies_h2d;
	uint64_t copies_d2h;
	uint64_t copies_d2d;
	uint64_t memsets;
	uint64_t bytes_h2d;
	uint64_t bytes_d2h;
	uint64_t calls;
	uint64_t refused_async;
	uint64_t slow_calls;
	uint64_t images_sent;
	uint64_t images_found;
	uint64_t image_bytes;
	int worker;
	char reason[32];
};

/* Starts vgpud, waits until it is ready, and names its socket in VGPU_SOCKET. NULL
 * options are the defaults. */
void pair_start(struct pair *pair, const struct pair_options *options);

/* The same without waiting, for a vgpud that may fail. */
void pair_spawn(struct pair *pair, const struct pair_options *options);

/* Ends vgpud by SIGTERM; checks that it exits with 0, that no sanitizer reported an error
 * in any of its processes, and that no process, socket or lock is left. */
void pair_stop(struct pair *pair);

/* Waits until vgpud has ended by itself. Returns: as waitpid() gives it. */
int pair_wait_exit(struct pair *pair);

/* Waits until the log has that many lines with this text in them. */
void pair_wait_log(const struct pair *pair, const char *text, unsigned int n);

/* Returns: how many lines of the log have this text in them. */
unsigned int pair_count_log(const struct pair *pair, const char *text);

/* Waits for the n-th session's end (from 0) and reads its line. */
void pair_read_session(
	const struct pair *pair, unsigned int n, struct pair_session *session);

/* Writes the log to stderr, for a test that is about to fail. */
void pair_print_log(const struct pair *pair);

/* Waits for the broker, which for a moment after its death does not exist.
 * Returns: its process. */
pid_t pair_find_broker(const struct pair *pair);

/* Skips a test that counts descriptors of vgpud: /proc shows them to root alone, because
 * vgpud is not dumpable. */
void pair_needs_descriptors(void);

/* Returns: how many processes have vgpud as an ancestor, itself not counted. */
unsigned int pair_count_children(const struct pair *pair);
