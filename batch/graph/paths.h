/* Which jobs read and write which files. Two jobs may share a file only if one depends on the
 * other. */
#ifndef BHI_BATCH_GRAPH_PATHS_H
#define BHI_BATCH_GRAPH_PATHS_H

#include "batch/graph/graph.h"

struct bhi_access {
    uint32_t node;
    uint32_t next; /* the next access of this path, which is older */
    bool writes;
};

enum { BHI_PATHS_SETS = 16, BHI_PATHS_WAYS = 4, BHI_PATHS_ANSWERS = 64 };
_Static_assert(BHI_PATHS_SETS *BHI_PATHS_WAYS == BHI_PATHS_ANSWERS, "all answers are in a set");

/* A path that was looked up, and what came of it (NULL: nothing); both are owned. */
struct bhi_paths_answer {
    char *asked, *real;
};

struct bhi_paths {
    char *folder; /* the folder that relative paths begin at; owned */
    /* The last answers, because jobs name the same folders, kernels and inputs again and again:
     * real paths of folders, and normalized paths. A hash of |asked| (NULL: none) chooses the set,
     * in which the last one that was used comes first. */
    struct bhi_paths_answer folders[BHI_PATHS_ANSWERS], files[BHI_PATHS_ANSWERS];
    struct bhi_names names; /* normalized paths */
    uint32_t *first;        /* by path: its newest access; owned */
    size_t first_capacity;
    struct bhi_access *accesses; /* owned */
    uint32_t access_count;
    size_t access_capacity;
};

/* Returns false if out of memory. */
bool bhi_paths_init(struct bhi_paths *paths, const char *folder);
void bhi_paths_fini(struct bhi_paths *paths);
/* From now on links are followed as they are then. */
void bhi_paths_forget(struct bhi_paths *paths);
/* Normalizes |path|: removes ".", "..", "//", symbolic links, and the batch's folder at the
 * beginning. So two spellings of a file get one text, as the links were at one time since
 * bhi_paths_forget(). Links are not followed if their folder does not exist. The caller owns the
 * text; NULL if out of memory. */
char *bhi_paths_normalize(struct bhi_paths *paths, const char *path);
/* Notes an access of the newest node. *out_twice (may be NULL): the node writes this file already,
 * perhaps under another spelling. Returns false if out of memory. */
bool bhi_paths_add(struct bhi_paths *paths, const struct bhi_job_node *node, const char *path,
                   bool writes, bool *out_twice);
/* Removes the accesses of nodes from |count| on. */
void bhi_paths_truncate(struct bhi_paths *paths, uint32_t count);
/* Two jobs that collide at |path|; |node| was added later than |other|. */
struct bhi_conflict {
    struct bhi_job_node *node, *other;
    const char *path;
    bool node_writes, other_writes;
};
/* Checks the paths of nodes from |first| on: if one job writes a path, its accesses must be ordered
 * by dependencies. Returns false for the first two that are not, in *out_conflict; if out of
 * memory, its |node| is NULL. */
bool bhi_paths_check(struct bhi_paths *paths, struct bhi_graph *graph, uint32_t first,
                     struct bhi_conflict *out_conflict);

#endif
