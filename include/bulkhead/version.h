/* The versions of the headers and of the library. */
#ifndef BULKHEAD_VERSION_H
#define BULKHEAD_VERSION_H

#include <bulkhead/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Major version of these headers. Before 1.0 a program and a library fit if major and minor are the
 * same; the library's SONAME has both (docs/install.md). */
#define BH_VERSION_MAJOR 0
/* Minor version of these headers. */
#define BH_VERSION_MINOR 2
/* Patch version of these headers. */
#define BH_VERSION_PATCH 0
/* A version as a number. A later version has a larger number. */
#define BH_VERSION_NUMBER(major, minor, patch)                                                     \
    ((uint32_t)(major) << 24 | (uint32_t)(minor) << 12 | (uint32_t)(patch))
/* Version of these headers, as a number. */
#define BH_VERSION BH_VERSION_NUMBER(BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH)

/* Returns the version of the library that the program runs with, as a number like BH_VERSION. */
BH_API uint32_t bh_version(void);
/* Returns the library's version as text, "MAJOR.MINOR.PATCH": a constant string. */
BH_API const char *bh_version_string(void);

#ifdef __cplusplus
}
#endif

#endif
