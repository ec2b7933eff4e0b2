#include "batch/slurm/places.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/owner.h"
#include "batch/slurm/whole.h"
#include "tool/content_hash.h"
#include "tool/interrupt.h"
#include "tool/outfile.h"

enum { HEX = 2 * BHI_CONTENT_HASH };

static char *absolute(const struct bhi_places *places, const char *path) {
    return *path == '/' ? strdup(path) : bhi_whole_text("%s/%s", places->cwd, path);
}

/* -- listing --------------------------------------------------------------------------------- */

/* Adds a place, or finds it. Takes over |path|. */
static struct bhi_place_of *add(struct bhi_places *places, char *path, bool folder) {
    struct bhi_names *names = folder ? &places->folders : &places->files;
    const uint32_t known = path ? bhi_names_find(names, path) : BHI_NO_NAME;
    if (path && known != BHI_NO_NAME && !folder) {
        free(path);
        return &places->places[places->of_file[known]];
    }
    if (!path || known != BHI_NO_NAME ||
        !BHI_ARRAY_RESERVE(places->places, places->capacity, places->count + 1) ||
        !BHI_ARRAY_RESERVE(places->of_file, places->file_capacity, names->count + 1u) ||
        bhi_names_add(names, path) == BHI_NO_NAME) {
        free(path);
        return NULL;
    }
    if (!folder) {
        places->of_file[names->count - 1] = (uint32_t)places->count;
    }
    struct bhi_place_of *place = &places->places[places->count++];
    *place = (struct bhi_place_of){.path = path, .folder = folder, .root = BHI_NO_NAME};
    return place;
}

static bool note(struct bhi_place_of *place, const struct bhi_job_spec *spec, const char *what) {
    if (place && !place->what) {
        place->job = spec->id;
        place->what = what;
    }
    return place;
}

static bool add_output(struct bhi_places *places, const struct bhi_job_spec *spec,
                       const char *path) {
    BHI_AUTO_FREE char *whole = absolute(places, path);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (!whole || !slash) {
        return false;
    }
    slash[slash == whole] = '\0';
    return bhi_names_find(&places->folders, whole) != BHI_NO_NAME ||
           note(add(places, strdup(whole), true), spec, "output");
}

/* A folder of includes: all of it. What the jobs read is a part of that (request/source.c). */
static bool add_root(struct bhi_places *places, const struct bhi_job_spec *spec, const char *path) {
    char *roots[] = {strdup(path), NULL};
    const uint32_t root = bhi_names_find(&places->files, path);
    FTS *walk = roots[0] ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL) : NULL;
    bool good = walk;
    for (FTSENT *entry; good && (entry = fts_read(walk));) {
        if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
            fts_set(walk, entry, FTS_SKIP);
        } else if (entry->fts_info == FTS_F) {
            struct bhi_place_of *place = add(places, strdup(entry->fts_path), false);
            good = note(place, spec, "include");
            if (good && place->root == BHI_NO_NAME) {
                place->root = root;
            }
        }
    }
    if (walk) {
        fts_close(walk);
    }
    free(roots[0]);
    return good;
}

static bool add_include(struct bhi_places *places, const struct bhi_job_spec *spec,
                        const char *path) {
    struct stat status;
    BHI_AUTO_FREE char *whole = absolute(places, path);
    if (!whole) {
        return false;
    }
    const bool known = bhi_names_find(&places->files, whole) != BHI_NO_NAME;
    struct bhi_place_of *place = add(places, strdup(whole), false);
    if (!note(place, spec, "include") || known || stat(whole, &status) != 0 ||
        !S_ISDIR(status.st_mode)) {
        return place;
    }
    place->is_root = true;
    return add_root(places, spec, whole);
}

static bool is_in(char *const *list, size_t count, const char *path) {
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(list[i], path)) {
            return true;
        }
    }
    return false;
}

/* What a job of the batch writes is no file yet, or not the one that counts. */
static bool add_input(struct bhi_places *places, const struct bhi_job_spec *spec,
                      const char *path) {
    BHI_AUTO_FREE char *whole = absolute(places, path);
    const bool in_place = is_in(spec->writes, spec->write_count, path);
    if (!whole) {
        return false;
    }
    if (!in_place && bhi_names_find(&places->written, whole) != BHI_NO_NAME) {
        return true;
    }
    struct bhi_place_of *place = add(places, BHI_STEAL(whole), false);
    if (place) {
        place->in_place |= in_place;
    }
    return note(place, spec, "input");
}

static bool note_written(struct bhi_places *places, const struct bhi_job_spec *spec) {
    for (size_t i = 0; i < spec->write_count; i++) {
        BHI_AUTO_FREE char *whole = absolute(places, spec->writes[i]);
        if (!whole || (bhi_names_find(&places->written, whole) == BHI_NO_NAME &&
                       bhi_names_add(&places->written, whole) == BHI_NO_NAME)) {
            return false;
        }
    }
    return true;
}

static bool add_job(struct bhi_places *places, const struct bhi_job_spec *spec) {
    bool good =
        !spec->kernel || note(add(places, absolute(places, spec->kernel), false), spec, "kernel");
    for (size_t i = 0; good && i < spec->include_count; i++) {
        good = add_include(places, spec, spec->includes[i]);
    }
    for (size_t i = 0; good && i < spec->read_count; i++) {
        good = add_input(places, spec, spec->reads[i]);
    }
    for (size_t i = 0; good && i < spec->write_count; i++) {
        good = add_output(places, spec, spec->writes[i]);
    }
    return good;
}

bool bhi_places_init(struct bhi_places *places, const struct bhi_job_spec *specs, size_t count,
                     const char *cwd, struct bhi_complaint *complaint) {
    bool good = true;
    *places = (struct bhi_places){.cwd = cwd};
    bhi_names_init(&places->files);
    bhi_names_init(&places->folders);
    bhi_names_init(&places->written);
    for (size_t i = 0; good && i < count; i++) {
        good = note_written(places, &specs[i]);
    }
    for (size_t i = 0; good && i < count; i++) {
        good = add_job(places, &specs[i]);
    }
    struct bhi_place_of *here = good ? add(places, strdup(cwd), false) : NULL;
    places->cwd_place = here ? (uint32_t)(here - places->places) : 0;
    good = here;
    return good || bhi_refuse(complaint, "out of memory");
}

void bhi_places_fini(struct bhi_places *places) {
    for (size_t i = 0; i < places->count; i++) {
        free(places->places[i].path);
        free(places->places[i].staged);
    }
    free(places->places);
    free(places->of_file);
    bhi_names_fini(&places->files);
    bhi_names_fini(&places->folders);
    bhi_names_fini(&places->written);
    *places = (struct bhi_places){0};
}

struct bhi_probe_path *bhi_places_paths(const struct bhi_places *places) {
    struct bhi_probe_path *paths = calloc(places->count + 1, sizeof *paths);
    for (size_t i = 0; paths && i < places->count; i++) {
        paths[i] = (struct bhi_probe_path){.path = places->places[i].path,
                                           .folder = places->places[i].folder};
    }
    return paths;
}

/* -- copying --------------------------------------------------------------------------------- */

static void to_hex(const uint8_t hash[BHI_CONTENT_HASH], char out[HEX + 1]) {
    for (size_t i = 0; i < BHI_CONTENT_HASH; i++) {
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
    }
}

/* Makes each folder of |path| behind |from| bytes of it. */
static int make_folders(char *path, size_t from) {
    for (char *slash = path + from; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        const int error = -bhi_folder_make(AT_FDCWD, path, 0700);
        *slash = '/';
        if (error) {
            return error;
        }
    }
    return 0;
}

/* One that is there already has the same content: its folder's name says so. What a killed process
 * has left is replaced, and the name that it may have left is made durable. */
int bhi_places_copy(int from, uint64_t size, const char *to) {
    char piece[1 << 16];
    struct bhi_complaint ignored;
    struct bhi_outfile file;
    ssize_t got = 1;
    if (access(to, F_OK) == 0) {
        BHI_AUTO_FREE char *folder = strdup(to);
        return folder ? -bhi_folder_sync(AT_FDCWD, dirname(folder)) : ENOMEM;
    }
    bool good = bhi_outfile_open_named(to, ".staged.new", size, &file, &ignored);
    file.error = good && lseek(from, 0, SEEK_SET) != 0 ? errno : file.error;
    while (good && !file.error && got != 0) {
        if (bhi_interrupt_signal()) {
            file.error = EINTR;
            break;
        }
        got = read(from, piece, sizeof piece);
        if (got > 0) {
            good = bhi_outfile_append(&file, piece, (uint64_t)got, &ignored);
        } else if (got < 0 && errno != EINTR) {
            file.error = errno;
        }
    }
    good = good && !file.error && bhi_outfile_seal(&file, &ignored) &&
           bhi_outfile_commit(&file, &ignored);
    bhi_outfile_abandon(&file);
    return good ? 0 : file.error ? file.error : EIO;
}

/* Opens a file that is to be staged. Something else that has its name by now might never end.
 * Returns 0 or an errno. */
static int open_file(const char *path, int *out_fd, struct stat *status) {
    *out_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return *out_fd < 0 || fstat(*out_fd, status) != 0 ? errno
           : S_ISREG(status->st_mode)                 ? 0
                                                      : EINVAL;
}

/* Copies |path| to STATE/staged/|hash|/|name|; a NULL |hash| is that of its content. */
static int stage(struct bhi_places *places, const char *state, const char *path, const char *hash,
                 const char *name, char **out_staged) {
    uint8_t bytes[BHI_CONTENT_HASH];
    char digits[HEX + 1];
    struct stat status;
    BHI_AUTO_FD in = -1;
    int error = open_file(path, &in, &status);
    if (!error && !hash && !(error = bhi_content_hash_of(in, bytes))) {
        to_hex(bytes, digits);
    }
    if (error) {
        return error;
    }
    BHI_AUTO_FREE char *to = bhi_whole_text("%s/staged/%s/%s", state, hash ? hash : digits, name);
    if (!to) {
        return ENOMEM;
    }
    if ((error = make_folders(to, strlen(state) + 1)) ||
        (error = bhi_places_copy(in, (uint64_t)status.st_size, to))) {
        return error;
    }
    places->staged++;
    places->staged_bytes += (uint64_t)status.st_size;
    if (out_staged) {
        *out_staged = BHI_STEAL(to);
    }
    return 0;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : "files";
}

/* The hash of a folder: of the names and contents in it, in the order of the names. */
static int by_path(const void *a, const void *b) {
    return strcmp((*(const struct bhi_place_of *const *)a)->path,
                  (*(const struct bhi_place_of *const *)b)->path);
}

static int stage_root(struct bhi_places *places, uint32_t number, const char *state) {
    struct bhi_place_of *root = &places->places[places->of_file[number]];
    const size_t prefix = strlen(root->path);
    BHI_AUTO_FREE const struct bhi_place_of **files = calloc(places->count + 1, sizeof *files);
    struct bhi_content_hash *hash = files ? bhi_content_hash_begin() : NULL;
    uint8_t bytes[BHI_CONTENT_HASH];
    char digits[HEX + 1];
    size_t count = 0;
    int error = hash ? 0 : ENOMEM;
    for (size_t i = 0; !error && i < places->count; i++) {
        if (places->places[i].root == number) {
            files[count++] = &places->places[i];
        }
    }
    if (!error && count) {
        qsort(files, count, sizeof *files, by_path);
    }
    for (size_t i = 0; !error && i < count; i++) {
        struct stat status;
        BHI_AUTO_FD in = -1;
        error = open_file(files[i]->path, &in, &status);
        error = error ? error : bhi_content_hash_of(in, bytes);
        bhi_content_hash_add(hash, files[i]->path + prefix, strlen(files[i]->path + prefix) + 1);
        bhi_content_hash_add(hash, bytes, sizeof bytes);
    }
    bhi_content_hash_end(hash, bytes);
    if (error) {
        return error;
    }
    to_hex(bytes, digits);
    for (size_t i = 0; !error && i < count; i++) {
        const char *name = files[i]->path + prefix;
        error = stage(places, state, files[i]->path, digits, name + strspn(name, "/"), NULL);
    }
    root->staged = error ? NULL : bhi_whole_text("%s/staged/%s", state, digits);
    return root->staged ? 0 : error ? error : ENOMEM;
}

static bool refuse_missing(const struct bhi_place_of *place, const char *node,
                           struct bhi_complaint *complaint) {
    if (place->folder) {
        return bhi_refuse(complaint,
                          "job \"%.100s\": the folder %.400s of its output is not on %.63s, or "
                          "cannot be written there: outputs must be on a file system that the "
                          "machines share",
                          place->job, place->path, node);
    }
    return bhi_refuse(complaint,
                      "job \"%.100s\" replaces %.400s, which is not on %.63s, or another file "
                      "there: it must be on a file system that the machines share",
                      place->job, place->path, node);
}

bool bhi_places_stage(struct bhi_places *places, const struct bhi_probe_path *paths,
                      const char *state, const char *node, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < places->count; i++) {
        const struct bhi_place_of *place = &places->places[i];
        if (!paths[i].is_seen && (place->folder || place->in_place)) {
            return refuse_missing(place, node, complaint);
        }
    }
    for (size_t i = 0; i < places->count; i++) {
        struct bhi_place_of *place = &places->places[i];
        int error = 0;
        if (paths[i].is_seen || place->staged || !place->what) {
            continue;
        }
        if (place->is_root || place->root != BHI_NO_NAME) {
            const uint32_t root =
                place->is_root ? bhi_names_find(&places->files, place->path) : place->root;
            if (!places->places[places->of_file[root]].staged) {
                error = stage_root(places, root, state);
            }
        }
        /* A file of such a folder may be a kernel or an input, too. */
        if (!error && !place->is_root && strcmp(place->what, "include") != 0) {
            error = stage(places, state, place->path, NULL, base_name(place->path), &place->staged);
        } else if (!error && !place->is_root && place->root == BHI_NO_NAME) {
            error = stage(places, state, place->path, NULL, base_name(place->path), &place->staged);
        }
        if (error) {
            places->error = error;
            return bhi_refuse(complaint, "%.500s cannot be copied to %.300s/staged: %s",
                              place->path, state,
                              error == EINVAL ? "it is not a file any more" : strerror(error));
        }
    }
    return true;
}

/* -- rewriting ------------------------------------------------------------------------------- */

static const char *staged_of(const struct bhi_places *places, const char *path) {
    BHI_AUTO_FREE char *whole = absolute(places, path);
    const uint32_t name = whole ? bhi_names_find(&places->files, whole) : BHI_NO_NAME;
    return name == BHI_NO_NAME ? NULL : places->places[places->of_file[name]].staged;
}

/* "FILE", or "FILE:WHAT" as in "m.safetensors:w": finds FILE among the paths that the job reads. */
static json_t *rewrite_input(const struct bhi_places *places, const struct bhi_job_spec *spec,
                             const char *value) {
    size_t longest = 0;
    const char *staged = NULL;
    for (size_t i = 0; i < spec->read_count; i++) {
        const size_t length = strlen(spec->reads[i]);
        if (length > longest && !strncmp(value, spec->reads[i], length) &&
            (!value[length] || value[length] == ':')) {
            longest = length;
            staged = staged_of(places, spec->reads[i]);
        }
    }
    return staged ? json_sprintf("%s%s", staged, value + longest) : json_string(value);
}

static void rewrite_inputs(const struct bhi_places *places, const struct bhi_job_spec *spec,
                           json_t *object) {
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value) {
        if (json_is_string(value)) {
            json_object_set_new(object, name,
                                rewrite_input(places, spec, json_string_value(value)));
        }
    }
}

char *bhi_places_rewrite(const struct bhi_places *places, const struct bhi_job_spec *spec) {
    if (!places->staged) {
        return strdup(spec->text);
    }
    json_t *object = json_loads(spec->text, 0, NULL);
    const char *kernel = spec->kernel ? staged_of(places, spec->kernel) : NULL;
    json_t *includes = json_object_get(object, "I");
    if (kernel) {
        json_object_set_new(object, "kernel", json_string(kernel));
    }
    rewrite_inputs(places, spec, json_object_get(object, "in"));
    rewrite_inputs(places, spec, json_object_get(object, "inout"));
    for (size_t i = 0; i < json_array_size(includes); i++) {
        const char *staged = staged_of(places, json_string_value(json_array_get(includes, i)));
        if (staged) {
            json_array_set_new(includes, i, json_string(staged));
        }
    }
    char *text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}
