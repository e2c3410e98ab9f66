/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for libpthread.so.0 and libdl.so.2 of older C libraries, for the linker alone
 *
 * Until glibc 2.29 the loader looks for a function of a version only up to the file from
 * which the linker had it, and since 2.34 the linker has all of these from libc.so.6. So
 * the linker gets these files, where they were, with the versions of *.map. Nothing here
 * is ever called, and no guest has these files.
 */

#define STAND_IN(_name)                                                                  \
	void _name(void);                                                                \
	void _name(void)                                                                 \
	{                                                                                \
	}

#ifdef IS_LIBDL
STAND_IN(dladdr)
STAND_IN(dlclose)
STAND_IN(dlerror)
STAND_IN(dlinfo)
STAND_IN(dlopen)
STAND_IN(dlsym)
#else
STAND_IN(__pthread_register_cancel)
STAND_IN(__pthread_unregister_cancel)
STAND_IN(__pthread_unwind_next)
STAND_IN(pthread_attr_getstack)
STAND_IN(pthread_create)
STAND_IN(pthread_getattr_np)
STAND_IN(pthread_join)
STAND_IN(pthread_key_create)
STAND_IN(pthread_once)
STAND_IN(pthread_setspecific)
STAND_IN(pthread_sigmask)
#endif
