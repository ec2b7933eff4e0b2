/* An always-on check of our own logic: never of what a worker, the environment or the caller
 * gave us (those get a status). It aborts, in every build. */
#ifndef BHI_BASE_CHECK_H
#define BHI_BASE_CHECK_H

#include <stdlib.h>

#define BHI_CHECK(condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#endif
