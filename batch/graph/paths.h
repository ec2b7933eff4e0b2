/* Which jobs read and write which files. Two jobs may share a file only if one depends on the
 * other. */
#ifndef BHI_BATCH_GRAPH_PATHS_H
#define BHI_BATCH_GRAPH_PATHS_H

#include "batch/graph/graph.h"

struct bhi_access {
    uint32_t node;
    uint32_t next; /* of the same path, added before */
    bool reads, writes;
};

struct bhi_paths {
    char *folder;           /* what paths are relative to; owned */
    char *asked, *real;     /* the folder that was looked at last, and where it is; owned */
    struct bhi_names names; /* paths, normalized */
    uint32_t *first;        /* of each path: its newest access; owned */
    size_t first_capacity;
    struct bhi_access *accesses; /* owned */
    uint32_t access_count;
    size_t access_capacity;
};

/* False: out of memory. */
bool bhi_paths_init(struct bhi_paths *paths, const char *folder);
void bhi_paths_fini(struct bhi_paths *paths);
/* |path| without "." and "..", "//", symbolic links and the folder before it: what is the same file
 * in two spellings, as things are now. Links of folders that are not there are not followed. Owned
 * by the caller; NULL: out of memory. */
char *bhi_paths_normalize(struct bhi_paths *paths, const char *path);
/* Notes what the newest node does. *out_twice (may be NULL): it writes there already, by another
 * spelling perhaps. False: out of memory. */
bool bhi_paths_add(struct bhi_paths *paths, const struct bhi_job_node *node, const char *path,
                   bool writes, bool *out_twice);
/* Forgets the accesses of nodes from |count| on. */
void bhi_paths_truncate(struct bhi_paths *paths, uint32_t count);
/* Two that meet: |node| (which was added later) and |other| at |path|. */
struct bhi_conflict {
    struct bhi_job_node *node, *other;
    const char *path;
    bool node_writes, other_writes;
};
/* Whether all that access the paths of nodes from |first| on come one after the other where one of
 * them writes. False: *out_conflict is the first two that do not; its |node| NULL: out of memory.
 */
bool bhi_paths_check(struct bhi_paths *paths, struct bhi_graph *graph, uint32_t first,
                     struct bhi_conflict *out_conflict);

#endif
