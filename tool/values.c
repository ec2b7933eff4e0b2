#include "tool/values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_ITEM 128 /* bytes of one number or name within a list */
#define UNTYPED  ((bh_dtype)UINT8_MAX)

/* Reads decimal digits at *cursor and moves *cursor past them. */
static bool take_decimal(const char **cursor, uint64_t *out_value) {
    const char *s = *cursor;
    uint64_t value = 0;
    if (!isdigit((unsigned char)*s)) {
        return false;
    }
    for (; isdigit((unsigned char)*s); s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *cursor = s;
    *out_value = value;
    return true;
}

bool bhi_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out_count,
                     struct bhi_complaint *complaint) {
    const char *cursor = text;
    uint64_t value;
    if (!take_decimal(&cursor, &value) || *cursor || value < least || value > most) {
        return bhi_refuse(complaint, "'%s' is not a number from %llu to %llu", text,
                          (unsigned long long)least, (unsigned long long)most);
    }
    *out_count = value;
    return true;
}

/* Reads a non-negative decimal number with an optional fraction, and sets *out_end past it. */
static bool take_quantity(const char *text, const char **out_unit, double *out_number) {
    const char *end = text + strspn(text, "0123456789.");
    char digits[MAX_ITEM], *stop;
    size_t length = (size_t)(end - text);
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = 0;
    *out_number = strtod(digits, &stop);
    *out_unit = end;
    return *stop == 0 && isfinite(*out_number);
}

#define LONGEST_TIME "1000000000s"

/* |range| says which durations are allowed. */
static bool take_duration(const char *text, const char *range, uint64_t *out_ns,
                          struct bhi_complaint *complaint) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
    const char *unit;
    double number;

    if (!take_quantity(text, &unit, &number)) {
        return bhi_refuse(complaint, "'%s' is not a duration such as 500ms; write %s", text, range);
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].unit) != 0) {
            continue;
        }
        double ns = number * units[i].ns;
        if (ns < 1) {
            return bhi_refuse(complaint, "'%s' is too short: use %s", text, range);
        }
        if (ns > 1e18) {
            return bhi_refuse(complaint, "'%s' is too long: use %s", text, range);
        }
        *out_ns = (uint64_t)ns;
        return true;
    }
    if (!*unit) {
        return bhi_refuse(complaint, "'%s' has no unit: write %sms or %ss", text, text, text);
    }
    return bhi_refuse(complaint, "'%s': unknown unit '%s'; use ns, us, ms, s or m", text, unit);
}

bool bhi_parse_duration(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint) {
    if (strcmp(text, "none") != 0) {
        return take_duration(text, "1ns to " LONGEST_TIME ", or none", out_ns, complaint);
    }
    *out_ns = BH_FOREVER;
    return true;
}

static bool refuse_none(struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "none is not allowed here: the run must end");
}

bool bhi_parse_finite_duration(const char *text, uint64_t *out_ns,
                               struct bhi_complaint *complaint) {
    return strcmp(text, "none") ? take_duration(text, "1ns to " LONGEST_TIME, out_ns, complaint)
                                : refuse_none(complaint);
}

bool bhi_parse_grace(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint) {
    static const char *const zeros[] = {"0", "0ns", "0us", "0ms", "0s", "0m"};
    *out_ns = 0;
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        if (!strcmp(text, zeros[i])) {
            return true;
        }
    }
    return strcmp(text, "none") ? take_duration(text, "0s to " LONGEST_TIME, out_ns, complaint)
                                : refuse_none(complaint);
}

bool bhi_parse_rate(const char *text, double *out_rate, struct bhi_complaint *complaint) {
    static const double least_rate = 0.001, most_rate = 10000;
    char *end;
    const size_t digits = strspn(text, "0123456789.");
    errno = 0;
    *out_rate = strtod(text, &end);
    if (!digits || end != text + digits || (*end && strcmp(end, "/s") != 0) || errno) {
        return bhi_refuse(complaint, "it is not a rate such as 20/s or 0.5, from %g to %g a second",
                          least_rate, most_rate);
    }
    if (*out_rate < least_rate || *out_rate > most_rate) {
        return bhi_refuse(complaint, "it is not between %g and %g a second", least_rate, most_rate);
    }
    return true;
}

bool bhi_parse_text(const char *text, const char *what, const char **out,
                    struct bhi_complaint *complaint) {
    *out = text;
    return *text || bhi_refuse(complaint, "the %s is empty", what);
}

bool bhi_parse_cache_dir(const char *text, struct bhi_complaint *complaint) {
    struct stat status;
    if (!*text) {
        return bhi_refuse(complaint, "the folder's name is empty");
    }
    return stat(text, &status) || S_ISDIR(status.st_mode) || bhi_refuse(complaint, "not a folder");
}

bool bhi_parse_tenant(const char *text, struct bhi_complaint *complaint) {
    enum { LONGEST = 63 }; /* as in supervisor/stream/stream.c */
    if (!*text) {
        return bhi_refuse(complaint, "the name is empty");
    }
    return strlen(text) <= LONGEST || bhi_refuse(complaint, "longer than %d bytes", LONGEST);
}

#define LARGEST_SIZE "1048576T"

/* |range| says which sizes are allowed beside none. */
static bool take_size(const char *text, const char *range, double least, uint64_t *out_bytes,
                      struct bhi_complaint *complaint) {
    static const char suffixes[] = "KMGT";
    const char *unit;
    double number, scale = 1;

    if (!strcmp(text, "none")) {
        *out_bytes = 0;
        return true;
    }
    if (!take_quantity(text, &unit, &number)) {
        return bhi_refuse(complaint, "'%s' is not a size such as 512M; write %s, or none", text,
                          range);
    }
    if (*unit) {
        const char *suffix = strchr(suffixes, *unit);
        if (!suffix || (unit[1] && strcmp(unit + 1, "iB") != 0)) {
            return bhi_refuse(complaint, "'%s': unknown suffix '%s'; use K, M, G or T", text, unit);
        }
        scale = (double)(UINT64_C(1) << (10 * (suffix - suffixes + 1)));
    }
    double bytes = number * scale;
    if (bytes < least) {
        return bhi_refuse(complaint, "'%s' is too small: use %s, or none", text, range);
    }
    if (bytes > 0x1p60) {
        return bhi_refuse(complaint, "'%s' is too large: use %s, or none", text, range);
    }
    *out_bytes = (uint64_t)bytes;
    return true;
}

bool bhi_parse_size(const char *text, uint64_t *out_bytes, struct bhi_complaint *complaint) {
    return take_size(text, "1 to " LARGEST_SIZE, 1, out_bytes, complaint);
}

bool bhi_parse_memory_limit(const char *text, uint64_t *out_bytes,
                            struct bhi_complaint *complaint) {
    /* The least is as in supervisor/stream/stream.c: no driver starts with less. */
    return take_size(text, "64M to " LARGEST_SIZE, 0x1p26, out_bytes, complaint);
}

const char *bhi_memory_word(size_t index) {
    static const char *const words[] = {
        [BH_MEMORY_HOST] = "host", [BH_MEMORY_DEVICE] = "device", [BH_MEMORY_AUTO] = "auto"};
    return index < sizeof words / sizeof words[0] ? words[index] : NULL;
}

bool bhi_parse_memory(const char *text, bh_memory *out_memory, struct bhi_complaint *complaint) {
    for (size_t i = 0; bhi_memory_word(i); i++) {
        if (!strcmp(text, bhi_memory_word(i))) {
            *out_memory = (bh_memory)i;
            return true;
        }
    }
    return bhi_refuse(complaint, "'%.40s' is none of host, device, auto", text);
}

bool bhi_parse_groups(const char *text, const char *what, uint32_t out_groups[3],
                      struct bhi_complaint *complaint) {
    const char *cursor = text;
    out_groups[0] = out_groups[1] = out_groups[2] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        if (!take_decimal(&cursor, &value) || value > UINT32_MAX) {
            break;
        }
        if (value == 0 && (!*cursor || *cursor == ',')) {
            return bhi_refuse(complaint,
                              "there must be at least one %s in each dimension: numbers "
                              "from 1 to 4294967295",
                              what);
        }
        out_groups[i] = (uint32_t)value;
        if (!*cursor) {
            return true;
        }
        if (*cursor++ != ',') {
            break;
        }
    }
    return bhi_refuse(complaint, "'%s' is not X[,Y[,Z]] with numbers from 1 to 4294967295", text);
}

bool bhi_parse_element(const char *text, size_t length, uint32_t *out_element) {
    char copy[MAX_ITEM];
    const char *cursor = copy + 1;
    uint64_t value;
    *out_element = 0;
    if (length == 0) {
        return true;
    }
    if (length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    if (copy[0] != '[' || !take_decimal(&cursor, &value) || value >= UINT32_MAX ||
        strcmp(cursor, "]") != 0) {
        return false;
    }
    *out_element = (uint32_t)value;
    return true;
}

bool bhi_parse_slot(const char *text, size_t length, struct bhi_slot *out_slot,
                    struct bhi_complaint *complaint) {
    char copy[MAX_ITEM];
    const char *cursor = copy, *bracket = memchr(text, '[', length);
    const size_t number = bracket ? (size_t)(bracket - text) : length;
    uint64_t first, second;

    if (number < sizeof copy &&
        bhi_parse_element(text + number, length - number, &out_slot->element)) {
        memcpy(copy, text, number);
        copy[number] = 0;
        if (strlen(copy) == number && take_decimal(&cursor, &first) && first < UINT32_MAX) {
            if (!*cursor) {
                out_slot->set = 0;
                out_slot->binding = (uint32_t)first;
                return true;
            }
            if (*cursor++ == '.' && take_decimal(&cursor, &second) && !*cursor &&
                second < UINT32_MAX) {
                out_slot->set = (uint32_t)first;
                out_slot->binding = (uint32_t)second;
                return true;
            }
        }
    }
    return bhi_refuse(complaint,
                      "'%.*s' is not a binding: write N (of set 0) or SET.N, and [ELEMENT] behind "
                      "it of an array of buffers",
                      length > MAX_ITEM ? MAX_ITEM : (int)length, text);
}

bool bhi_slot_is(struct bhi_slot a, struct bhi_slot b) {
    return a.set == b.set && a.binding == b.binding && a.element == b.element;
}

struct bhi_slot_text bhi_slot_describe(struct bhi_slot slot, bool indexed) {
    struct bhi_slot_text out;
    if (indexed || slot.element) {
        snprintf(out.text, sizeof out.text, "%u.%u[%u]", slot.set, slot.binding, slot.element);
    } else {
        snprintf(out.text, sizeof out.text, "%u.%u", slot.set, slot.binding);
    }
    return out;
}

static bool parse_array(const char *text, bool (*find)(const char *, size_t, bh_dtype *),
                        struct bhi_array *out_array, struct bhi_complaint *complaint) {
    size_t name = strcspn(text, "[:");
    const int shown = name > MAX_ITEM ? MAX_ITEM : (int)name;
    const size_t type = strcspn(text, "x[:"); /* of a vector, or of a shape without colon */
    if (!find(text, name, &out_array->dtype)) {
        return text[type] == 'x' && text[type + 1] >= '0' && text[type + 1] <= '9' &&
                       find(text, type, &out_array->dtype)
                   ? bhi_refuse(complaint,
                                "'%.*s' is not a type and shape: write %.*s:%.*s or %.*s[...]",
                                shown, text, (int)type, text, shown - (int)type - 1,
                                text + type + 1, (int)type, text)
                   : bhi_refuse(complaint, "'%.*s' is not a dtype; it is one of %s", shown, text,
                                find == bhi_dtype_find ? BHI_DTYPE_NAMES
                                                       : BHI_DTYPE_NAMES " " BHI_SMALL_FLOAT_NAMES);
    }
    out_array->dimensions = 0;
    const char *cursor = text + name;
    /* With a colon there are no brackets, which shells take for patterns: the shape ends with the
     * text. */
    const char open = *cursor++, end = open == '[' ? ']' : '\0';
    if (!open) {
        return bhi_refuse(complaint, "'%s' has no shape: write %.*s:N", text, (int)name, text);
    }
    if (open == ':' && !*cursor) {
        return bhi_refuse(complaint, "'%s' has no shape: write %sN, or %.*s[] for one element",
                          text, text, (int)name, text);
    }
    while (*cursor != end) {
        if (out_array->dimensions == BHI_MAX_DIMENSIONS) {
            return bhi_refuse(complaint, "'%s' has more than %d dimensions", text,
                              BHI_MAX_DIMENSIONS);
        }
        if (!take_decimal(&cursor, &out_array->shape[out_array->dimensions++])) {
            break;
        }
        if ((*cursor == ',' || (open == ':' && *cursor == 'x')) && cursor[1] != end) {
            cursor++;
        } else if (*cursor != end) {
            break;
        }
    }
    if (*cursor != end || (end && cursor[1])) {
        return bhi_refuse(complaint, "'%s' is not DTYPE:N,... or DTYPE[N,...]", text);
    }
    return bhi_array_measure(out_array, complaint);
}

bool bhi_parse_array(const char *text, struct bhi_array *out_array,
                     struct bhi_complaint *complaint) {
    return parse_array(text, bhi_dtype_find, out_array, complaint);
}

bool bhi_parse_element_array(const char *text, struct bhi_array *out_array,
                             struct bhi_complaint *complaint) {
    return parse_array(text, bhi_dtype_find_element, out_array, complaint);
}

/* Splits the "TYPE:VALUE" of |item| in place. Without a colon *out_type is NULL. */
static char *split_type(char *item, const char **out_type) {
    char *colon = strchr(item, ':');
    *out_type = NULL;
    if (!colon) {
        return item;
    }
    *colon = 0;
    *out_type = item;
    return colon + 1;
}

uint32_t bhi_push_size(bh_dtype dtype) {
    return dtype == BH_DTYPE_BOOL ? 4 : bhi_dtype_size(dtype);
}

/* Returns true if |value| is neither a number nor a word for one (true, inf). */
static bool is_name(const char *value) {
    uint64_t bits;
    struct bhi_complaint unused;
    return (isalpha((unsigned char)*value) || *value == '_') &&
           !bhi_dtype_parse(BH_DTYPE_F64, value, &bits, &unused) &&
           !bhi_dtype_parse(BH_DTYPE_BOOL, value, &bits, &unused);
}

/* The type of a value that has no type, if the kernel's is unknown. */
static bh_dtype default_type(const char *value) {
    uint64_t bits;
    struct bhi_complaint unused;
    return bhi_dtype_parse(BH_DTYPE_I32, value, &bits, &unused)   ? BH_DTYPE_I32
           : bhi_dtype_parse(BH_DTYPE_U32, value, &bits, &unused) ? BH_DTYPE_U32
                                                                  : BH_DTYPE_F32;
}

/* Finds the type of |item| and splits it. |last| is the type of the item before. */
static bool take_type(char *item, bh_dtype *last, struct bhi_push_value *out,
                      struct bhi_complaint *complaint) {
    const char *type;
    out->text = split_type(item, &type);
    if (type && !*type) {
        *last = UNTYPED;
    } else if (type && !bhi_dtype_find(type, strlen(type), last)) {
        return bhi_refuse(complaint, "'%s' is not a type; it is one of %s", type, BHI_DTYPE_NAMES);
    }
    if (*last == BH_DTYPE_NONE && is_name(out->text)) {
        return bhi_refuse(complaint,
                          "'%s' is not a value: write %s=VALUE for a push constant by name, or "
                          "TYPE:VALUE in order",
                          out->text, out->text);
    }
    if (*last == BH_DTYPE_NONE) {
        return bhi_refuse(complaint, "'%s' has no type: write f32:%s, for example", out->text,
                          out->text);
    }
    out->typed = *last != UNTYPED;
    out->dtype = out->typed ? *last : default_type(out->text);
    return true;
}

bool bhi_parse_push_as(const char *text, bhi_push_take *take, void *user, struct bhi_push *out_push,
                       struct bhi_complaint *complaint) {
    bh_dtype last = BH_DTYPE_NONE;
    uint32_t used = 0;

    memset(out_push, 0, sizeof *out_push);
    for (const char *cursor = text;; cursor++) {
        char item[MAX_ITEM];
        uint64_t bits;
        size_t length = strcspn(cursor, ",");
        if (length == 0 || length >= sizeof item) {
            return bhi_refuse(complaint, "'%s' is not TYPE:VALUE,TYPE:VALUE,...", text);
        }
        memcpy(item, cursor, length);
        item[length] = 0;
        cursor += length;

        struct bhi_push_value value = {.used = used};
        if (!take_type(item, &last, &value, complaint) ||
            (take && !take(user, &value, complaint)) ||
            !bhi_dtype_parse(value.dtype, value.text, &bits, complaint)) {
            return false;
        }
        uint32_t size = bhi_push_size(value.dtype);
        used = (used + size - 1) / size * size;
        if (used + size > BHI_MAX_PUSH) {
            return bhi_refuse(complaint, "more than %d bytes of push constants", BHI_MAX_PUSH);
        }
        memcpy(out_push->bytes + used, &bits, size); /* little endian, as on the device */
        used += size;
        if (!*cursor) {
            break;
        }
    }
    out_push->size = (used + 3) / 4 * 4;
    return true;
}

bool bhi_parse_push(const char *text, struct bhi_push *out_push, struct bhi_complaint *complaint) {
    return bhi_parse_push_as(text, NULL, NULL, out_push, complaint);
}

bool bhi_parse_constant(const char *name, size_t length, const char *value,
                        bh_specialization *out_spec, struct bhi_complaint *complaint) {
    char id_text[MAX_ITEM], item[MAX_ITEM];
    const char *cursor = id_text, *type;
    uint64_t id;
    bh_dtype dtype;

    snprintf(id_text, sizeof id_text, "%.*s", (int)length, name);
    if (!value || length >= sizeof id_text || strlen(value) >= sizeof item ||
        !take_decimal(&cursor, &id) || id > UINT32_MAX || *cursor) {
        return bhi_refuse(complaint,
                          "'%.*s%s%s' is not ID=TYPE:VALUE with an ID from 0 to 4294967295",
                          (int)length, name, value ? "=" : "", value ? value : "");
    }
    strcpy(item, value);
    const char *number = split_type(item, &type);
    if (!type) {
        return bhi_refuse(complaint, "'%.*s=%s' has no type: write %llu=u32:%s, for example",
                          (int)length, name, value, (unsigned long long)id, number);
    }
    *out_spec = (bh_specialization){.constant_id = (uint32_t)id};
    if (!bhi_dtype_find(type, strlen(type), &dtype)) {
        return bhi_refuse(complaint, "'%s' is not a type; it is one of %s", type, BHI_DTYPE_NAMES);
    }
    out_spec->size = bhi_push_size(dtype);
    return bhi_dtype_parse(dtype, number, &out_spec->bits, complaint);
}

bool bhi_parse_spec(const char *text, bh_specialization *out_spec,
                    struct bhi_complaint *complaint) {
    const size_t length = strcspn(text, "=");
    return bhi_parse_constant(text, length, text[length] ? text + length + 1 : NULL, out_spec,
                              complaint);
}
