#include "chaos/history/fields.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "tool/json.h"
#include "tool/outfile.h"
#include "tool/text.h"

static json_t *u64(uint64_t number) {
    if (number <= INT64_MAX) {
        return bhi_json_number(number);
    }
    return bhi_json_digits(number);
}

static json_t *fault_set(uint32_t set) {
    json_t *names = json_array();
    for (uint32_t kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (set & 1u << kind) {
            json_array_append_new(names, json_string(bhi_fault_names[kind]));
        }
    }
    return names;
}

static json_t *numbers(const struct bhi_field *field, const uint8_t *at, const uint8_t *base) {
    uint32_t count = *(const uint32_t *)(base + field->counted);
    json_t *array = json_array();
    for (uint32_t i = 0; i < count && i < field->most; i++) {
        json_array_append_new(array, field->type == BHI_FIELD_U64S
                                         ? u64(((const uint64_t *)at)[i])
                                         : json_integer(((const int32_t *)at)[i]));
    }
    return array;
}

static json_t *digest(const uint8_t *bytes) {
    char hex[2 * BHI_CHAOS_DIGEST + 1];
    return json_string(sodium_bin2hex(hex, sizeof hex, bytes, BHI_CHAOS_DIGEST));
}

static json_t *name_of(const struct bhi_field *field, unsigned value) {
    for (unsigned i = 0; field->names[i]; i++) {
        if (i == value) {
            return json_string(field->names[i]);
        }
    }
    return NULL;
}

/* Returns NULL if there is no memory, or the value has no name. */
static json_t *value_of(const struct bhi_field *field, const void *record) {
    const uint8_t *base = record, *at = base + field->offset;
    char text[256];
    switch (field->type) {
    case BHI_FIELD_U64:
        return u64(*(const uint64_t *)at);
    case BHI_FIELD_U32:
        return json_integer(*(const uint32_t *)at);
    case BHI_FIELD_I32:
        return json_integer(*(const int32_t *)at);
    case BHI_FIELD_REAL:
        return json_real(*(const double *)at);
    case BHI_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case BHI_FIELD_TEXT:
        return json_string(bhi_text_clean(text, sizeof text, (const char *)at));
    case BHI_FIELD_NAME:
        return name_of(field, *(const unsigned *)at);
    case BHI_FIELD_STATUS: {
        const char *word = bhi_status_word(*(const bh_status *)at);
        return word ? json_string(word) : NULL;
    }
    case BHI_FIELD_FAULTS:
        return fault_set(*(const uint32_t *)at);
    case BHI_FIELD_U64S:
    case BHI_FIELD_I32S:
        return numbers(field, at, base);
    case BHI_FIELD_DIGEST:
        return digest(at);
    }
    return NULL;
}

/* |kind| is NULL for the header. */
static bool write_line(FILE *file, const char *kind, const struct bhi_field *fields,
                       const void *record, struct bhi_complaint *complaint) {
    json_t *object = json_object();
    bool good = object && (!kind || json_object_set_new(object, "kind", json_string(kind)) == 0);
    for (const struct bhi_field *field = fields; good && field->key; field++) {
        good = json_object_set_new(object, field->key, value_of(field, record)) == 0;
        if (!good) {
            bhi_refuse(complaint, "a record of kind %s cannot be written: '%s'",
                       kind ? kind : "header", field->key);
        }
    }
    if (!object) {
        bhi_refuse(complaint, "out of memory");
    }
    errno = 0;
    if (good && (json_dumpf(object, file, JSON_COMPACT) != 0 || fputc('\n', file) == EOF)) {
        good = bhi_refuse(complaint, "cannot be written: %s", strerror(errno ? errno : ENOMEM));
    }
    json_decref(object);
    return good;
}

static bool write_all(FILE *file, const struct bhi_history *history,
                      struct bhi_complaint *complaint) {
    static const struct bhi_field none[] = {{.key = NULL}};
    if (!write_line(file, NULL, bhi_header_fields, &history->header, complaint)) {
        return false;
    }
    BHI_RECORDS(record, history) {
        const struct bhi_fields *fields = &bhi_record_fields[record->kind];
        if (!write_line(file, fields->kind, fields->fields, record, complaint)) {
            return false;
        }
    }
    if (history->overflow && !write_line(file, "overflow", none, NULL, complaint)) {
        return false;
    }
    return !history->complete || write_line(file, "complete", none, NULL, complaint);
}

/* Writes line by line, because the history of a long run should not be in memory twice. */
static bool write_to(int fd, const struct bhi_history *history, struct bhi_complaint *complaint) {
    int copy = dup(fd);
    FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (!file) {
        bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
        if (copy >= 0) {
            close(copy);
        }
        return false;
    }
    bool good = write_all(file, history, complaint);
    if (fclose(file) != 0 && good) {
        good = bhi_refuse(complaint, "cannot be written: %s", strerror(errno));
    }
    return good;
}

bool bhi_history_save(const struct bhi_history *history, const char *path,
                      struct bhi_complaint *complaint) {
    struct bhi_outfile file;
    if (!bhi_outfile_open(path, 0, &file, complaint)) {
        return false;
    }
    bool good = write_to(file.fd, history, complaint) && bhi_outfile_seal(&file, complaint) &&
                bhi_outfile_commit(&file, complaint);
    bhi_outfile_abandon(&file);
    return good;
}
