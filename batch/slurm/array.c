#include "batch/slurm/array.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/slurm/whole.h"
#include "tool/clock.h"

bool bhi_array_init(struct bhi_slurm_array *array, struct bhi_complaint *complaint) {
    uint8_t random[BHI_ARRAY_ID / 2];
    *array = (struct bhi_slurm_array){.created_ns = bhi_clock_calendar_ns()};
    if (sodium_init() < 0) {
        return bhi_refuse(complaint, "libsodium cannot start");
    }
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(array->id, sizeof array->id, random, sizeof random);
    return true;
}

static void free_texts(char **texts) {
    for (size_t i = 0; texts && texts[i]; i++) {
        free(texts[i]);
    }
    free(texts);
}

void bhi_array_free(struct bhi_slurm_array *array) {
    for (size_t i = 0; i < array->round_count; i++) {
        free(array->rounds[i].shards);
    }
    free(array->rounds);
    free(array->sizes);
    free(array->cwd);
    free(array->chdir);
    free(array->jobs);
    free(array->program);
    free_texts(array->batch_options);
    free_texts(array->sbatch_options);
    *array = (struct bhi_slurm_array){0};
}

struct bhi_slurm_round *bhi_array_add_round(struct bhi_slurm_array *array, const uint32_t *shards,
                                            uint32_t count, const char *why) {
    uint32_t *copy = calloc(count + 1, sizeof *copy);
    if (!copy || !BHI_ARRAY_RESERVE(array->rounds, array->round_capacity, array->round_count + 1)) {
        free(copy);
        return NULL;
    }
    memcpy(copy, shards, count * sizeof *copy);
    struct bhi_slurm_round *round = &array->rounds[array->round_count++];
    *round = (struct bhi_slurm_round){
        .shards = copy, .count = count, .submitted_ns = bhi_clock_calendar_ns()};
    snprintf(round->why, sizeof round->why, "%s", why);
    return round;
}

void bhi_array_comment(const struct bhi_slurm_array *array, size_t round,
                       char out[BHI_ARRAY_COMMENT]) {
    snprintf(out, BHI_ARRAY_COMMENT, "bulkhead:%s:%zu", array->id, round);
}

bool bhi_array_owns(const struct bhi_slurm_array *array, const char *comment, size_t length,
                    size_t *out_round) {
    char prefix[BHI_ARRAY_COMMENT];
    const int used = snprintf(prefix, sizeof prefix, "bulkhead:%s:", array->id);
    size_t round = 0, at = (size_t)used;
    if (length <= at || length > at + 6 || memcmp(comment, prefix, at) != 0) {
        return false;
    }
    for (; at < length; at++) {
        if (comment[at] < '0' || comment[at] > '9') {
            return false;
        }
        round = round * 10 + (size_t)(comment[at] - '0');
    }
    *out_round = round;
    return true;
}

char *bhi_array_indexes(const struct bhi_slurm_round *round) {
    enum { MOST = 12 }; /* bytes of one number and what is before it */
    char *text = calloc(round->count + 1u, MOST);
    size_t used = 0;
    for (uint32_t i = 0, last; text && i < round->count; i = last + 1) {
        last = i;
        while (last + 1 < round->count && round->shards[last + 1] == round->shards[last] + 1) {
            last++;
        }
        used += (size_t)sprintf(text + used, "%s%u", i ? "," : "", round->shards[i]);
        if (last > i) {
            used += (size_t)sprintf(text + used, "-%u", round->shards[last]);
        }
    }
    return text;
}

/* -- writing --------------------------------------------------------------------------------- */

bool bhi_array_takes(const char *text) {
    json_t *string = json_string(text);
    json_decref(string);
    return string;
}

static json_t *texts_of(char *const *texts) {
    json_t *list = json_array();
    for (size_t i = 0; texts && texts[i]; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    return list;
}

static json_t *round_object(const struct bhi_slurm_round *round, size_t number) {
    json_t *shards = json_array();
    for (uint32_t i = 0; i < round->count; i++) {
        json_array_append_new(shards, json_integer(round->shards[i]));
    }
    return json_pack("{s:I, s:I, s:o, s:s, s:I}", "round", (json_int_t)number, "job",
                     (json_int_t)round->job, "shards", shards, "why", round->why, "submitted_ns",
                     (json_int_t)round->submitted_ns);
}

bool bhi_array_save(const struct bhi_slurm_array *array, const char *state,
                    struct bhi_complaint *complaint) {
    json_t *sizes = json_array(), *rounds = json_array();
    for (uint32_t i = 0; i < array->shards; i++) {
        json_array_append_new(sizes, json_integer((json_int_t)array->sizes[i]));
    }
    for (size_t i = 0; i < array->round_count; i++) {
        json_array_append_new(rounds, round_object(&array->rounds[i], i));
    }
    json_t *object =
        json_pack("{s:i, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:s, s:o, s:o, s:o}",
                  "format", BHI_ARRAY_FORMAT, "id", array->id, "created_ns",
                  (json_int_t)array->created_ns, "cwd", array->cwd, "chdir", array->chdir, "jobs",
                  array->jobs, "jobs_hash", array->jobs_hash, "shape_hash", array->shape_hash,
                  "total", (json_int_t)array->total, "shards", (json_int_t)array->shards, "sizes",
                  sizes, "program", array->program, "batch_options", texts_of(array->batch_options),
                  "sbatch_options", texts_of(array->sbatch_options), "rounds", rounds);
    BHI_AUTO_FREE char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/" BHI_ARRAY_FILE, state);
    json_decref(object);
    if (!text || !path) {
        return bhi_refuse(complaint, "out of memory");
    }
    return bhi_whole_write(path, text, strlen(text), 0600, complaint);
}

/* -- reading --------------------------------------------------------------------------------- */

static char **take_texts(const json_t *list) {
    const size_t count = json_array_size(list);
    char **texts = json_is_array(list) ? calloc(count + 1, sizeof *texts) : NULL;
    for (size_t i = 0; texts && i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || !(texts[i] = strdup(text))) {
            free_texts(texts);
            return NULL;
        }
    }
    return texts;
}

static char *take_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strdup(text) : NULL;
}

static bool take_sizes(struct bhi_slurm_array *array, const json_t *list) {
    array->sizes = calloc(array->shards + 1u, sizeof *array->sizes);
    if (!array->sizes || json_array_size(list) != array->shards) {
        return false;
    }
    for (uint32_t i = 0; i < array->shards; i++) {
        const json_t *size = json_array_get(list, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0) {
            return false;
        }
        array->sizes[i] = (uint64_t)json_integer_value(size);
    }
    return true;
}

static bool take_round(struct bhi_slurm_array *array, const json_t *object) {
    const json_t *list = json_object_get(object, "shards");
    const size_t count = json_array_size(list);
    const char *why = json_string_value(json_object_get(object, "why"));
    uint64_t job, submitted;
    BHI_AUTO_FREE uint32_t *shards = calloc(count + 1, sizeof *shards);
    if (!shards || !count || count > array->shards || !why ||
        !bhi_slurm_take_number(object, "job", UINT32_MAX, &job) ||
        !bhi_slurm_take_number(object, "submitted_ns", INT64_MAX, &submitted)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *shard = json_array_get(list, i);
        if (!json_is_integer(shard) || json_integer_value(shard) < 0 ||
            json_integer_value(shard) >= (json_int_t)array->shards ||
            (i > 0 && json_integer_value(shard) <= (json_int_t)shards[i - 1])) {
            return false;
        }
        shards[i] = (uint32_t)json_integer_value(shard);
    }
    struct bhi_slurm_round *round = bhi_array_add_round(array, shards, (uint32_t)count, why);
    if (round) {
        round->job = job;
        round->submitted_ns = submitted;
    }
    return round;
}

static bool take_all(struct bhi_slurm_array *array, const json_t *object) {
    uint64_t format, shards;
    const json_t *rounds = json_object_get(object, "rounds");
    if (!bhi_slurm_take_number(object, "format", BHI_ARRAY_FORMAT, &format) ||
        format != BHI_ARRAY_FORMAT ||
        !bhi_slurm_take_digits(object, "id", array->id, BHI_ARRAY_ID) ||
        !bhi_slurm_take_digits(object, "jobs_hash", array->jobs_hash, 64) ||
        !bhi_slurm_take_digits(object, "shape_hash", array->shape_hash, 64) ||
        !bhi_slurm_take_number(object, "created_ns", INT64_MAX, &array->created_ns) ||
        !bhi_slurm_take_number(object, "total", INT64_MAX, &array->total) ||
        !bhi_slurm_take_number(object, "shards", BHI_ARRAY_SHARDS, &shards) || !shards ||
        !json_is_array(rounds) || json_array_size(rounds) > BHI_ARRAY_ROUNDS) {
        return false;
    }
    array->shards = (uint32_t)shards;
    array->cwd = take_text(object, "cwd");
    array->chdir = take_text(object, "chdir");
    array->jobs = take_text(object, "jobs");
    array->program = take_text(object, "program");
    array->batch_options = take_texts(json_object_get(object, "batch_options"));
    array->sbatch_options = take_texts(json_object_get(object, "sbatch_options"));
    bool good = array->cwd && array->chdir && array->jobs && array->program &&
                array->batch_options && array->sbatch_options &&
                take_sizes(array, json_object_get(object, "sizes"));
    for (size_t i = 0; good && i < json_array_size(rounds); i++) {
        good = take_round(array, json_array_get(rounds, i));
    }
    return good;
}

enum bhi_array_result bhi_array_load(struct bhi_slurm_array *out_array, const char *state,
                                     struct bhi_complaint *complaint) {
    size_t size = 0;
    int error = 0;
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/" BHI_ARRAY_FILE, state);
    BHI_AUTO_FREE char *text = path ? bhi_whole_read(path, BHI_ARRAY_BYTES, &size, &error) : NULL;
    *out_array = (struct bhi_slurm_array){0};
    if (!text) {
        bhi_refuse(complaint, "%.600s/" BHI_ARRAY_FILE " cannot be read: %s", state,
                   strerror(error ? error : ENOMEM));
        return error == ENOENT ? BHI_ARRAY_NONE : BHI_ARRAY_REFUSED;
    }
    json_error_t why;
    json_t *object = json_loadb(text, size, 0, &why);
    const bool good = object && take_all(out_array, object);
    json_decref(object);
    if (!good) {
        bhi_array_free(out_array);
        bhi_refuse(complaint,
                   "%.600s is damaged, or written by another version: it is not format %d "
                   "of " BHI_ARRAY_FILE,
                   path, BHI_ARRAY_FORMAT);
        return BHI_ARRAY_REFUSED;
    }
    return BHI_ARRAY_LOADED;
}
