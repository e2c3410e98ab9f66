/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A host that publishes a page and does nothing else: a thread of the test
 */

#include "vgpu/status.h"

#define PAGE_DOUBLE_DEVICES 2u

/* Begins with two devices, without sensors and processes, and sets VGPU_SOCKET. */
struct vgpu_status *page_double_start(void);

/* Everything between the two is seen at once. */
void page_double_begin(void);
void page_double_end(void);

/* The host goes away, with all its connections, and comes back with the same page. */
void page_double_stop(void);
void page_double_restart(void);

/* Stops it, and releases the page. */
void page_double_finish(void);
