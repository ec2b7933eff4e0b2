#include "batch/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "batch/job/object.h"
#include "batch/job/request.h"

const char *bhi_job_state_name(enum bhi_job_state state) {
    static const char *const names[BHI_JOB_STATES] = {
        [BHI_JOB_SUBMITTED] = "submitted", [BHI_JOB_WAITING] = "waiting",
        [BHI_JOB_RUNNING] = "running",     [BHI_JOB_DONE] = "done",
        [BHI_JOB_FAILED] = "failed",       [BHI_JOB_QUARANTINED] = "quarantined",
        [BHI_JOB_CANCELLED] = "cancelled",
    };
    return (unsigned)state < BHI_JOB_STATES ? names[state] : "unknown";
}

bool bhi_job_state_is_end(enum bhi_job_state state) {
    return state >= BHI_JOB_DONE;
}

/* Control characters end lines and control terminals, and ids are printed in every message. */
static bool check_id(const char *id, const char *key, struct bhi_complaint *complaint) {
    const size_t length = strlen(id);
    if (length == 0) {
        return bhi_refuse(complaint, "\"%s\": an id is empty", key);
    }
    if (length > BHI_JOB_ID) {
        return bhi_refuse(complaint, "\"%s\": %.40s… is longer than %d bytes", key, id, BHI_JOB_ID);
    }
    for (const unsigned char *c = (const unsigned char *)id; *c; c++) {
        /* The second condition means U+0080 to U+009f, in UTF-8. */
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0)) {
            return bhi_refuse(complaint, "\"%s\": an id has a control character in it", key);
        }
    }
    return true;
}

static bool take_number(const json_t *object, const char *key, long long least, long long most,
                        int32_t *out_value, struct bhi_complaint *complaint) {
    const json_t *number = json_object_get(object, key);
    if (!number) {
        return true;
    }
    const long long value = json_integer_value(number);
    if (value < least || value > most) {
        return bhi_refuse(complaint, "\"%s\": %lld is not from %lld to %lld", key, value, least,
                          most);
    }
    *out_value = (int32_t)value;
    return true;
}

static bool check_dependencies(const struct bhi_job_spec *spec, struct bhi_complaint *complaint) {
    const char **sorted = calloc(spec->depends_count + 1, sizeof *sorted);
    bool good = sorted || bhi_refuse(complaint, "out of memory");
    for (size_t i = 0; good && i < spec->depends_count; i++) {
        sorted[i] = spec->depends_on[i];
        good = check_id(sorted[i], "depends_on", complaint) &&
               (strcmp(sorted[i], spec->id) != 0 ||
                bhi_refuse(complaint, "\"depends_on\": it depends on itself"));
    }
    if (good) {
        bhi_sort_texts(sorted, spec->depends_count);
    }
    for (size_t i = 1; good && i < spec->depends_count; i++) {
        if (!strcmp(sorted[i - 1], sorted[i])) {
            good = bhi_refuse(complaint, "\"depends_on\": \"%.255s\" is named twice", sorted[i]);
        }
    }
    free(sorted);
    return good;
}

/* Copies the texts of an array for the spec. */
static bool take_texts(char ***out_texts, size_t *out_count, const json_t *array,
                       struct bhi_complaint *complaint) {
    const size_t count = json_array_size(array);
    if (!(*out_texts = calloc(count + 1, sizeof **out_texts))) {
        return bhi_refuse(complaint, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        char *text = strdup(json_string_value(json_array_get(array, i)));
        if (!text) {
            return bhi_refuse(complaint, "out of memory");
        }
        (*out_texts)[(*out_count)++] = text;
    }
    return true;
}

static bool take_dependencies(struct bhi_job_spec *spec, const json_t *object,
                              struct bhi_complaint *complaint) {
    const json_t *names = json_object_get(object, "depends_on");
    const size_t count = json_array_size(names);
    if (count > BHI_JOB_DEPENDENCIES) {
        return bhi_refuse(complaint, "\"depends_on\": more than %d", BHI_JOB_DEPENDENCIES);
    }
    return take_texts(&spec->depends_on, &spec->depends_count, names, complaint) &&
           check_dependencies(spec, complaint);
}

static bool take_paths(struct bhi_job_spec *spec, struct bhi_run_request *run,
                       struct bhi_complaint *complaint) {
    spec->reads = calloc(run->binding_count + 1, sizeof *spec->reads);
    spec->writes = calloc(run->binding_count + 1, sizeof *spec->writes);
    if (!spec->reads || !spec->writes) {
        return bhi_refuse(complaint, "out of memory");
    }
    for (uint32_t i = 0; i < run->binding_count; i++) {
        struct bhi_run_binding *binding = &run->bindings[i];
        if (binding->in_path) {
            spec->reads[spec->read_count++] = binding->in_path;
        }
        if (binding->out_path) {
            spec->writes[spec->write_count++] = binding->out_path;
        }
        binding->in_path = binding->out_path = NULL; /* the spec owns them now */
    }
    return true;
}

/* Writes |key| in full, and under that name. */
static bool write_triple(json_t *object, const char *key, const uint32_t triple[3]) {
    return json_object_set_new(object, key,
                               json_pack("[I,I,I]", (json_int_t)triple[0], (json_int_t)triple[1],
                                         (json_int_t)triple[2])) == 0;
}

/* The text is compared when a batch is resumed, so keys that change nothing are left out. */
static bool write_text(struct bhi_job_spec *spec, json_t *object, const struct bhi_run_request *run,
                       struct bhi_complaint *complaint) {
    const char *name;
    json_t *value;
    void *next;
    const bool launches = json_object_get(object, "groups") || json_object_get(object, "grid");
    json_object_foreach_safe(object, next, name, value) {
        if ((json_is_object(value) && json_object_size(value) == 0) ||
            (json_is_array(value) && json_array_size(value) == 0) || json_is_false(value) ||
            !strcmp(name, "grid") || (!strcmp(name, "shared") && !run->shared_bytes)) {
            json_object_del(object, name);
        }
    }
    if ((launches && !write_triple(object, "groups", run->groups)) ||
        (run->block[0] && !write_triple(object, "block", run->block))) {
        return bhi_refuse(complaint, "out of memory");
    }
    spec->text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    if (!spec->text) {
        return bhi_refuse(complaint, "out of memory");
    }
    /* The text is parsed again when the job's turn comes; the full form of "groups" may be
     * longer. */
    if (strlen(spec->text) > BHI_JOB_TEXT) {
        return bhi_refuse(complaint, "longer than %d bytes", BHI_JOB_TEXT);
    }
    return true;
}

static bool take_all(struct bhi_job_spec *spec, json_t *object, struct bhi_run_request *run,
                     struct bhi_complaint *complaint) {
    spec->id = strdup(json_string_value(json_object_get(object, "id")));
    const char *kernel = json_string_value(json_object_get(object, "kernel"));
    spec->kernel = kernel ? strdup(kernel) : NULL;
    if (!spec->id || (kernel && !spec->kernel)) {
        return bhi_refuse(complaint, "out of memory");
    }
    return check_id(spec->id, "id", complaint) &&
           take_number(object, "retries", 0, BHI_JOB_RETRIES, &spec->retries, complaint) &&
           take_number(object, "priority", -BHI_JOB_PRIORITY, BHI_JOB_PRIORITY, &spec->priority,
                       complaint) &&
           take_dependencies(spec, object, complaint) && take_paths(spec, run, complaint) &&
           take_texts(&spec->includes, &spec->include_count, json_object_get(object, "I"),
                      complaint) &&
           write_text(spec, object, run, complaint);
}

bool bhi_job_parse(const char *line, size_t length, struct bhi_job_spec *out_spec,
                   struct bhi_complaint *complaint) {
    struct bhi_job_request request;
    *out_spec = (struct bhi_job_spec){.retries = -1};
    if (length > BHI_JOB_TEXT) {
        return bhi_refuse(complaint, "longer than %d bytes", BHI_JOB_TEXT);
    }
    json_t *object = bhi_job_object_load(line, length, complaint);
    if (!object) {
        return false;
    }
    bool good = bhi_job_request_fill(object, NULL, false, &request, complaint);
    if (good) {
        good = take_all(out_spec, object, &request.run, complaint);
        bhi_job_request_free(&request);
    }
    json_decref(object);
    if (!good) {
        bhi_job_spec_free(out_spec);
    }
    return good;
}

static void free_all(char **strings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(strings[i]);
    }
    free(strings);
}

void bhi_job_spec_free(struct bhi_job_spec *spec) {
    free(spec->text);
    free(spec->id);
    free(spec->kernel);
    free_all(spec->depends_on, spec->depends_count);
    free_all(spec->reads, spec->read_count);
    free_all(spec->writes, spec->write_count);
    free_all(spec->includes, spec->include_count);
    *spec = (struct bhi_job_spec){0};
}
