/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Export tables, as cuGetExportTable hands them out
 */

const void *shim_export_runtime_table(void);
