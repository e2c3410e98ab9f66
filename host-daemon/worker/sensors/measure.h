/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Measure: reads all sensors once
 */

#include "control/sensors.h"
#include "worker/sensors/nvml.h"

void measure(const struct nvml *nvml, struct sensors_page *page);
