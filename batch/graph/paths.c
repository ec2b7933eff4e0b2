#include "batch/graph/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/sort.h"

#define NO_ACCESS UINT32_MAX

enum { LINKS = 40 }; /* the most links in a row that are followed, as in the kernel */

bool bhi_paths_init(struct bhi_paths *paths, const char *folder) {
    *paths = (struct bhi_paths){.folder = strdup(folder)};
    bhi_names_init(&paths->names);
    return paths->folder;
}

void bhi_paths_fini(struct bhi_paths *paths) {
    bhi_names_fini(&paths->names);
    free(paths->folder);
    bhi_paths_forget(paths);
    free(paths->first);
    free(paths->accesses);
    *paths = (struct bhi_paths){0};
}

/* Appends the parts of |path| to |out|, which is empty or ends in "/part". */
static char *append_parts(char *begin, char *out, const char *path) {
    for (;;) {
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        if (length == 0) {
            return out;
        }
        if (length == 2 && !memcmp(path, "..", 2)) {
            while (out > begin && *--out != '/') {
                continue;
            }
        } else if (!(length == 1 && *path == '.')) {
            *out++ = '/';
            memcpy(out, path, length);
            out += length;
        }
        path += length;
    }
}

/* Removes "." and ".." from the text alone, without looking at files. */
static char *lexical(const struct bhi_paths *paths, const char *path) {
    char *whole = malloc(strlen(paths->folder) + strlen(path) + 3);
    if (!whole) {
        return NULL;
    }
    char *end = append_parts(whole, whole, path[0] == '/' ? "" : paths->folder);
    end = append_parts(whole, end, path);
    *end = '\0';
    return whole;
}

static void forget(struct bhi_paths_answer *answer) {
    free(answer->asked);
    free(answer->real);
    *answer = (struct bhi_paths_answer){.asked = NULL};
}

void bhi_paths_forget(struct bhi_paths *paths) {
    for (size_t i = 0; i < BHI_PATHS_ANSWERS; i++) {
        forget(&paths->folders[i]);
        forget(&paths->files[i]);
    }
}

static bool is_to(const struct bhi_paths_answer *answer, const char *path) {
    return answer->asked && !strcmp(answer->asked, path);
}

/* Returns the answer for |path|; if it is to something else, that is the one to replace. */
static struct bhi_paths_answer *answer_to(const struct bhi_paths *paths,
                                          struct bhi_paths_answer *answers, const char *path) {
    const uint64_t hash = bhi_names_hash(&paths->names, path);
    struct bhi_paths_answer *set = &answers[hash % BHI_PATHS_SETS * BHI_PATHS_WAYS];
    size_t at = 0;
    while (at < BHI_PATHS_WAYS - 1 && !is_to(&set[at], path)) {
        at++;
    }
    const struct bhi_paths_answer answer = set[at];
    memmove(set + 1, set, at * sizeof *set);
    set[0] = answer;
    return set;
}

/* Returns the real path of |folder| (taken over); NULL: it does not exist, or out of memory. */
static const char *real_folder(struct bhi_paths *paths, char *folder) {
    struct bhi_paths_answer *answer = answer_to(paths, paths->folders, folder);
    if (!is_to(answer, folder)) {
        forget(answer);
        *answer = (struct bhi_paths_answer){folder, realpath(folder, NULL)};
    } else {
        free(folder);
    }
    return answer->real;
}

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* Finds where the link at |path| (absolute) leads, with the links of the folder followed; NULL:
 * into no folder. Returns false if out of memory. */
static bool step(const char *path, char **out_next) {
    char target[PATH_MAX], *whole;
    const ssize_t length = readlink(path, target, sizeof target - 1);
    *out_next = NULL;
    if (length <= 0) {
        return true;
    }
    target[length] = '\0';
    const int folder = target[0] == '/' ? 0 : (int)(strrchr(path, '/') + 1 - path);
    if (asprintf(&whole, "%.*s%s", folder, path, target) < 0) {
        return false;
    }
    char *base = strrchr(whole, '/');
    *base++ = '\0';
    bool good = true;
    if (*base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0) {
        char *real = realpath(*whole ? whole : "/", NULL);
        if (real && asprintf(out_next, "%s/%s", strcmp(real, "/") != 0 ? real : "", base) < 0) {
            *out_next = NULL;
            good = false;
        }
        free(real);
    }
    free(whole);
    return good;
}

/* Follows the links at |*path| (absolute, owned), also if what they lead to does not exist. */
static bool follow_links(char **path) {
    for (int i = 0; i < LINKS && is_link(*path); i++) {
        char *next = realpath(*path, NULL);
        if (!next && !step(*path, &next)) {
            return false;
        }
        if (!next) {
            return true;
        }
        free(*path);
        *path = next;
    }
    return true;
}

/* Follows all links of |path|; NULL: its folder does not exist. Returns false if out of memory. */
static bool follow(struct bhi_paths *paths, const char *path, char **out_real) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char *folder;
    *out_real = NULL;
    if (!*base || !strcmp(base, ".") || !strcmp(base, "..")) {
        return true;
    }
    if (asprintf(&folder, "%s%s%.*s", path[0] == '/' ? "" : paths->folder,
                 path[0] == '/' ? "" : "/", (int)(base - path), path) < 0) {
        return false;
    }
    const char *real = real_folder(paths, folder);
    if (!real) {
        return true;
    }
    if (asprintf(out_real, "%s/%s", strcmp(real, "/") ? real : "", base) < 0) {
        *out_real = NULL;
        return false;
    }
    if (follow_links(out_real)) {
        return true;
    }
    free(*out_real);
    *out_real = NULL;
    return false;
}

static char *normalize(struct bhi_paths *paths, const char *path) {
    const size_t folder = strlen(paths->folder);
    char *whole;
    if (!follow(paths, path, &whole)) {
        return NULL;
    }
    if (!whole) {
        whole = lexical(paths, path);
    }
    /* Shortens the path: a million jobs may share the folder. */
    if (whole && !strncmp(whole, paths->folder, folder) && whole[folder] == '/') {
        memmove(whole, whole + folder + 1, strlen(whole + folder + 1) + 1);
    }
    return whole;
}

char *bhi_paths_normalize(struct bhi_paths *paths, const char *path) {
    struct bhi_paths_answer *answer = answer_to(paths, paths->files, path);
    if (!is_to(answer, path)) {
        forget(answer);
        answer->real = normalize(paths, path);
        answer->asked = answer->real ? strdup(path) : NULL;
    }
    return answer->real ? strdup(answer->real) : NULL;
}

static bool has_room(struct bhi_paths *paths) {
    return paths->access_count != NO_ACCESS &&
           BHI_ARRAY_RESERVE(paths->accesses, paths->access_capacity, paths->access_count + 1) &&
           BHI_ARRAY_RESERVE(paths->first, paths->first_capacity, paths->names.count + 1);
}

bool bhi_paths_add(struct bhi_paths *paths, const struct bhi_job_node *node, const char *path,
                   bool writes, bool *out_twice) {
    const uint32_t index = bhi_node_index(node);
    char *name = has_room(paths) ? bhi_paths_normalize(paths, path) : NULL;
    uint32_t at = name ? bhi_names_find(&paths->names, name) : BHI_NO_NAME;
    if (name && at == BHI_NO_NAME) {
        at = bhi_names_add(&paths->names, name);
        if (at != BHI_NO_NAME) {
            paths->first[at] = NO_ACCESS;
        }
    }
    free(name);
    if (at == BHI_NO_NAME) {
        return false;
    }
    struct bhi_access *last =
        paths->first[at] == NO_ACCESS ? NULL : &paths->accesses[paths->first[at]];
    if (!last || last->node != index) {
        last = &paths->accesses[paths->access_count];
        *last = (struct bhi_access){.node = index, .next = paths->first[at]};
        paths->first[at] = paths->access_count++;
    }
    if (out_twice) {
        *out_twice = last->writes && writes;
    }
    last->writes |= writes;
    return true;
}

void bhi_paths_truncate(struct bhi_paths *paths, uint32_t count) {
    uint32_t kept = paths->names.count;
    for (uint32_t i = 0; i < paths->names.count; i++) {
        while (paths->first[i] != NO_ACCESS && paths->accesses[paths->first[i]].node >= count) {
            paths->first[i] = paths->accesses[paths->first[i]].next;
        }
    }
    while (kept > 0 && paths->first[kept - 1] == NO_ACCESS) {
        kept--;
    }
    bhi_names_truncate(&paths->names, kept);
    while (paths->access_count > 0 && paths->accesses[paths->access_count - 1].node >= count) {
        paths->access_count--;
    }
}

/* -- who meets whom -------------------------------------------------------------------------- */

/* An access, for sorting. */
struct visit {
    struct bhi_job_node *node;
    bool writes;
};

BHI_ORDER(by_rank, struct visit, node->rank)

/* The first few nodes are searched one by one, which is fast for near nodes. For more it is faster
 * to find once all nodes that the writer reaches, or is reached from. */
enum { FEW = 8 };

struct look {
    struct bhi_job_node *from; /* the writer */
    bool forth;                /* for those that need it; else for those that it needs */
    uint32_t rank;             /* of the farthest one */
    uint32_t count, search;
};

static bool needs(struct bhi_graph *graph, struct look *look, struct bhi_job_node *node,
                  struct bhi_job_node *needed) {
    if (bhi_graph_is_linked(graph, node, needed)) {
        return true;
    }
    if (look->count++ < FEW) {
        return bhi_graph_reaches(graph, node, needed);
    }
    if (!look->search) {
        look->search = bhi_graph_search(graph, look->from, look->forth, look->rank);
    }
    return (look->forth ? node : needed)->seen == look->search;
}

static bool ordered(struct bhi_graph *graph, struct look *look, const struct visit *visit,
                    const struct visit *before, struct bhi_conflict *out_conflict) {
    if (needs(graph, look, visit->node, before->node)) {
        return true;
    }
    const bool later = visit->node->job.number > before->node->job.number;
    const struct visit *node = later ? visit : before, *other = later ? before : visit;
    *out_conflict = (struct bhi_conflict){.node = node->node,
                                          .other = other->node,
                                          .node_writes = node->writes,
                                          .other_writes = other->writes};
    return false;
}

/* Goes through the accesses by rank. Each must need the writer before it, and a writer all readers
 * since then. This is enough, because needing is transitive. */
static bool check_visits(struct bhi_graph *graph, const struct visit *visits, size_t count,
                         struct bhi_conflict *out_conflict) {
    const struct visit *writer = NULL;
    struct look forth = {0};
    size_t readers = 0; /* the first reader since |writer| */
    for (size_t i = 0; i < count; i++) {
        const struct visit *visit = &visits[i];
        if (writer && !(visit->writes && readers < i) &&
            !ordered(graph, &forth, visit, writer, out_conflict)) {
            return false;
        }
        if (!visit->writes) {
            continue;
        }
        struct look back = {.from = visit->node, .rank = visits[readers].node->rank};
        for (size_t r = readers; r < i; r++) {
            if (!ordered(graph, &back, visit, &visits[r], out_conflict)) {
                return false;
            }
        }
        writer = visit;
        readers = i + 1;
        forth =
            (struct look){.from = visit->node, .forth = true, .rank = visits[count - 1].node->rank};
    }
    return true;
}

bool bhi_paths_check(struct bhi_paths *paths, struct bhi_graph *graph, uint32_t first,
                     struct bhi_conflict *out_conflict) {
    struct visit *visits = NULL;
    size_t capacity = 0;
    bool good = true;
    *out_conflict = (struct bhi_conflict){0};
    for (uint32_t i = 0; good && i < paths->names.count; i++) {
        size_t count = 0, writers = 0;
        const uint32_t newest = paths->first[i];
        if (newest == NO_ACCESS || paths->accesses[newest].node < first) {
            continue;
        }
        for (uint32_t a = newest; good && a != NO_ACCESS; a = paths->accesses[a].next) {
            good = BHI_ARRAY_RESERVE(visits, capacity, count + 1);
            if (!good) {
                break;
            }
            visits[count++] = (struct visit){bhi_graph_node(graph, paths->accesses[a].node),
                                             paths->accesses[a].writes};
            writers += paths->accesses[a].writes;
        }
        if (!good || writers == 0 || count < 2) {
            continue;
        }
        qsort(visits, count, sizeof *visits, by_rank);
        good = check_visits(graph, visits, count, out_conflict);
        out_conflict->path = paths->names.names[i]->text;
    }
    free(visits);
    return good;
}
