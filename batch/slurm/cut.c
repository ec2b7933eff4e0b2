#include "batch/slurm/cut.h"

#include <stdlib.h>

#include "base/owner.h"
#include "batch/graph/names.h"

/* A group of jobs that must stay together, named by its first job. */
struct group {
    size_t first;
    uint64_t jobs;
};

static size_t find(size_t *parents, size_t job) {
    while (parents[job] != job) {
        parents[job] = parents[parents[job]];
        job = parents[job];
    }
    return job;
}

/* Makes parents[] lead from each job to the first job of its group. */
static bool join(const struct bhi_job_spec *specs, size_t count, size_t *parents) {
    struct bhi_names names;
    bool good = true;
    bhi_names_init(&names);
    for (size_t i = 0; good && i < count; i++) {
        parents[i] = i;
        good = bhi_names_add(&names, specs[i].id) != BHI_NO_NAME;
    }
    for (size_t i = 0; good && i < count; i++) {
        for (size_t k = 0; k < specs[i].depends_count; k++) {
            const uint32_t other = bhi_names_find(&names, specs[i].depends_on[k]);
            if (other != BHI_NO_NAME) {
                const size_t a = find(parents, i), b = find(parents, other);
                parents[a > b ? a : b] = a > b ? b : a;
            }
        }
    }
    bhi_names_fini(&names);
    return good;
}

static int by_size(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    return x->jobs != y->jobs ? (x->jobs < y->jobs) - (x->jobs > y->jobs)
                              : (x->first > y->first) - (x->first < y->first);
}

static bool is_smaller(const struct bhi_cut *cut, uint32_t a, uint32_t b) {
    return cut->sizes[a] != cut->sizes[b] ? cut->sizes[a] < cut->sizes[b] : a < b;
}

/* |heap| has the smallest shard at its top, which has grown: moves it down. */
static void sink(const struct bhi_cut *cut, uint32_t *heap) {
    const uint32_t moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < cut->shards; at = child) {
        if (child + 1 < cut->shards && is_smaller(cut, heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_smaller(cut, heap[child], moved)) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

bool bhi_cut_make(const struct bhi_job_spec *specs, size_t count, uint32_t most,
                  struct bhi_cut *out_cut) {
    BHI_AUTO_FREE size_t *parents = calloc(count + 1, sizeof *parents);
    BHI_AUTO_FREE struct group *groups = calloc(count + 1, sizeof *groups);
    /* The number of the group that begins with a job. */
    BHI_AUTO_FREE size_t *number = calloc(count + 1, sizeof *number);
    size_t group_count = 0;
    *out_cut = (struct bhi_cut){0};
    if (!parents || !groups || !number || !join(specs, count, parents)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        group_count += find(parents, i) == i;
    }
    out_cut->shards = group_count < most ? (uint32_t)group_count : most;
    out_cut->shard = calloc(count + 1, sizeof *out_cut->shard);
    out_cut->sizes = calloc(out_cut->shards + 1u, sizeof *out_cut->sizes);
    BHI_AUTO_FREE uint32_t *heap = calloc(out_cut->shards + 1u, sizeof *heap);
    if (!out_cut->shard || !out_cut->sizes || !heap) {
        bhi_cut_free(out_cut);
        return false;
    }
    group_count = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t first = find(parents, i);
        if (first == i) {
            number[i] = group_count;
            groups[group_count++].first = i;
        }
        groups[number[first]].jobs++;
    }
    qsort(groups, group_count, sizeof *groups, by_size);
    for (uint32_t i = 0; i < out_cut->shards; i++) {
        heap[i] = i;
    }
    for (size_t i = 0; i < group_count; i++) {
        out_cut->shard[groups[i].first] = heap[0];
        out_cut->sizes[heap[0]] += groups[i].jobs;
        sink(out_cut, heap);
    }
    for (size_t i = 0; i < count; i++) {
        out_cut->shard[i] = out_cut->shard[find(parents, i)];
    }
    return true;
}

void bhi_cut_free(struct bhi_cut *cut) {
    free(cut->shard);
    free(cut->sizes);
    *cut = (struct bhi_cut){0};
}
