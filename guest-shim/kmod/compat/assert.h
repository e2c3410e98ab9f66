/* SPDX-License-Identifier: GPL-2.0 */
/* What <assert.h> declares for vgpu/ring-layout.h, by the kernel's own names.
 */
#include <linux/build_bug.h>
