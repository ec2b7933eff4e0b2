/* Copies what a worker can still write: each word of it is loaded once, so that what is checked
 * afterwards is what is used. */
#ifndef BHI_BASE_COPY_ONCE_H
#define BHI_BASE_COPY_ONCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* |from| is aligned to 8 and readable up to the next multiple of 8 behind |bytes|. */
static inline void bhi_copy_once(void *out, const void *from, size_t bytes) {
    const uint64_t *source = from;
    for (size_t done = 0; done < bytes; done += sizeof *source) {
        uint64_t word = __atomic_load_n(&source[done / sizeof *source], __ATOMIC_RELAXED);
        memcpy((char *)out + done, &word, bytes - done < sizeof word ? bytes - done : sizeof word);
    }
}

#endif
