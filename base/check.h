/* Checks our own logic, in every build, and aborts. Never use it for what a worker, the environment
 * or the caller gave us: those get a status. */
#ifndef BHI_BASE_CHECK_H
#define BHI_BASE_CHECK_H

#include <stdlib.h>

#define BHI_CHECK(condition)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#endif
