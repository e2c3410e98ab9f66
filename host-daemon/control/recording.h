/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recording: what one guest process asked of its worker, as a file
 *
 * A file is a sequence of records, each a struct recording_record followed by its
 * payload. The first one is the header; a complete file ends with a CLOSE. Numbers are
 * little-endian. docs/replay.md describes the meaning of the records.
 *
 * A worker writes a recording, and may be compromised; a file can be forged. So a reader
 * gets records by recording_next() only, which checks bounds and checksums, and checks
 * what a payload says itself.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"
#include "control/quota.h"

#define RECORDING_MAGIC "VGPUREC"
/* Changes with anything in this file, and with the meaning of frames. */
#define RECORDING_VERSION 2u
/* A frame has at most half of it. */
#define RECORDING_PAYLOAD_MAX (128u << 10)
/* Bytes of one MEMORY or IMAGE. */
#define RECORDING_PIECE_MAX (64u << 10)
/* Memory is looked at in such units. */
#define RECORDING_UNIT 256u

enum recording_type {
	_RECORDING_NONE,
	RECORDING_HEADER, /* struct recording_header */
	RECORDING_BEGIN,  /* struct recording_call, the frame */
	RECORDING_END,	  /* struct recording_end */
	RECORDING_MEMORY, /* struct recording_memory, the bytes */
	RECORDING_OUTPUT, /* struct recording_output */
	RECORDING_WORDS,  /* struct recording_word, any number of them */
	RECORDING_IMAGE,  /* struct recording_image, the bytes */
	RECORDING_ANSWER, /* struct control_message */
	RECORDING_NOTE,	  /* struct recording_note */
	RECORDING_CLOSE,  /* struct recording_close */
	RECORDING_FAULT,  /* struct recording_fault */
	_RECORDING_N,
};

struct recording_record {
	uint32_t size; /* of the payload */
	uint32_t type; /* enum recording_type */
	uint64_t sum;  /* recording_sum() of type and payload */
};

static_assert(sizeof(struct recording_record) == 16, "fixed size");

/* Texts are NUL-terminated, and "" is unknown. */
struct recording_header {
	char magic[8];
	uint32_t version; /* the place of both never changes */
	uint32_t control_version;
	char release[32];
	char driver[64]; /* a name, as in struct control_ready */
	char device[64]; /* of device 0 */
	uint64_t device_memory;
	int32_t driver_version;
	uint32_t n_devices;
	struct control_assign assign;
	uint64_t quota;	       /* bytes, 0: no limit */
	uint64_t quota_others; /* in use by other processes at the start */
	/* Of softgpu; is_softgpu 0: another driver. 0 and "" are its defaults. */
	uint32_t is_softgpu;
	uint32_t cc;
	uint64_t memory;
	uint32_t n_softgpus;
	uint32_t n_threads;
	uint32_t timeout_ms;
	uint32_t schedule;
	char name[64];
	char check[64];
	uint64_t limits[QUOTA_LIMITS_MAX]; /* of the VM at the start, as in its page */
	uint64_t reserved[8];
};

struct recording_call {
	uint64_t number; /* from 1, consecutive */
	uint8_t frame[]; /* struct vgpu_frame */
};

struct recording_end {
	uint64_t number;
	uint32_t call; /* as of its frame */
	int32_t result;
	uint32_t reply_size; /* UINT32_MAX: it has no reply */
	uint32_t reserved;
	uint64_t digest; /* of the packed reply */
};

struct recording_memory {
	uint64_t offset; /* in the shared memory */
	uint8_t bytes[];
};

struct recording_output {
	uint64_t number; /* of the call */
	uint64_t offset; /* in the shared memory */
	uint64_t size;
	uint64_t digest;
};

struct recording_word {
	uint32_t offset;   /* in the channel's area */
	uint32_t is_short; /* of 4 bytes instead of 8 */
	uint64_t value;
};

struct recording_image {
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size; /* of the image */
	uint64_t offset;
	uint8_t bytes[];
};

enum recording_note_kind {
	RECORDING_NOTE_UNCOVERED = 1, /* kernels can read memory that is not recorded */
	RECORDING_NOTE_OVERLAP,	      /* calls ran at the same time for long */
};

struct recording_note {
	uint32_t kind;
	uint32_t reserved;
};

/* A kernel of softgpu has broken a context. Its place among the other records says when,
 * with a call that was run at that time before or after it. */
struct recording_fault {
	int32_t result;
	uint32_t reserved;
	char text[632]; /* a sentence */
};

struct recording_close {
	uint32_t reason; /* enum vgpu_channel_reason */
	uint32_t reserved;
};

/* Digests for comparison: not cryptographic. Continues with the sum so far, 0 at first;
 * all parts but the last have a multiple of 8 bytes. */
uint64_t recording_sum(uint64_t sum, const void *bytes, size_t size);
/* What a record with that payload, which may be in two parts, has as its sum. */
uint64_t recording_record_sum(uint32_t type, const void *first, size_t first_size,
	const void *second, size_t second_size);

/* A file that is being read. */
struct recording {
	const uint8_t *bytes;
	size_t size;
	size_t at;	    /* of the next record */
	const char *reason; /* with RECORDING_E_BROKEN: a sentence */
};

enum {
	_RECORDING_E_SUCCESS,
	RECORDING_E_END,    /* there is no further record */
	RECORDING_E_CUT,    /* the file ends within a record */
	RECORDING_E_BROKEN, /* not a recording, of another version, or damaged */
};

struct recording_item {
	uint32_t type;
	uint32_t size;
	const uint8_t *payload; /* not aligned */
	size_t at;		/* of the record in the file */
};

/*
 * Begins to read: copies and checks the header.
 *
 * Return: 0, RECORDING_E_CUT or RECORDING_E_BROKEN.
 */
int recording_open(struct recording *recording, const void *bytes, size_t size,
	struct recording_header *header);

/* Whether the shared memory of the session has these extents. */
bool recording_has_extents(
	const struct recording_header *header, uint32_t first, uint32_t n);

/*
 * Gets the next record. Its type is known, and its payload has the size that belongs to
 * it; frames are at most VGPU_FRAME_MAX long and have the size that they say; ranges of
 * memory are within the shared memory of the header, words within the area.
 *
 * Return: 0, RECORDING_E_END, RECORDING_E_CUT or RECORDING_E_BROKEN.
 */
int recording_next(struct recording *recording, const struct recording_header *header,
	struct recording_item *item);

/* What a whole file has, as far as it can be read. */
struct recording_summary {
	uint64_t n_calls;
	uint64_t n_ended;
	uint64_t n_outputs;
	uint64_t memory; /* bytes */
	uint64_t n_faults;
	bool is_uncovered;
	bool is_overlapping;
	bool is_closed;
	uint32_t close_reason;
};

/* Return: as recording_next(), RECORDING_E_END for a file that is not damaged. */
int recording_summarise(struct recording *recording,
	const struct recording_header *header, struct recording_summary *summary);
