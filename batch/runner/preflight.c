#include "batch/runner/preflight.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/graph/paths.h"
#include "batch/job/request.h"
#include "request/image.h"

/* The result for a path; computed once for all jobs that name it. */
enum {
    FINE = 0,
    NO_FILE = -1,
    NO_FOLDER = -2,
    TAKEN = -3,
    OWN_JOBS = -4,
    OWN_STATE = -5,
    STATE_ITSELF = -6,
    SOURCE = -7
}; /* other values are an errno; with this bit, that of its folder: */
#define OF_FOLDER 0x10000

/* Identifies a file or folder, whatever its name. */
struct place {
    bool known;
    dev_t device;
    ino_t inode;
};

struct found {
    struct bhi_names names;
    int *results; /* owned */
    size_t capacity;
};

struct preflight {
    const struct bhi_job_spec *specs;
    const char *folder;
    struct bhi_paths paths;    /* normalizes paths */
    struct bhi_names written;  /* paths that jobs of the batch write */
    struct bhi_names replaced; /* others, which jobs read and write */
    struct bhi_names *made;    /* whole paths of inputs that are in one of both; NULL: not wanted */
    struct bhi_names sources;  /* kernels of all jobs, also skipped ones, and their includes */
    struct found inputs, outputs, folders;
    struct bhi_names read; /* inputs and kernels whose content was found good */
    const char *device;    /* of jobs that name none; NULL: the default */
    bool contents, makes;
    struct place jobs, state; /* those of the batch itself */
    char *state_name;         /* of |state|, if it does not exist yet; normalized, owned */
    bhi_preflight_visitor visit;
    void *user;
    bool good;
};

static struct place place_of(const char *path) {
    struct stat status;
    if (!path || stat(path, &status) != 0) {
        return (struct place){.known = false};
    }
    return (struct place){.known = true, .device = status.st_dev, .inode = status.st_ino};
}

static bool is_at(const struct place *place, const struct stat *status) {
    return place->known && place->device == status->st_dev && place->inode == status->st_ino;
}

static int look_at_input(struct preflight *flight, const char *path) {
    struct stat status;
    (void)flight;
    if (stat(path, &status) != 0) {
        return errno;
    }
    if (!S_ISREG(status.st_mode)) {
        return NO_FILE;
    }
    return access(path, R_OK) == 0 ? FINE : errno;
}

static char *whole_path(const struct preflight *flight, const char *path) {
    char *whole;
    if (*path == '/') {
        return strdup(path);
    }
    return asprintf(&whole, "%s/%s", flight->folder, path) < 0 ? NULL : whole;
}

/* Looks at |path|, or returns the earlier result. */
static int look(struct preflight *flight, struct found *found, const char *path,
                int (*look_at)(struct preflight *, const char *)) {
    uint32_t name = bhi_names_find(&found->names, path);
    if (name != BHI_NO_NAME) {
        return found->results[name];
    }
    BHI_AUTO_FREE char *whole = whole_path(flight, path);
    if (!whole) {
        return ENOMEM;
    }
    const int result = look_at(flight, whole);
    if (!BHI_ARRAY_RESERVE(found->results, found->capacity, found->names.count + 1) ||
        (name = bhi_names_add(&found->names, path)) == BHI_NO_NAME) {
        return ENOMEM;
    }
    return found->results[name] = result;
}

/* |folder| is whole, and ends in a slash. */
static int look_at_folder(struct preflight *flight, const char *folder) {
    struct stat status;
    const int error = stat(folder, &status) == 0 ? 0 : errno;
    if (error == ENOENT && flight->makes) { /* what it will be made in */
        BHI_AUTO_FREE char *above = strdup(folder);
        if (!above) {
            return ENOMEM;
        }
        above[strlen(above) - 1] = '\0';
        strrchr(above, '/')[1] = '\0';
        return look(flight, &flight->folders, above, look_at_folder);
    }
    return error                              ? OF_FOLDER | error
           : !S_ISDIR(status.st_mode)         ? NO_FOLDER
           : is_at(&flight->state, &status)   ? OWN_STATE
           : access(folder, W_OK | X_OK) != 0 ? OF_FOLDER | errno
                                              : FINE;
}

/* Looks at the folder of |path|, which is whole. */
static int look_at_folder_of(struct preflight *flight, const char *path) {
    BHI_AUTO_FREE char *folder = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
    return folder ? look(flight, &flight->folders, folder, look_at_folder) : ENOMEM;
}

/* Writing to a link replaces the file that it leads to, so that place is checked. The folder of
 * |path| was found good. */
static int look_behind_links(struct preflight *flight, const char *path) {
    BHI_AUTO_FREE char *normal = bhi_paths_normalize(&flight->paths, path);
    BHI_AUTO_FREE char *real = normal ? whole_path(flight, normal) : NULL;
    if (!real) {
        return ENOMEM;
    }
    return bhi_names_find(&flight->sources, normal) != BHI_NO_NAME     ? SOURCE
           : flight->state_name && !strcmp(normal, flight->state_name) ? STATE_ITSELF
           : strcmp(real, path) != 0 ? look_at_folder_of(flight, real)
                                     : FINE;
}

static int look_at_output(struct preflight *flight, const char *path) {
    struct stat status;
    const int error = stat(path, &status) == 0 ? 0 : errno;
    if (!error && !S_ISREG(status.st_mode)) {
        return TAKEN;
    }
    if (!error && is_at(&flight->jobs, &status)) {
        return OWN_JOBS;
    }
    int result = look_at_folder_of(flight, path);
    if (result == FINE && error && error != ENOENT) {
        result = error;
    }
    return result == FINE ? look_behind_links(flight, path) : result;
}

static void report(struct preflight *flight, size_t index, const char *cause,
                   const struct bhi_complaint *complaint) {
    flight->good = false;
    flight->visit(flight->user, index, cause, complaint);
}

static void tell(struct preflight *flight, size_t index, const char *what, const char *path,
                 int result) {
    struct bhi_complaint complaint;
    char cause[PATH_MAX + 16];
    const char *why = result == NO_FILE        ? "not a regular file"
                      : result == NO_FOLDER    ? "its folder is not a folder"
                      : result == TAKEN        ? "it exists and is not a regular file"
                      : result == OWN_JOBS     ? "the jobs are read from that file"
                      : result == OWN_STATE    ? "that folder has the state of the batch"
                      : result == STATE_ITSELF ? "that folder will have the state of the batch"
                      : result == SOURCE ? "a job of the batch reads its kernel from that file"
                                         : strerror(result & ~OF_FOLDER);
    const bool missing = result > 0 && (result & ~OF_FOLDER) == ENOENT && *path != '/';
    const bool of_folder = result > 0 && (result & OF_FOLDER);
    bhi_refuse(
        &complaint, "%s %.600s: %s%s%s%.300s%s%s", what, path, of_folder ? "its folder: " : "", why,
        missing ? " (looked for in " : "", missing ? flight->folder : "", missing ? ")" : "",
        of_folder && (result & ~OF_FOLDER) == ENOENT ? "; make it first (--mkdir does)" : "");
    if (of_folder) {
        const char *end = strrchr(path, '/');
        snprintf(cause, sizeof cause, "folder %.*s", end ? (int)(end - path) : 0, path);
    }
    report(flight, index, of_folder ? cause : complaint.text, &complaint);
}

/* Returns false if out of memory. */
static bool note_made(struct preflight *flight, const char *path, const char *normal) {
    if (!flight->made || (bhi_names_find(&flight->written, normal) == BHI_NO_NAME &&
                          bhi_names_find(&flight->replaced, normal) == BHI_NO_NAME)) {
        return true;
    }
    BHI_AUTO_FREE char *whole = whole_path(flight, path);
    return whole && bhi_names_note(flight->made, whole);
}

/* The inputs of a job that has ended. */
static bool note_inputs(struct preflight *flight, const struct bhi_job_spec *spec) {
    bool noted = true;
    for (size_t i = 0; noted && flight->made && i < spec->read_count; i++) {
        BHI_AUTO_FREE char *normal = bhi_paths_normalize(&flight->paths, spec->reads[i]);
        noted = normal && note_made(flight, spec->reads[i], normal);
    }
    return noted;
}

/* An input that a job writes need not exist yet. */
static void check_input(struct preflight *flight, size_t index, const char *path) {
    BHI_AUTO_FREE char *normal = bhi_paths_normalize(&flight->paths, path);
    const int result = !normal || !note_made(flight, path, normal) ? ENOMEM
                       : bhi_names_find(&flight->written, normal) != BHI_NO_NAME
                           ? FINE
                           : look(flight, &flight->inputs, path, look_at_input);
    if (result != FINE) {
        tell(flight, index, "input", path, result);
    }
}

/* Checks the content of |path|, which exists. Content that was found good is not read again. */
static void check_content(struct preflight *flight, size_t index, const struct bhi_run_request *run,
                          const char *path, const char *tensor, bool is_kernel) {
    struct bhi_complaint why, complaint;
    BHI_AUTO_FREE char *whole = whole_path(flight, path);
    BHI_AUTO_FREE char *key = NULL;
    bool good = false;
    if (!whole || asprintf(&key, "%d %s\n%s", is_kernel ? (int)run->language : -1, whole,
                           tensor ? tensor : "") < 0) {
        key = NULL;
        bhi_refuse(&why, "out of memory");
    } else if (bhi_names_find(&flight->read, key) != BHI_NO_NAME) {
        good = true;
    } else if (is_kernel ? bhi_content_kernel(whole, run->language, &why)
                         : bhi_content_input(whole, tensor, &why)) {
        good =
            bhi_names_add(&flight->read, key) != BHI_NO_NAME || bhi_refuse(&why, "out of memory");
    }
    if (!good) {
        bhi_refuse(&complaint, "%s %.400s: %.500s", is_kernel ? "kernel" : "input", path, why.text);
        report(flight, index, complaint.text, &complaint);
    }
}

static void check_contents(struct preflight *flight, size_t index,
                           const struct bhi_run_request *run, bool has_kernel) {
    const struct bhi_job_spec *spec = &flight->specs[index];
    if (spec->kernel && has_kernel) {
        check_content(flight, index, run, spec->kernel, NULL, true);
    }
    for (uint32_t i = 0; i < run->binding_count; i++) {
        const struct bhi_run_binding *binding = &run->bindings[i];
        BHI_AUTO_FREE char *normal =
            binding->in_path ? bhi_paths_normalize(&flight->paths, binding->in_path) : NULL;
        /* Otherwise another job makes it; or it does not exist, which is reported elsewhere. */
        if (normal && bhi_names_find(&flight->written, normal) == BHI_NO_NAME &&
            look(flight, &flight->inputs, binding->in_path, look_at_input) == FINE) {
            check_content(flight, index, run, binding->in_path, binding->tensor, false);
        }
    }
}

/* Checks what the job's line says. It is parsed again only if that is needed. */
static void check_line(struct preflight *flight, size_t index, bool has_kernel) {
    const struct bhi_job_spec *spec = &flight->specs[index];
    struct bhi_job_request request;
    struct bhi_complaint why, complaint;
    bool good = true;
    const enum bhi_language named =
        spec->kernel ? bhi_language_of_name(spec->kernel) : BHI_LANGUAGE_UNKNOWN;
    const bool cuda = bhi_language_is_cuda(named);
    if (spec->kernel && !flight->contents && !cuda && bhi_language_compiles(named, true, &why)) {
        return;
    }
    if (!bhi_job_request_parse(spec->text, NULL, false, &request, &complaint)) {
        report(flight, index, complaint.text, &complaint);
        return;
    }
    if (request.run.eval) {
        good = bhi_content_expression(request.run.eval, &why);
        if (!good) {
            bhi_refuse(&complaint, "\"eval\": '%.100s': %.600s", request.run.eval->expression,
                       why.text);
        }
    } else if (!request.run.language && (!flight->contents || cuda)) {
        bhi_run_note_language(&request.run, named);
        good =
            bhi_language_compiles(named, true, &why) &&
            (!request.run.image ||
             bhi_run_check_image(
                 &request.run, request.run.device ? request.run.device : flight->device, "", &why));
        if (!good) {
            bhi_refuse(&complaint, "kernel %.400s: %.500s", spec->kernel, why.text);
        }
    }
    if (!good) {
        report(flight, index, complaint.text, &complaint);
    }
    if (flight->contents) {
        check_contents(flight, index, &request.run, has_kernel);
    }
    bhi_job_request_free(&request);
}

static void check(struct preflight *flight, size_t index) {
    const struct bhi_job_spec *spec = &flight->specs[index];
    const int kernel =
        spec->kernel ? look(flight, &flight->inputs, spec->kernel, look_at_input) : FINE;
    if (kernel != FINE) {
        tell(flight, index, "kernel", spec->kernel, kernel);
    }
    for (size_t i = 0; i < spec->read_count; i++) {
        check_input(flight, index, spec->reads[i]);
    }
    for (size_t i = 0; i < spec->write_count; i++) {
        const int result = look(flight, &flight->outputs, spec->writes[i], look_at_output);
        if (result != FINE) {
            tell(flight, index, "output", spec->writes[i], result);
        }
    }
    check_line(flight, index, kernel == FINE);
}

/* With --inout a job writes what it reads: then the file must exist. */
static bool writes_itself(struct preflight *flight, const struct bhi_job_spec *spec,
                          const char *normal) {
    bool found = false;
    for (size_t i = 0; i < spec->read_count && !found; i++) {
        BHI_AUTO_FREE char *other = bhi_paths_normalize(&flight->paths, spec->reads[i]);
        found = other && !strcmp(other, normal);
    }
    return found;
}

static bool note_written(struct preflight *flight, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct bhi_job_spec *spec = &flight->specs[i];
        for (size_t k = 0; k < spec->write_count; k++) {
            BHI_AUTO_FREE char *normal = bhi_paths_normalize(&flight->paths, spec->writes[k]);
            if (!normal || !bhi_names_note(writes_itself(flight, spec, normal) ? &flight->replaced
                                                                               : &flight->written,
                                           normal)) {
                return false;
            }
        }
    }
    return true;
}

static bool note_source(struct preflight *flight, const char *path) {
    BHI_AUTO_FREE char *normal = bhi_paths_normalize(&flight->paths, path);
    return normal && bhi_names_note(&flight->sources, normal);
}

static bool note_sources(struct preflight *flight, size_t count) {
    bool noted = true;
    for (size_t i = 0; noted && i < count; i++) {
        const struct bhi_job_spec *spec = &flight->specs[i];
        noted = !spec->kernel || note_source(flight, spec->kernel);
        for (size_t k = 0; noted && k < spec->include_count; k++) {
            noted = note_source(flight, spec->includes[k]);
        }
    }
    return noted;
}

static bool note_state(struct preflight *flight, const char *state) {
    if (!state || flight->state.known) {
        return true;
    }
    flight->state_name = bhi_paths_normalize(&flight->paths, state);
    return flight->state_name;
}

bool bhi_preflight(const struct bhi_job_spec *specs, size_t count, const bool *skipped,
                   const char *folder, const struct bhi_preflight_own *own,
                   bhi_preflight_visitor visit, void *user) {
    struct preflight flight = {.specs = specs,
                               .folder = folder,
                               .jobs = place_of(own->jobs),
                               .state = place_of(own->state),
                               .device = own->device,
                               .contents = own->contents,
                               .makes = own->makes,
                               .made = own->made,
                               .visit = visit,
                               .user = user,
                               .good = true};
    struct bhi_complaint complaint;
    struct bhi_names *const tables[] = {
        &flight.written,      &flight.replaced,      &flight.sources,      &flight.read,
        &flight.inputs.names, &flight.outputs.names, &flight.folders.names};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        bhi_names_init(tables[i]);
    }
    bool noted = bhi_paths_init(&flight.paths, folder) && note_written(&flight, count) &&
                 note_sources(&flight, count) && note_state(&flight, own->state);
    for (size_t i = 0; noted && i < count; i++) {
        if (!skipped || !skipped[i]) {
            check(&flight, i);
        } else {
            noted = note_inputs(&flight, &specs[i]);
        }
    }
    if (!noted) {
        bhi_refuse(&complaint, "out of memory");
        report(&flight, count, complaint.text, &complaint);
    }
    bhi_paths_fini(&flight.paths);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        bhi_names_fini(tables[i]);
    }
    free(flight.state_name);
    free(flight.inputs.results);
    free(flight.outputs.results);
    free(flight.folders.results);
    return flight.good;
}
