/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Executable graphs, as far as the shim must know them
 */

#include "vgpu/cuda.h"

/* Something of it changes: its next launch is answered by the driver. */
void shim_graph_exec_forget(CUgraphExec handle);
