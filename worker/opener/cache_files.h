/* Pipeline caches in a folder: one file for each tenant, device and driver, and the key of their
 * MACs. The opener's: any of this can hang where the folder's mount does. */
#ifndef BHI_WORKER_OPENER_CACHE_FILES_H
#define BHI_WORKER_OPENER_CACHE_FILES_H

#include "worker/opener/cache_envelope.h"

#include <stddef.h>
#include <stdint.h>

struct bhi_cache_file {
    const char *folder;
    uint8_t identity[BHI_ENVELOPE_IDENTITY]; /* names the file */
    int area;                                /* cache_area.h */
    uint64_t room;
};

/* Puts what the file has into the area. Returns 0, also where there is none or it is not to be
 * trusted (*out_bytes is 0 then), or -errno; |what| says which call, or why; empty: nothing to say.
 */
int bhi_cache_load(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what, size_t size);
/* Replaces the file with what the worker left in the area: whole, or not at all. Nothing is written
 * where it has left nothing. Makes folder (0700) and key (0600) where they are missing. */
int bhi_cache_store(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                    size_t size);

#endif
