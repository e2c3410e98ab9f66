/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CPU: what each architecture does with an instruction of its own
 */

/* For each turn of a loop that waits for another processor. */
static inline void vgpu_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	/* Most cores take YIELD for NOP; ISB lasts about as long as PAUSE on x86. */
	__asm__ volatile("isb" : : : "memory");
#else
	__asm__ volatile("" : : : "memory");
#endif
}

/* Asks for a cache line that is about to be written, as this processor's own. */
static inline void vgpu_cpu_prefetch_to_write(const void *place)
{
#if defined(__x86_64__)
	/* Without -mprfchw the builtin asks for a shared line. Processors that do not
	 * know the instruction pass over it (Intel SDM, PREFETCHW). */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)place));
#else
	__builtin_prefetch(place, 1);
#endif
}
