/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can fuzz targets be built here?
 */

int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);

int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size)
{
	(void)data, (void)size;
	return 0;
}
