/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose entry points are written by hand, as they are sent */

#pragma once

#include "vgpu/cuda.h"

/* Each checks its arguments, sends the call, and returns the host's result. */
CUresult shim_remote_cuEventQuery(CUevent hEvent);
