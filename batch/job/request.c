#include "batch/job/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/job/object.h"
#include "request/like.h"

enum { SHOWN = 64 }; /* bytes of a name that a complaint shows */

/* A request while an object fills it in. */
struct filling {
    const json_t *object;
    const char *folder; /* NULL: paths stay as they are written */
    struct bhi_run_request *run;
    struct bhi_complaint *complaint;
};

/* Puts the key, and the name inside its object if there is one, in front of the complaint. */
static bool blame(const struct filling *filling, const char *key, const char *name) {
    const struct bhi_complaint inner = *filling->complaint;
    if (name) {
        return bhi_refuse(filling->complaint, "\"%s\" \"%.*s\": %.800s", key, SHOWN, name,
                          inner.text);
    }
    return bhi_refuse(filling->complaint, "\"%s\": %.800s", key, inner.text);
}

static bool refuse_memory(const struct filling *filling) {
    filling->run->error = ENOMEM;
    return bhi_refuse(filling->complaint, "out of memory");
}

/* Returns |path| inside |folder|, for the caller to free. */
static char *join(const char *folder, const char *path) {
    char *whole = NULL;
    if (!folder || path[0] == '/') {
        return strdup(path);
    }
    return asprintf(&whole, "%s/%s", folder, path) < 0 ? NULL : whole;
}

/* -- one key --------------------------------------------------------------------------------- */

static bool take_text(const struct filling *filling, const char *key, bhi_run_text *set) {
    const char *text = json_string_value(json_object_get(filling->object, key));
    return !text || set(filling->run, text, filling->complaint) || blame(filling, key, NULL);
}

static bool take_pairs(const struct filling *filling, const char *key, bhi_run_pair *add) {
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(filling->object, key), name, value) {
        /* On a command line a '=' would end the name. */
        if (strchr(name, '=') ? !bhi_refuse(filling->complaint, "there is a '=' in the name")
                              : !add(filling->run, name, strlen(name), json_string_value(value),
                                     filling->complaint)) {
            return blame(filling, key, name);
        }
    }
    return true;
}

/* Takes X, Y and Z of |what|s into |out|; |set| takes them as a text. */
static bool take_triple(const struct filling *filling, const char *key, const char *what,
                        uint32_t out[3], bhi_run_text *set) {
    const json_t *triple = json_object_get(filling->object, key);
    size_t i;
    json_t *count;
    if (json_is_array(triple)) {
        out[0] = out[1] = out[2] = 1;
    }
    json_array_foreach(triple, i, count) {
        const json_int_t value = json_integer_value(count);
        if (value == 0) {
            bhi_refuse(filling->complaint,
                       "'0': there must be at least one %s in each dimension: numbers from 1 to "
                       "4294967295",
                       what);
            return blame(filling, key, NULL);
        }
        if (value < 1 || value > UINT32_MAX) {
            bhi_refuse(filling->complaint, "'%lld' is not a number from 1 to 4294967295",
                       (long long)value);
            return blame(filling, key, NULL);
        }
        out[i] = (uint32_t)value;
    }
    return take_text(filling, key, set);
}

static bool take_shared(const struct filling *filling) {
    const json_t *shared = json_object_get(filling->object, "shared");
    const json_int_t value = json_integer_value(shared);
    filling->run->has_shared = shared;
    filling->run->shared_bytes = (uint32_t)value;
    if (value < 0 || value > UINT32_MAX) {
        bhi_refuse(filling->complaint, "%lld is not a number of bytes from 0 to 4294967295",
                   (long long)value);
        return blame(filling, "shared", NULL);
    }
    return true;
}

static bool take_launch(const struct filling *filling) {
    struct bhi_run_request *run = filling->run;
    /* Both are names of the same, and only one is given. */
    return take_triple(filling, "groups", "group", run->groups, bhi_run_set_groups) &&
           take_triple(filling, "grid", "group", run->groups, bhi_run_set_groups) &&
           take_triple(filling, "block", "thread", run->block, bhi_run_set_block) &&
           take_shared(filling);
}

static bool take_includes(const struct filling *filling, bool reads) {
    size_t i;
    json_t *path;
    json_array_foreach(json_object_get(filling->object, "I"), i, path) {
        const char *text = json_string_value(path);
        if (!*text) {
            bhi_refuse(filling->complaint, "the file name is empty");
            return blame(filling, "I", NULL);
        }
        char *whole = reads ? join(filling->folder, text) : NULL;
        if (reads && !whole) {
            return refuse_memory(filling);
        }
        const bool good = !reads || bhi_run_add_include(filling->run, whole, filling->complaint) ||
                          blame(filling, "I", text);
        free(whole);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* -- all of a job ---------------------------------------------------------------------------- */

/* Joins the paths of a binding with the folder. Refuses standard streams, and two outputs to one
 * file. */
static bool place_binding(const struct filling *filling, uint32_t index) {
    struct bhi_run_request *run = filling->run;
    struct bhi_complaint *complaint = filling->complaint;
    struct bhi_run_binding *binding = &run->bindings[index];
    char **const paths[] = {&binding->in_path, &binding->out_path};
    for (size_t i = 0; i < 2; i++) {
        if (!*paths[i]) {
            continue;
        }
        if (!strcmp(*paths[i], "-")) {
            bhi_refuse(complaint, "a job cannot use standard input or output: name a file");
            return blame(filling, binding->option, NULL);
        }
        char *whole = join(filling->folder, *paths[i]);
        if (!whole) {
            return refuse_memory(filling);
        }
        free(*paths[i]);
        *paths[i] = whole;
    }
    for (uint32_t i = 0; binding->out_path && i < index; i++) {
        if (run->bindings[i].out_path && !strcmp(run->bindings[i].out_path, binding->out_path)) {
            return bhi_refuse(complaint, "\"%s\": %.200s is written by two bindings",
                              binding->option, binding->out_path);
        }
    }
    return true;
}

/* Compares the names only; links are followed when the job's turn comes. */
static bool refuse_overlap(const struct bhi_run_request *run, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < run->binding_count; i++) {
        const struct bhi_run_binding *output = &run->bindings[i];
        if (!output->out_path || (output->in_path && !strcmp(output->in_path, output->out_path))) {
            continue;
        }
        for (uint32_t k = 0; k < run->binding_count; k++) {
            const struct bhi_run_binding *input = &run->bindings[k];
            if (input->in_path && !strcmp(input->in_path, output->out_path)) {
                return bhi_refuse(
                    complaint,
                    "\"%s\" %.200s: \"%s\" %.200s reads that file: to replace it, use \"inout\"",
                    output->option, output->text, input->option, input->text);
            }
        }
    }
    return true;
}

/* In the order in which complaints are reported. "push" is a text by now, or empty. */
static bool fill(const struct filling *filling, bool reads_includes) {
    struct bhi_run_request *run = filling->run;
    const bool good = run->eval
                          ? take_pairs(filling, "in", bhi_eval_add_input) &&
                                take_pairs(filling, "out", bhi_eval_add_output) &&
                                take_pairs(filling, "set", bhi_eval_add_number) &&
                                take_text(filling, "piece", bhi_eval_set_piece)
                          : take_text(filling, "entry", bhi_run_set_entry) &&
                                take_text(filling, "language", bhi_run_set_language) &&
                                take_pairs(filling, "D", bhi_run_add_define) &&
                                take_includes(filling, reads_includes) && take_launch(filling) &&
                                take_pairs(filling, "in", bhi_run_add_in) &&
                                take_pairs(filling, "out", bhi_run_add_out) &&
                                take_pairs(filling, "inout", bhi_run_add_inout) &&
                                take_text(filling, "push", bhi_run_add_push) &&
                                take_pairs(filling, "spec", bhi_run_add_constant);
    if (!good || !take_text(filling, "deadline", bhi_run_set_deadline) ||
        !take_text(filling, "compile_deadline", bhi_run_set_compile_deadline) ||
        !take_text(filling, "memory", bhi_run_set_memory_limit) ||
        !take_text(filling, "device", bhi_run_set_device)) {
        return false;
    }
    run->reinterpret = json_is_true(json_object_get(filling->object, "reinterpret"));
    run->trusted = json_is_true(json_object_get(filling->object, "trusted"));
    for (uint32_t i = 0; i < run->binding_count; i++) {
        if (!place_binding(filling, i)) {
            return false;
        }
    }
    if (run->eval && !run->eval->outputs) {
        return bhi_refuse(filling->complaint, "\"out\": there is no output");
    }
    return bhi_run_find_likes(run, "", filling->complaint) &&
           refuse_overlap(run, filling->complaint);
}

/* Makes room for the bindings, and sets what the job computes. */
static bool begin(const struct filling *filling, struct bhi_job_request *request) {
    const char *expression = json_string_value(json_object_get(filling->object, "eval"));
    const char *kernel = json_string_value(json_object_get(filling->object, "kernel"));
    const size_t bindings = json_object_size(json_object_get(filling->object, "in")) +
                            json_object_size(json_object_get(filling->object, "out")) +
                            json_object_size(json_object_get(filling->object, "inout"));
    if (expression && !*expression) {
        return bhi_refuse(filling->complaint, "\"eval\": the expression is empty");
    }
    if (!expression && !*kernel) {
        return bhi_refuse(filling->complaint, "\"kernel\": the file name is empty");
    }
    if (!expression && !strcmp(kernel, "-")) {
        return bhi_refuse(filling->complaint,
                          "\"kernel\": a job cannot use standard input: name a file");
    }
    request->kernel_path = expression ? strdup("eval") : join(filling->folder, kernel);
    if (!request->kernel_path ||
        !bhi_run_request_init(filling->run, request->kernel_path, bindings, filling->complaint)) {
        return refuse_memory(filling);
    }
    filling->run->eval = expression ? calloc(1, sizeof *filling->run->eval) : NULL;
    if (expression && !filling->run->eval) {
        return refuse_memory(filling);
    }
    if (expression) {
        filling->run->eval->expression = expression;
    }
    return true;
}

bool bhi_job_request_fill(json_t *object, const char *folder, bool reads_includes,
                          struct bhi_job_request *out_request, struct bhi_complaint *complaint) {
    const struct filling filling = {object, folder, &out_request->run, complaint};
    *out_request = (struct bhi_job_request){.object = json_incref(object)};
    if (begin(&filling, out_request) && fill(&filling, reads_includes)) {
        return true;
    }
    const int error = out_request->run.error;
    bhi_job_request_free(out_request);
    out_request->error = error;
    return false;
}

bool bhi_job_request_parse(const char *text, const char *folder, bool reads_includes,
                           struct bhi_job_request *out_request, struct bhi_complaint *complaint) {
    json_t *object = bhi_job_object_load(text, strlen(text), complaint);
    out_request->error = object ? 0 : ENOMEM; /* its text was parsed before, when it was added */
    const bool good =
        object && bhi_job_request_fill(object, folder, reads_includes, out_request, complaint);
    json_decref(object);
    return good;
}

void bhi_job_request_free(struct bhi_job_request *request) {
    bhi_run_request_free(&request->run);
    free(request->kernel_path);
    json_decref(request->object);
    *request = (struct bhi_job_request){0};
}
