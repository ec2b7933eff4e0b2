/* bulkhead judge --dump.
 *
 *   DIR/CANDIDATE/inputs/NAME.npy      what it read
 *   DIR/CANDIDATE/expected/NAME.npy    what the reference computed from that
 *   DIR/CANDIDATE/actual/NAME.npy      what it wrote
 *
 * A candidate's folder is made under another name, and renamed when all is in it. */
#include "cli/judge_dump.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/format.h"
#include "formats/npy.h"
#include "tool/outfile.h"

enum { NAME = 100, PARTS = BH_JUDGE_ACTUAL + 1 };

static const char *const parts[PARTS] = {
    [BH_JUDGE_INPUTS] = "inputs", [BH_JUDGE_EXPECTED] = "expected", [BH_JUDGE_ACTUAL] = "actual"};

static bool refuse_system(struct bhi_complaint *complaint, const char *path) {
    return bhi_refuse(complaint, "%.700s: %s", path, strerror(errno));
}

bool bhi_judge_dump_begin(const char *path, struct bhi_complaint *complaint) {
    bool empty = true;
    if (!*path) {
        return bhi_refuse(complaint, "the folder's name is empty");
    }
    if (mkdir(path, 0777) == 0) {
        return true;
    }
    DIR *folder = errno == EEXIST ? opendir(path) : NULL;
    if (!folder) {
        return refuse_system(complaint, path);
    }
    for (const struct dirent *entry; empty && (entry = readdir(folder));) {
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    }
    closedir(folder);
    return empty || bhi_refuse(complaint, "%.700s is not empty: give another folder", path);
}

bool bhi_judge_dump_wants(const bh_judgement *judgement) {
    return judgement->located && !judgement->timed;
}

/* -- names ----------------------------------------------------------------------------------- */

/* A path in |folder| for what is called |name|, which may be any text. Two that differ only in what
 * cannot be in a name get a number. */
static bool find_name(const char *folder, const char *name, const char *ending, char out[PATH_MAX],
                      struct bhi_complaint *complaint) {
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    char clean[NAME + 1];
    struct stat status;
    while (!strncmp(name, "./", 2)) {
        name += 2;
    }
    bhi_format(clean, sizeof clean, "%s", *name ? name : "_");
    for (char *at = clean; *at; at++) {
        *at = strchr(good, *at) && (at > clean || *at != '.') ? *at : '_';
    }
    for (unsigned number = 1; number; number++) {
        char suffix[16] = "";
        if (number > 1) {
            snprintf(suffix, sizeof suffix, "-%u", number);
        }
        if (snprintf(out, PATH_MAX, "%s/%s%s%s", folder, clean, suffix, ending) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return refuse_system(complaint, folder);
        }
        if (lstat(out, &status) != 0) {
            return errno == ENOENT || refuse_system(complaint, out);
        }
    }
    return false;
}

/* -- one candidate --------------------------------------------------------------------------- */

static bool write_array(const bh_judge_view *array, const char *path,
                        struct bhi_complaint *complaint) {
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    struct bhi_outfile file = BHI_OUTFILE_CLOSED;
    struct bhi_array form = {
        .dtype = array->dtype, .dimensions = array->rank, .bytes = array->size};
    memcpy(form.shape, array->shape, array->rank * sizeof array->shape[0]);
    const size_t size = bhi_npy_write_header(&form, header, sizeof header);
    const bool good = bhi_outfile_open(path, size + array->size, &file, complaint) &&
                      bhi_outfile_write(&file, header, size, array->data, array->size, complaint) &&
                      bhi_outfile_seal(&file, complaint) && bhi_outfile_commit(&file, complaint);
    bhi_outfile_abandon(&file);
    return good;
}

static bool write_part(const bh_judge_arrays *arrays, bh_judge_part part, const char *folder,
                       struct bhi_complaint *complaint) {
    const size_t count = bh_judge_arrays_count(arrays, part);
    char path[PATH_MAX];
    bool good = !count || mkdir(folder, 0777) == 0 || refuse_system(complaint, folder);
    for (size_t i = 0; i < count && good; i++) {
        bh_judge_view array = {.struct_size = sizeof array};
        bh_detail detail = {0};
        good = bh_judge_arrays_get(arrays, part, i, &array, &detail) == BH_OK ||
               bhi_refuse(complaint, "%.700s", detail.message);
        good = good && find_name(folder, array.name, ".npy", path, complaint) &&
               write_array(&array, path, complaint);
    }
    return good;
}

/* Removes what there is of a candidate's folder. */
static void clear(const char *path) {
    char inner[PATH_MAX];
    for (int part = 0; part < PARTS; part++) {
        bhi_format(inner, sizeof inner, "%s/%s", path, parts[part]);
        const int folder = open(inner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder >= 0) {
            (void)bhi_folder_remove(folder, parts[part]);
        }
    }
    (void)rmdir(path);
}

static bool write_all(const bh_judge_arrays *arrays, const char *path, const char *name,
                      char **out_folder, struct bhi_complaint *complaint) {
    char folder[PATH_MAX], unfinished[PATH_MAX], inner[PATH_MAX];
    if (!find_name(path, name, "", folder, complaint)) {
        return false;
    }
    bool good = snprintf(unfinished, sizeof unfinished, "%s/.unfinished", path) < PATH_MAX &&
                mkdir(unfinished, 0777) == 0;
    if (!good) {
        return refuse_system(complaint, unfinished);
    }
    for (int part = 0; part < PARTS && good; part++) {
        good = snprintf(inner, sizeof inner, "%s/%s", unfinished, parts[part]) < PATH_MAX &&
               write_part(arrays, (bh_judge_part)part, inner, complaint);
    }
    good = good && ((*out_folder = strdup(folder)) || bhi_refuse_memory(complaint)) &&
           (rename(unfinished, folder) == 0 || refuse_system(complaint, folder));
    if (!good) {
        clear(unfinished);
        free(*out_folder);
        *out_folder = NULL;
    }
    return good;
}

bool bhi_judge_dump(const char *path, bh_judge *judge, const bh_judge_candidate *candidate,
                    const char *name, const bh_judgement *judgement, char **out_folder,
                    struct bhi_complaint *complaint) {
    bh_judgement failed = *judgement;
    bh_judge_arrays *arrays;
    bh_detail detail = {0};
    *out_folder = NULL;
    const bool whole = bh_judge_repeat(judge, candidate, judgement, &arrays, &detail) == BH_OK;
    if (!whole) {
        bhi_refuse(complaint, "%.300s: %.600s", name, detail.message);
        failed.verdict = BH_JUDGE_FAILED; /* its inputs are known nevertheless */
        if (bh_judge_repeat(judge, candidate, &failed, &arrays, &detail) != BH_OK) {
            return false;
        }
    }
    const bool written = write_all(arrays, path, name, out_folder, complaint);
    bh_judge_arrays_destroy(arrays);
    return whole && written;
}
