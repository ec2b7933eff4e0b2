/* The files that the jobs of a batch need, as seen from the machines that run them. What they do
 * not see is staged: copied into STATE/staged/HASH/NAME, where HASH is that of its content, and the
 * jobs' lines name the copy. Outputs are not staged: their folders must be there. */
#ifndef BHI_BATCH_SLURM_PLACES_H
#define BHI_BATCH_SLURM_PLACES_H

#include "batch/graph/names.h"
#include "batch/job/job.h"
#include "batch/slurm/probe.h"

struct bhi_place_of {
    char *path;       /* absolute; owned */
    char *staged;     /* where the copy is; NULL: there is none; owned */
    uint32_t root;    /* the number of the include folder that has it; BHI_NO_NAME: none */
    bool folder;      /* of an output */
    bool is_root;     /* a folder of includes */
    bool in_place;    /* a job replaces it */
    const char *job;  /* the id of the first job that needs it */
    const char *what; /* "kernel", "input", "include", "output"; NULL: no job needs it */
};

struct bhi_places {
    const char *cwd;
    struct bhi_names files, folders; /* absolute paths: two tables, as a path can be in both */
    struct bhi_names written;
    struct bhi_place_of
        *places;        /* owned; files and folders, in the order in which they were found */
    uint32_t *of_file;  /* the place of a file, by its number; owned */
    uint32_t cwd_place; /* the place of the folder that paths are relative to */
    size_t count, capacity, file_capacity;
    uint64_t staged, staged_bytes;
    int error; /* an errno: a copy failed; 0: none did */
};

/* Lists what |specs| need. |specs| and |cwd| must outlive the places. */
bool bhi_places_init(struct bhi_places *places, const struct bhi_job_spec *specs, size_t count,
                     const char *cwd, struct bhi_complaint *complaint);
void bhi_places_fini(struct bhi_places *places);
/* The paths to look for, in the order of the places; the caller frees the array. */
struct bhi_probe_path *bhi_places_paths(const struct bhi_places *places);
/* Copies what |paths| says is not seen to STATE/staged. Refuses what cannot be staged; |node| is
 * for the complaint. */
bool bhi_places_stage(struct bhi_places *places, const struct bhi_probe_path *paths,
                      const char *state, const char *node, struct bhi_complaint *complaint);
/* The text of a job with its copies' names. The caller owns it; NULL if memory ran out. */
char *bhi_places_rewrite(const struct bhi_places *places, const struct bhi_job_spec *spec);

/* Copies the |size| bytes of the file |from| to |to|, whole or not at all. Returns 0 or an errno;
 * EINTR means that a signal asked for the end (interrupt.h). */
int bhi_places_copy(int from, uint64_t size, const char *to);

#endif
