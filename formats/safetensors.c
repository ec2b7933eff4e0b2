#include "formats/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/owner.h"
#include "base/sort.h"
#include "formats/foreign.h"

bool bhi_safetensors_parse_preamble(const uint8_t *bytes, uint64_t file_bytes, size_t *out_length,
                                    struct bhi_complaint *complaint) {
    if (file_bytes < BHI_SAFETENSORS_PREAMBLE) {
        return bhi_refuse(complaint, "not a .safetensors file: it has %llu bytes, the least is %d",
                          (unsigned long long)file_bytes, BHI_SAFETENSORS_PREAMBLE);
    }
    uint64_t length = 0;
    for (int i = BHI_SAFETENSORS_PREAMBLE - 1; i >= 0; i--) {
        length = length << 8 | bytes[i];
    }
    if (length > file_bytes - BHI_SAFETENSORS_PREAMBLE) {
        const enum bhi_foreign foreign = bhi_foreign_find(bytes, BHI_SAFETENSORS_PREAMBLE);
        if (foreign) {
            return bhi_foreign_refuse(foreign, ".safetensors file", complaint);
        }
        return bhi_refuse(
            complaint,
            "offset 0: the length of the header is given as %llu bytes, but only %llu "
            "follow: the file is truncated, or not a .safetensors file",
            (unsigned long long)length,
            (unsigned long long)(file_bytes - BHI_SAFETENSORS_PREAMBLE));
    }
    if (length > BHI_SAFETENSORS_MAX_HEADER) {
        return bhi_refuse(
            complaint, "offset 0: the length of the header is given as %llu bytes; the limit is %d",
            (unsigned long long)length, BHI_SAFETENSORS_MAX_HEADER);
    }
    *out_length = (size_t)length;
    return true;
}

/* Counts the nesting before the JSON parser runs: the parser recurses, and deep nesting would
 * overflow its stack. */
static bool check_depth(const char *text, size_t length, struct bhi_complaint *complaint) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                quoted = false;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > BHI_SAFETENSORS_MAX_DEPTH) {
                return bhi_refuse(complaint, "offset %zu: the header is nested more than %d deep",
                                  BHI_SAFETENSORS_PREAMBLE + i, BHI_SAFETENSORS_MAX_DEPTH);
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return true;
}

static bool read_integer(const json_t *json, uint64_t *out_value) {
    if (!json_is_integer(json) || json_integer_value(json) < 0) {
        return false;
    }
    *out_value = (uint64_t)json_integer_value(json);
    return true;
}

static bool read_shape(const char *name, const json_t *shape, struct bhi_tensor *out,
                       uint64_t *out_elements, struct bhi_complaint *complaint) {
    if (!json_is_array(shape)) {
        return bhi_refuse(complaint, "tensor '%.200s': 'shape' is missing, or not an array", name);
    }
    if (json_array_size(shape) > BHI_MAX_DIMENSIONS) {
        return bhi_refuse(complaint, "tensor '%.200s': the shape has more than %d dimensions", name,
                          BHI_MAX_DIMENSIONS);
    }
    /* A zero makes the tensor empty. The other sizes are still checked for overflow. */
    uint64_t elements = 1;
    bool empty = false;
    out->dimensions = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < out->dimensions; i++) {
        if (!read_integer(json_array_get(shape, i), &out->shape[i])) {
            return bhi_refuse(
                complaint, "tensor '%.200s': shape[%u] is not a whole number from 0 on", name, i);
        }
        empty |= out->shape[i] == 0;
        if (out->shape[i] && __builtin_mul_overflow(elements, out->shape[i], &elements)) {
            return bhi_refuse(complaint,
                              "tensor '%.200s': the shape has more elements than 64 bits can count",
                              name);
        }
    }
    *out_elements = empty ? 0 : elements;
    return true;
}

/* |wanted|: this is the tensor that the caller asked for, so its dtype must be known. Any other
 * tensor may have an unknown dtype; then only its offsets are checked. */
static bool read_tensor(const char *name, const json_t *entry, uint64_t data_bytes, bool wanted,
                        struct bhi_tensor *out, struct bhi_complaint *complaint) {
    if (!json_is_object(entry)) {
        return bhi_refuse(complaint, "tensor '%.200s': its entry is not an object", name);
    }
    if (json_object_size(entry) != 3) {
        return bhi_refuse(complaint,
                          "tensor '%.200s': its entry has %zu keys; it must have dtype, shape and "
                          "data_offsets, and no other",
                          name, json_object_size(entry));
    }
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype) {
        return bhi_refuse(complaint, "tensor '%.200s': 'dtype' is missing, or not a string", name);
    }
    const bool strange = !bhi_dtype_find_safetensors(dtype, &out->dtype);
    if (strange && wanted) {
        return bhi_refuse(complaint, "tensor '%.200s': dtype '%.40s' is not supported", name,
                          dtype);
    }
    const uint64_t width = strange ? 1 : bhi_dtype_size(out->dtype);
    uint64_t elements = 0, bytes, end;
    if (!read_shape(name, json_object_get(entry, "shape"), out, &elements, complaint)) {
        return false;
    }
    if (__builtin_mul_overflow(elements, width, &bytes)) {
        return bhi_refuse(complaint, "tensor '%.200s': more bytes than 64 bits can count", name);
    }
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (json_array_size(offsets) != 2 || !read_integer(json_array_get(offsets, 0), &out->begin) ||
        !read_integer(json_array_get(offsets, 1), &end)) {
        return bhi_refuse(complaint,
                          "tensor '%.200s': 'data_offsets' is not an array of two offsets", name);
    }
    if (end < out->begin || end > data_bytes) {
        return bhi_refuse(
            complaint,
            "tensor '%.200s': its data_offsets, %llu and %llu, are not a range of the "
            "%llu bytes of data in the file",
            name, (unsigned long long)out->begin, (unsigned long long)end,
            (unsigned long long)data_bytes);
    }
    out->bytes = end - out->begin;
    if (out->bytes != bytes && !strange) {
        return bhi_refuse(complaint,
                          "tensor '%.200s': its dtype and shape need %llu bytes, but its "
                          "data_offsets, %llu and %llu, hold %llu",
                          name, (unsigned long long)bytes, (unsigned long long)out->begin,
                          (unsigned long long)end, (unsigned long long)out->bytes);
    }
    return true;
}

struct extent {
    const char *name;
    uint64_t begin, end;
};

BHI_ORDER_2(compare_extents, struct extent, begin, end)

/* In the order of their offsets, each tensor must begin where the one before it ends. So each byte
 * of the data belongs to exactly one tensor. */
static bool check_cover(struct extent *extents, size_t count, uint64_t data_bytes,
                        struct bhi_complaint *complaint) {
    uint64_t end = 0;
    qsort(extents, count, sizeof *extents, compare_extents);
    for (size_t i = 0; i < count; i++) {
        if (extents[i].begin < end) {
            return bhi_refuse(complaint, "tensors '%.200s' and '%.200s' overlap at offset %llu",
                              extents[i - 1].name, extents[i].name,
                              (unsigned long long)extents[i].begin);
        }
        if (extents[i].begin > end) {
            return bhi_refuse(complaint,
                              "tensor '%.200s': the %llu bytes before its offset %llu belong to no "
                              "tensor",
                              extents[i].name, (unsigned long long)(extents[i].begin - end),
                              (unsigned long long)extents[i].begin);
        }
        end = extents[i].end;
    }
    if (end != data_bytes) {
        return bhi_refuse(complaint,
                          "the tensors end at offset %llu, but the file's data ends at %llu",
                          (unsigned long long)end, (unsigned long long)data_bytes);
    }
    return true;
}

static bool check_metadata(const json_t *metadata, struct bhi_complaint *complaint) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) {
        return bhi_refuse(complaint, "'__metadata__' is not an object");
    }
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
        if (!json_is_string(value)) {
            return bhi_refuse(complaint, "'__metadata__': '%.200s' is not a string", key);
        }
    }
    return true;
}

/* Refuses an unknown name and lists the tensors that exist, as far as the message has room. */
static bool refuse_unknown(json_t *root, const char *wanted, size_t count,
                           struct bhi_complaint *complaint) {
    char names[240] = "";
    size_t used = 0;
    bool all = true;
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry) {
        const size_t length = strlen(name);
        if (!strcmp(name, "__metadata__")) {
            continue;
        }
        all = used + length + sizeof ", " < sizeof names - sizeof ", ...";
        if (!all) {
            break;
        }
        used += (size_t)sprintf(names + used, "%s%s", used ? ", " : ": ", name);
    }
    return bhi_refuse(complaint, "it has no tensor '%.200s'; it has %zu%s%s", wanted, count, names,
                      all || !used ? "" : ", ...");
}

struct purpose {
    const char *wanted; /* NULL: all */
    struct bhi_tensor *out_tensor;
    bhi_tensor_seen seen;
    void *user;
};

static const char *type_of(const json_t *entry) {
    return json_string_value(json_object_get(entry, "dtype"));
}

static bool read_all(json_t *root, uint64_t data_bytes, const struct purpose *purpose,
                     struct bhi_complaint *complaint) {
    const char *name;
    json_t *entry;
    size_t count = 0;
    bool found = false, good = true;
    struct extent *extents = calloc(json_object_size(root) + 1, sizeof *extents);
    if (!extents) {
        return bhi_refuse(complaint, "out of memory for %zu tensors", json_object_size(root));
    }
    json_object_foreach(root, name, entry) {
        struct bhi_tensor tensor = {0};
        const bool metadata = !strcmp(name, "__metadata__");
        const bool it = !metadata && purpose->wanted && !strcmp(name, purpose->wanted);
        if (metadata) {
            good = check_metadata(entry, complaint);
        } else if ((good = read_tensor(name, entry, data_bytes, it, &tensor, complaint))) {
            extents[count++] = (struct extent){name, tensor.begin, tensor.begin + tensor.bytes};
        }
        if (!good) {
            break;
        }
        if (it) {
            found = true;
            *purpose->out_tensor = tensor;
        }
        if (purpose->seen && !metadata) {
            purpose->seen(purpose->user, name, type_of(entry), &tensor);
        }
    }
    good = good && check_cover(extents, count, data_bytes, complaint);
    free(extents);
    return good && purpose->wanted && !found
               ? refuse_unknown(root, purpose->wanted, count, complaint)
               : good;
}

static bool read_header(const char *text, size_t length, uint64_t data_bytes,
                        const struct purpose *purpose, struct bhi_complaint *complaint) {
    json_error_t error;
    if (!check_depth(text, length, complaint)) {
        return false;
    }
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        return bhi_refuse(complaint, "offset %zu: the header is not valid JSON: %.150s",
                          (size_t)BHI_SAFETENSORS_PREAMBLE +
                              (size_t)(error.position > 0 ? error.position : 0),
                          error.text);
    }
    bool good = json_is_object(root) ? read_all(root, data_bytes, purpose, complaint)
                                     : bhi_refuse(complaint, "the header is not a JSON object");
    json_decref(root);
    return good;
}

bool bhi_safetensors_find(const char *text, size_t length, uint64_t data_bytes, const char *name,
                          struct bhi_tensor *out_tensor, struct bhi_complaint *complaint) {
    memset(out_tensor, 0, sizeof *out_tensor);
    const struct purpose purpose = {.wanted = name, .out_tensor = out_tensor};
    return read_header(text, length, data_bytes, &purpose, complaint);
}

bool bhi_safetensors_list(const char *text, size_t length, uint64_t data_bytes,
                          bhi_tensor_seen seen, void *user, struct bhi_complaint *complaint) {
    const struct purpose purpose = {.seen = seen, .user = user};
    return read_header(text, length, data_bytes, &purpose, complaint);
}

bool bhi_safetensors_read(const struct bhi_readable *file, char **out_text, size_t *out_length,
                          uint64_t *out_data, struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_SAFETENSORS_PREAMBLE] = {0};
    const uint64_t head = file->size < sizeof preamble ? file->size : sizeof preamble;
    if (!file->read(file->user, preamble, 0, head, complaint) ||
        !bhi_safetensors_parse_preamble(preamble, file->size, out_length, complaint)) {
        return false;
    }
    BHI_AUTO_FREE char *text = malloc(*out_length + 1);
    if (!text) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", *out_length);
    }
    if (!file->read(file->user, text, sizeof preamble, *out_length, complaint)) {
        return false;
    }
    *out_text = BHI_STEAL(text);
    *out_data = sizeof preamble + *out_length;
    return true;
}

/* -- writing ------------------------------------------------------------------------------------ */

size_t bhi_safetensors_write_header(const struct bhi_array *array, const char *name, uint8_t *out,
                                    size_t capacity) {
    char type[BHI_DTYPE_SAFETENSORS];
    bhi_dtype_safetensors_name(array->dtype, type);
    json_t *shape = json_array();
    bool fits = strcmp(name, "__metadata__") != 0;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        fits = fits && array->shape[i] <= INT64_MAX;
        json_array_append_new(shape, json_integer((json_int_t)array->shape[i]));
    }
    json_t *header = json_pack("{s:{s:s, s:O, s:[I, I]}}", name, "dtype", type, "shape", shape,
                               "data_offsets", (json_int_t)0, (json_int_t)array->bytes);
    char *text = header && fits ? json_dumps(header, JSON_COMPACT) : NULL;
    const size_t length = text ? strlen(text) : 0, padded = (length + 7) / 8 * 8;
    const size_t size = text && padded + BHI_SAFETENSORS_PREAMBLE <= capacity
                            ? padded + BHI_SAFETENSORS_PREAMBLE
                            : 0;
    for (uint32_t i = 0; size && i < BHI_SAFETENSORS_PREAMBLE; i++) {
        out[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    }
    for (size_t i = 0; size && i < padded; i++) {
        out[BHI_SAFETENSORS_PREAMBLE + i] = i < length ? (uint8_t)text[i] : ' ';
    }
    free(text);
    json_decref(shape);
    json_decref(header);
    return size;
}
