/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All that the generated entry points call
 */

#include "runtime/array.h"
#include "runtime/code.h"
#include "runtime/context.h"
#include "runtime/copy-node.h"
#include "runtime/copy.h"
#include "runtime/driver.h"
#include "runtime/fill.h"
#include "runtime/function.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/node.h"
#include "runtime/order.h"
#include "runtime/peer.h"
#include "runtime/properties.h"
#include "runtime/texture.h"
#include "runtime/thread.h"
#include "runtime/types.h"
#include "runtime/version.h"
