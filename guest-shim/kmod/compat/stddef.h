/* SPDX-License-Identifier: GPL-2.0 */
/* What <stddef.h> declares for vgpu/ring-layout.h, by the kernel's own names.
 */
#include <linux/stddef.h>
