#include "request/source.h"

#include <ctype.h>
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/owner.h"
#include "request/code.h"

static bool refuse_memory(struct bhi_source *source, struct bhi_complaint *complaint) {
    source->error = ENOMEM;
    return bhi_refuse_memory(complaint);
}

/* As the library checks it, which would name the field of its options. */
static bool is_identifier(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (!isalpha(c) && c != '_' && (i == 0 || !isdigit(c))) {
            return false;
        }
    }
    return length > 0;
}

bool bhi_source_define(struct bhi_source *source, const char *name, size_t length,
                       const char *value, struct bhi_complaint *complaint) {
    source->given = true;
    if (!length) {
        return bhi_refuse(complaint, "it has no name: write NAME or NAME=VALUE");
    }
    if (!is_identifier(name, length)) {
        return bhi_refuse(complaint,
                          "'%.*s' is not a name: write letters, digits and _, and no digit first",
                          length > 100 ? 100 : (int)length, name);
    }
    if (value && strpbrk(value, "\r\n")) {
        return bhi_refuse(complaint, "the value is more than one line");
    }
    if (source->define_count == BHI_MAX_DEFINES) {
        return bhi_refuse(complaint, "more than %d defines", BHI_MAX_DEFINES);
    }
    if (!source->defines) {
        source->defines = calloc(BHI_MAX_DEFINES, sizeof *source->defines);
    }
    BHI_AUTO_FREE char *copy = strndup(name, length);
    BHI_AUTO_FREE char *text = value ? strdup(value) : NULL;
    if (!source->defines || !copy || (value && !text)) {
        return refuse_memory(source, complaint);
    }
    source->defines[source->define_count++] =
        (bh_source_define){.name = BHI_STEAL(copy), .value = BHI_STEAL(text)};
    return true;
}

/* Reads the file at |path|, which sources include under the name |name|. */
static bool add_file(struct bhi_source *source, const char *path, const char *name,
                     struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    BHI_AUTO_FREE void *text = NULL;
    size_t size = 0;
    if (source->include_count == BHI_MAX_INCLUDES) {
        return bhi_refuse(complaint, "more than %d files: name those that are included",
                          BHI_MAX_INCLUDES);
    }
    if (!bhi_code_read(path, &text, &size, &source->error, &inner)) {
        return bhi_refuse(complaint, "%.400s: %.500s", path, inner.text);
    }
    source->bytes += size;
    if (source->bytes > BHI_MAX_SOURCE) {
        return bhi_refuse(complaint, "more than %d MiB: name the files that are included",
                          BHI_MAX_SOURCE >> 20);
    }
    if (!source->includes) {
        source->includes = calloc(BHI_MAX_INCLUDES, sizeof *source->includes);
        source->include_paths = calloc(BHI_MAX_INCLUDES, sizeof *source->include_paths);
    }
    BHI_AUTO_FREE char *copy = strdup(name);
    BHI_AUTO_FREE char *from = strdup(path);
    if (!source->includes || !source->include_paths || !copy || !from) {
        return refuse_memory(source, complaint);
    }
    source->include_paths[source->include_count] = BHI_STEAL(from);
    source->includes[source->include_count++] =
        (bh_source_include){.name = BHI_STEAL(copy), .text = BHI_STEAL(text), .length = size};
    return true;
}

/* Returns true for the names of sources. Other files of a folder are not read. */
static bool is_source(const char *name) {
    static const char *const endings[] = {".glsl", ".comp", ".hlsl", ".hlsli",
                                          ".h",    ".inc",  ".cuh",  ".hpp"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof endings[0]; i++) {
        if (!strcmp(ending, endings[i])) {
            return true;
        }
    }
    return false;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* |path| may be a link to a folder. Links inside the folder are not followed, because they may form
 * a loop. */
static bool add_folder(struct bhi_source *source, const char *path,
                       struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *root = strdup(path);
    char *roots[] = {root, NULL};
    FTS *walk = root ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name) : NULL;
    bool good = walk || refuse_memory(source, complaint);
    size_t prefix = strlen(path);
    for (FTSENT *entry; good && (entry = fts_read(walk));) {
        if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
            fts_set(walk, entry, FTS_SKIP); /* such as .git */
        } else if (entry->fts_info == FTS_F && is_source(entry->fts_name)) {
            const char *name = entry->fts_path + prefix;
            name += strspn(name, "/");
            good = add_file(source, entry->fts_path, name, complaint);
        } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR) {
            source->error = entry->fts_errno;
            good = bhi_refuse(complaint, "%.400s: %s", entry->fts_path, strerror(source->error));
        }
    }
    if (good && errno) { /* the normal end sets no errno */
        source->error = errno;
        good = bhi_refuse(complaint, "%s", strerror(source->error));
    }
    if (walk) {
        fts_close(walk);
    }
    return good;
}

bool bhi_source_include(struct bhi_source *source, const char *path,
                        struct bhi_complaint *complaint) {
    struct stat status;
    source->given = true;
    if (stat(path, &status) != 0) {
        source->error = errno;
        return bhi_refuse(complaint, "%s", strerror(source->error));
    }
    if (S_ISDIR(status.st_mode)) {
        return add_folder(source, path, complaint);
    }
    const char *slash = strrchr(path, '/');
    return add_file(source, path, slash ? slash + 1 : path, complaint);
}

void bhi_source_free(struct bhi_source *source) {
    for (uint32_t i = 0; i < source->define_count; i++) {
        free((char *)source->defines[i].name);
        free((char *)source->defines[i].value);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        free((char *)source->includes[i].name);
        free((char *)source->includes[i].text);
        free(source->include_paths[i]);
    }
    free(source->defines);
    free(source->includes);
    free(source->include_paths);
    *source = (struct bhi_source){0};
}
