#include "batch/journal/used.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static bool append(struct bhi_used *used, const char *bytes, size_t size) {
    if (!BHI_ARRAY_RESERVE(used->bytes, used->capacity, used->size + size)) {
        return false;
    }
    memcpy(used->bytes + used->size, bytes, size);
    used->size += size;
    return true;
}

bool bhi_used_add(struct bhi_used *used, const struct bhi_used_mark *mark, const char *path) {
    char text[BHI_USED_MARK_TEXT];
    const size_t before = used->size;
    bhi_used_mark_write(mark, text);
    if (append(used, text, strlen(text) + 1) && append(used, path, strlen(path) + 1)) {
        return true;
    }
    used->size = before;
    return false;
}

bool bhi_used_append(struct bhi_used *used, const struct bhi_used *others) {
    return !others->size || append(used, others->bytes, others->size);
}

const char *bhi_used_next(const struct bhi_used *used, const char **at) {
    if (!used->size) {
        return NULL;
    }
    const char *end = used->bytes + used->size;
    if (!*at) {
        *at = used->bytes;
    } else {
        *at += strlen(*at) + 1; /* the mark, */
        *at += strlen(*at) + 1; /* and the path */
    }
    return *at < end ? *at : NULL;
}

void bhi_used_free(struct bhi_used *used) {
    free(used->bytes);
    *used = (struct bhi_used){.bytes = NULL};
}
