#include "chaos/history/fields.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "tool/interrupt.h"
#include "tool/values.h"

#define LINE_MOST 65536u

/* Where a value is in the file. */
struct place {
    size_t line;
    const char *key;
    struct bhi_complaint *complaint;
};

static bool refuse_value(const struct place *place, const char *expected) {
    return bhi_refuse(place->complaint, "line %zu: '%s' must be %s", place->line, place->key,
                      expected);
}

static bool refuse_range(const struct place *place, const struct bhi_field *field) {
    return bhi_refuse(place->complaint, "line %zu: '%s' must be a whole number from %llu to %llu",
                      place->line, place->key, (unsigned long long)field->least,
                      (unsigned long long)field->most);
}

static bool whole(const json_t *value, uint64_t *out_number) {
    if (json_is_string(value)) { /* numbers that JSON cannot hold are written so */
        struct bhi_complaint ignored;
        return bhi_parse_count(json_string_value(value), 0, UINT64_MAX, out_number, &ignored);
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out_number = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_text(const struct bhi_field *field, const json_t *value, char *out,
                      const struct place *place) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= field->most) {
        return bhi_refuse(place->complaint, "line %zu: '%s' must be a text of at most %llu bytes",
                          place->line, place->key, (unsigned long long)field->most - 1);
    }
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            return refuse_value(place, "without control characters");
        }
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool take_name(const struct bhi_field *field, const json_t *value, unsigned *out,
                      const struct place *place) {
    const char *text = json_string_value(value);
    for (unsigned i = 0; text && field->names[i]; i++) {
        if (!strcmp(text, field->names[i])) {
            *out = i;
            return true;
        }
    }
    char names[128];
    size_t used = 0;
    names[0] = 0;
    for (unsigned i = 0; field->names[i] && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i ? ", " : "one of: ", field->names[i]);
    }
    return refuse_value(place, names);
}

static bool take_faults(const json_t *value, uint32_t *out_set, const struct place *place) {
    uint32_t set = 0;
    struct bhi_complaint ignored;
    if (!json_is_array(value)) {
        return refuse_value(place, "an array of faults' names");
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        uint32_t one;
        if (!name || strchr(name, ',') || !bhi_fault_parse(name, &one, &ignored) || set & one) {
            return refuse_value(place, "an array of faults' names, each once");
        }
        set |= one;
    }
    *out_set = set;
    return true;
}

static bool take_numbers(const struct bhi_field *field, const json_t *value, uint8_t *base,
                         const struct place *place) {
    uint64_t most = field->type == BHI_FIELD_U64S ? INT64_MAX : INT32_MAX;
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > field->most) {
        return bhi_refuse(place->complaint, "line %zu: '%s' must be an array of at most %llu",
                          place->line, place->key, (unsigned long long)field->most);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        if (!whole(json_array_get(value, i), &number) || number < field->least || number > most) {
            return refuse_value(place, "an array of whole numbers from 1 on");
        }
        if (field->type == BHI_FIELD_U64S) {
            ((uint64_t *)(base + field->offset))[i] = number;
        } else {
            ((int32_t *)(base + field->offset))[i] = (int32_t)number;
        }
    }
    *(uint32_t *)(base + field->counted) = (uint32_t)count;
    return true;
}

static bool take_digest(const json_t *value, uint8_t *out, const struct place *place) {
    const char *hex = json_string_value(value);
    size_t size = 0;
    if (!hex || strlen(hex) != 2 * BHI_CHAOS_DIGEST ||
        sodium_hex2bin(out, BHI_CHAOS_DIGEST, hex, strlen(hex), NULL, &size, NULL) != 0 ||
        size != BHI_CHAOS_DIGEST) {
        return refuse_value(place, "32 hexadecimal digits");
    }
    return true;
}

static bool take_number(const struct bhi_field *field, const json_t *value, uint8_t *at,
                        const struct place *place) {
    uint64_t number;
    if (!whole(value, &number) || number < field->least || number > field->most) {
        return refuse_range(place, field);
    }
    if (field->type == BHI_FIELD_U64) {
        *(uint64_t *)at = number;
    } else if (field->type == BHI_FIELD_U32) {
        *(uint32_t *)at = (uint32_t)number;
    } else {
        *(int32_t *)at = (int32_t)number;
    }
    return true;
}

static bool take_value(const struct bhi_field *field, const json_t *value, uint8_t *base,
                       const struct place *place) {
    uint8_t *at = base + field->offset;
    switch (field->type) {
    case BHI_FIELD_U64:
    case BHI_FIELD_U32:
    case BHI_FIELD_I32:
        return take_number(field, value, at, place);
    case BHI_FIELD_REAL:
        *(double *)at = json_number_value(value);
        return (json_is_number(value) && isfinite(*(double *)at) && *(double *)at >= 0) ||
               refuse_value(place, "a number, not negative");
    case BHI_FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value) || refuse_value(place, "true or false");
    case BHI_FIELD_TEXT:
        return take_text(field, value, (char *)at, place);
    case BHI_FIELD_NAME:
        return take_name(field, value, (unsigned *)at, place);
    case BHI_FIELD_STATUS: {
        const char *word = json_string_value(value);
        return (word && bhi_status_parse(word, (bh_status *)at)) ||
               refuse_value(place, "a status' name");
    }
    case BHI_FIELD_FAULTS:
        return take_faults(value, (uint32_t *)at, place);
    case BHI_FIELD_U64S:
    case BHI_FIELD_I32S:
        return take_numbers(field, value, base, place);
    case BHI_FIELD_DIGEST:
        return take_digest(value, at, place);
    }
    return false;
}

/* Each key of the table must come once, and no other key but "kind". */
static bool take_object(const struct bhi_field *fields, json_t *object, void *base, size_t line,
                        struct bhi_complaint *complaint) {
    struct place place = {.line = line, .complaint = complaint};
    for (const struct bhi_field *field = fields; field->key; field++) {
        const json_t *value = json_object_get(object, field->key);
        place.key = field->key;
        if (!value && field->optional) {
            continue;
        }
        if (!value) {
            return bhi_refuse(complaint, "line %zu: '%s' is missing", line, field->key);
        }
        if (!take_value(field, value, base, &place)) {
            return false;
        }
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const struct bhi_field *field = fields;
        while (field->key && strcmp(field->key, key) != 0) {
            field++;
        }
        if (!field->key && strcmp(key, "kind") != 0) {
            return bhi_refuse(complaint, "line %zu: unknown key '%.64s' for a record of this kind",
                              line, key);
        }
    }
    return true;
}

static bool take_record(json_t *object, struct bhi_history *history, size_t line,
                        struct bhi_complaint *complaint) {
    static const struct bhi_field none[] = {{.key = NULL}};
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!kind) {
        return bhi_refuse(complaint, "line %zu: 'kind' is missing, or not a text", line);
    }
    if (history->complete) {
        return bhi_refuse(
            complaint, "line %zu: it follows the record 'complete', which must be the last", line);
    }
    if (!strcmp(kind, "complete")) {
        history->complete = true;
        return take_object(none, object, NULL, line, complaint);
    }
    if (history->overflow) {
        return bhi_refuse(complaint, "line %zu: only 'complete' can follow 'overflow'", line);
    }
    if (!strcmp(kind, "overflow")) {
        history->overflow = true;
        return take_object(none, object, NULL, line, complaint);
    }
    for (unsigned k = 0; k < BHI_RECORD_KINDS; k++) {
        if (strcmp(kind, bhi_record_fields[k].kind) != 0) {
            continue;
        }
        struct bhi_record record = {.kind = (enum bhi_record_kind)k};
        if (!take_object(bhi_record_fields[k].fields, object, &record, line, complaint)) {
            return false;
        }
        if (record.stream >= history->header.streams) {
            return bhi_refuse(
                complaint,
                "line %zu: 'stream' must be less than %u, the number of streams in line 1", line,
                history->header.streams);
        }
        bhi_history_note(history, &record);
        return !history->overflow || bhi_refuse(complaint, "line %zu: out of memory", line);
    }
    return bhi_refuse(complaint,
                      "line %zu: 'kind' is '%.64s'; it must be one of: op, refused, end, result, "
                      "fault, healed, sample, stall, memory, attempt, answer, overflow, complete",
                      line, kind);
}

static bool take_header(json_t *object, struct bhi_history *history,
                        struct bhi_complaint *complaint) {
    const json_t *version = json_object_get(object, "bulkhead_chaos");
    if (!version) {
        return bhi_refuse(
            complaint,
            "line 1: 'bulkhead_chaos' is missing: this is not a history of bulkhead chaos");
    }
    if (json_is_integer(version) && json_integer_value(version) != 1) {
        return bhi_refuse(complaint,
                          "line 1: 'bulkhead_chaos' is %lld: this version of bulkhead reads "
                          "histories of version 1",
                          (long long)json_integer_value(version));
    }
    return take_object(bhi_header_fields, object, &history->header, 1, complaint);
}

/* A number that is too big for the parser never reaches the check of its key's range. */
static bool refuse_json(const json_error_t *error, size_t line, struct bhi_complaint *complaint) {
    const bool too_big = json_error_code(error) == json_error_numeric_overflow &&
                         !strncmp(error->text, "too big", strlen("too big"));
    const bool syntax = json_error_code(error) == json_error_invalid_syntax ||
                        json_error_code(error) == json_error_premature_end_of_input;
    return bhi_refuse(complaint, "line %zu: %s%s%s", line, syntax ? "not JSON: " : "", error->text,
                      too_big ? ": write a number above 9223372036854775807 as a string of digits"
                              : "");
}

static bool take_line(const char *text, size_t length, struct bhi_history *history, size_t line,
                      struct bhi_complaint *complaint) {
    json_error_t error;
    if (length == LINE_MOST && text[length - 1] != '\n') {
        return bhi_refuse(complaint, "line %zu: it is longer than %u bytes", line, LINE_MOST);
    }
    if (length == 0 || text[length - 1] != '\n') {
        return bhi_refuse(complaint, "line %zu: it is cut off", line);
    }
    if (memchr(text, 0, length)) {
        return bhi_refuse(complaint, "line %zu: there is a NUL byte in it", line);
    }
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    bool good;
    if (!object) {
        good = refuse_json(&error, line, complaint);
    } else if (!json_is_object(object)) {
        good = bhi_refuse(complaint, "line %zu: not an object", line);
    } else if (line == 1) {
        good = take_header(object, history, complaint);
    } else {
        good = take_record(object, history, line, complaint);
    }
    json_decref(object);
    return good;
}

/* Reads a line of at most LINE_MOST bytes, with its newline. A longer one comes without a
 * newline. */
static size_t read_line(FILE *file, char *line) {
    size_t length = 0;
    for (int c; length < LINE_MOST && (c = getc_unlocked(file)) != EOF;) {
        line[length++] = (char)c;
        if (c == '\n') {
            break;
        }
    }
    return length;
}

bool bhi_history_read(FILE *file, struct bhi_history *out_history,
                      struct bhi_complaint *complaint) {
    bhi_history_init(out_history);
    char *text = malloc(LINE_MOST);
    bool good = text || bhi_refuse(complaint, "out of memory");
    size_t line = 0, length;
    while (good && (length = read_line(file, text)) > 0) {
        good = take_line(text, length, out_history, ++line, complaint);
    }
    free(text);
    if (good && ferror(file)) {
        good = bhi_refuse(complaint, "it cannot be read: %s", strerror(errno));
    }
    if (good && line == 0) {
        good = bhi_refuse(complaint, "it is empty");
    }
    if (!good) {
        bhi_history_free(out_history);
    }
    return good;
}

bool bhi_history_load(const char *path, struct bhi_history *out_history,
                      struct bhi_complaint *complaint) {
    bhi_history_init(out_history);
    FILE *file = bhi_interrupt_open(path);
    if (!file) {
        return bhi_refuse(complaint, "it cannot be opened: %s", strerror(errno));
    }
    const bool good = bhi_history_read(file, out_history, complaint);
    fclose(file);
    return good;
}
