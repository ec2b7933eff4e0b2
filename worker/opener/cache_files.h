/* Pipeline caches in a folder: a file for each tenant, device, driver and kernel. The names of all
 * of a tenant, device and driver begin alike, and their number is bounded. Only the opener calls this: each call can hang if the folder's mount hangs. */
#ifndef BHI_WORKER_OPENER_CACHE_FILES_H
#define BHI_WORKER_OPENER_CACHE_FILES_H

#include "worker/opener/cache_envelope.h"

#include <stddef.h>
#include <stdint.h>

struct bhi_cache_file {
    const char *folder;
    uint8_t identity[BHI_ENVELOPE_IDENTITY]; /* gives the file's name */
    int area;                                /* the memory described in cache_area.h */
    uint64_t room;
};

/* Copies the file's content into the area. Returns 0, also if there is no file or it is not trusted
 * (then *out_bytes is 0), or -errno. |what| says which call failed, or why the file is not trusted;
 * empty: nothing to say. */
int bhi_cache_load(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what, size_t size);
/* Replaces the file, completely or not at all, with what the worker left in the area. If the worker
 * left nothing, writes nothing. Makes the folder (0700) if it is missing. */
int bhi_cache_store(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                    size_t size);

#endif
