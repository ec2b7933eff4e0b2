/* What belongs to a GLSL source: its defines (-D) and what it may include (-I). The files of -I are
 * read here, before anything is compiled: the compiler sees their text, and no file. */
#ifndef BHI_REQUEST_SOURCE_H
#define BHI_REQUEST_SOURCE_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

enum { BHI_MAX_DEFINES = 256, BHI_MAX_INCLUDES = 1024, BHI_MAX_SOURCE = 4 << 20 };

struct bhi_source {
    bh_glsl_define *defines; /* owned, and their texts */
    uint32_t define_count;
    bh_glsl_include *includes; /* owned, and their texts */
    uint32_t include_count;
    bool given;   /* defines or includes, a folder with none in it among them */
    size_t bytes; /* of the includes */
    int error;    /* errno of the last refusal; 0: none, or nothing to do with the system */
};

/* |length| bytes of |name|; |value| may be NULL. */
bool bhi_source_define(struct bhi_source *source, const char *name, size_t length,
                       const char *value, struct bhi_complaint *complaint);
/* A file, which is then called by its name without folders, or a folder: all of its sources, by
 * their paths in it. */
bool bhi_source_include(struct bhi_source *source, const char *path,
                        struct bhi_complaint *complaint);
void bhi_source_free(struct bhi_source *source);

#endif
