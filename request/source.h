/* The defines of a source (-D), what it may include (-I), and options of its compiler. The files of -I are read here,
 * before the compile: the compiler gets their text and opens no file. */
#ifndef BHI_REQUEST_SOURCE_H
#define BHI_REQUEST_SOURCE_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

enum { BHI_MAX_DEFINES = 256, BHI_MAX_INCLUDES = 1024, BHI_MAX_SOURCE = 4 << 20 };

struct bhi_source {
    bh_source_define *defines; /* owned, and their texts */
    uint32_t define_count;
    bh_source_include *includes; /* owned, and their texts */
    uint32_t include_count;
    char **include_paths; /* owned, each too: the files that they were read from */
    const char *options;  /* borrowed; of NVRTC; NULL: none */
    bool given;           /* defines or includes were given, also a folder without sources */
    size_t bytes;         /* size of all includes */
    int error;            /* errno of the last refusal; 0: none, or no system call was the reason */
};

/* Adds a define: |length| bytes of |name|; |value| may be NULL. */
bool bhi_source_define(struct bhi_source *source, const char *name, size_t length,
                       const char *value, struct bhi_complaint *complaint);
/* Adds includes. |path| is a file, which is included by its name without folders; or a folder,
 * whose sources are included by their paths in it. */
bool bhi_source_include(struct bhi_source *source, const char *path,
                        struct bhi_complaint *complaint);
void bhi_source_free(struct bhi_source *source);

#endif
