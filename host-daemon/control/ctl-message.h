/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl message: what vgpuctl and vgpud send each other (protocol/ctl/vgpu-ctl.proto)
 *
 * Either side may be any program of the host. So the length of a packet bounds what
 * unpacking it allocates, and a message is used only after its texts and lists were
 * checked here.
 */

#include <stddef.h>

#include "vgpu-ctl.pb-c.h"

/* Change it if a message changes its meaning. */
#define CTL_VERSION 1u

/* One packet. A request has a section's text at most; the default buffer of a socket has
 * room for three replies. */
#define CTL_REQUEST_MAX (16u << 10)
#define CTL_REPLY_MAX (64u << 10)
/* A section's text, or the reason of a refusal, in bytes. */
#define CTL_TEXT_MAX (8u << 10)
#define CTL_VALUE_MAX 1024u
/* More than the keys of any section. */
#define CTL_SETTINGS_MAX 32u
/* One reply has no more of these; the client asks for the next ones. */
#define CTL_VMS_MAX 64u
#define CTL_SESSIONS_MAX 256u
#define CTL_CALLS_MAX 1024u
/* Reasons of a kind, and buckets of a histogram: more than there are. */
#define CTL_REASONS_MAX 64u
#define CTL_BUCKETS_MAX 512u

/* Bits of Hello.features. */
#define CTL_FEATURE_STATS (1ull << 0)
#define CTL_FEATURE_RECORD (1ull << 3)

/*
 * Unpack and check a packet. *reasonp is a sentence, which is never freed.
 *
 * Return: the message, to be freed, or NULL for one that is invalid.
 */
VgpuCtl__Request *ctl_request_new(const void *packet, size_t size, const char **reasonp);
VgpuCtl__Reply *ctl_reply_new(const void *packet, size_t size, const char **reasonp);
VgpuCtl__Hello *ctl_hello_new(const void *packet, size_t size, const char **reasonp);

void ctl_request_freep(VgpuCtl__Request **requestp);
void ctl_reply_freep(VgpuCtl__Reply **replyp);
void ctl_hello_freep(VgpuCtl__Hello **hellop);

/*
 * Packs a message into one packet and sends it.
 *
 * @size_max:	of the packet, CTL_REQUEST_MAX or CTL_REPLY_MAX
 *
 * Return: as packet_send(), -EMSGSIZE for a longer message.
 */
int ctl_send(int fd, const ProtobufCMessage *message, size_t size_max);

/* The same with a descriptor, which remains the caller's; -1: none. */
int ctl_send_fd(int fd, const ProtobufCMessage *message, size_t size_max, int descriptor);
