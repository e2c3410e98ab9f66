/* SPDX-License-Identifier: GPL-2.0 */
/* What <stdint.h> declares for vgpu/ring-layout.h, by the kernel's own names.
 */
#include <linux/types.h>
