#include "formats/npy.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/owner.h"
#include "formats/foreign.h"

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool bhi_npy_parse_preamble(const uint8_t *bytes, size_t size, size_t *out_start,
                            size_t *out_length, struct bhi_complaint *complaint) {
    if (size == 0) {
        return bhi_refuse(complaint, "not a .npy file: it is empty");
    }
    if (memcmp(bytes, magic, size < sizeof magic ? size : sizeof magic) != 0) {
        const enum bhi_foreign foreign = bhi_foreign_find(bytes, size);
        if (foreign) {
            return bhi_foreign_refuse(foreign, ".npy file", complaint);
        }
        return bhi_refuse(complaint, "not a .npy file: it does not begin with \\x93NUMPY");
    }
    if (size < BHI_NPY_MIN_PREAMBLE) {
        return bhi_refuse(complaint, "truncated header");
    }
    uint8_t major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return bhi_refuse(complaint, ".npy format %u.%u is not supported (1.0, 2.0 and 3.0 are)",
                          major, minor);
    }
    uint32_t length = bytes[8] | (uint32_t)bytes[9] << 8;
    *out_start = BHI_NPY_MIN_PREAMBLE;
    if (major > 1) {
        if (size < BHI_NPY_MAX_PREAMBLE) {
            return bhi_refuse(complaint, "truncated header");
        }
        length |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
        *out_start = BHI_NPY_MAX_PREAMBLE;
    }
    if (length > BHI_NPY_MAX_HEADER) {
        return bhi_refuse(complaint,
                          "the length of the header is given as %u bytes; the limit is %d", length,
                          BHI_NPY_MAX_HEADER);
    }
    *out_length = length;
    return true;
}

/* A cursor over the header's text. Invariant: at <= end. */
struct literal {
    const char *at, *end;
};

static void skip_blanks(struct literal *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n')) {
        l->at++;
    }
}

static bool take(struct literal *l, char c) {
    skip_blanks(l);
    if (l->at == l->end || *l->at != c) {
        return false;
    }
    l->at++;
    return true;
}

static bool take_word(struct literal *l, const char *word) {
    size_t length = strlen(word);
    skip_blanks(l);
    if ((size_t)(l->end - l->at) < length || memcmp(l->at, word, length) != 0) {
        return false;
    }
    l->at += length;
    return true;
}

/* Reads a string without escapes, in single or double quotes. */
static bool take_string(struct literal *l, const char **out_text, size_t *out_length) {
    skip_blanks(l);
    if (l->at == l->end || (*l->at != '\'' && *l->at != '"')) {
        return false;
    }
    char quote = *l->at++;
    *out_text = l->at;
    while (l->at < l->end && *l->at != quote) {
        if (*l->at < 0x20 || *l->at == '\\' || *l->at == 0x7F) { /* not printable ASCII */
            return false;
        }
        l->at++;
    }
    if (l->at == l->end) {
        return false;
    }
    *out_length = (size_t)(l->at++ - *out_text);
    return true;
}

static bool take_descr(struct literal *l, struct bhi_array *array,
                       struct bhi_complaint *complaint) {
    const char *text;
    size_t length;

    skip_blanks(l);
    if (l->at < l->end && *l->at == '[') {
        return bhi_refuse(complaint, "structured dtypes are not supported");
    }
    if (!take_string(l, &text, &length)) {
        return bhi_refuse(complaint, "malformed header: 'descr' is not a string");
    }
    /* As numpy reads it: all but '>' is this machine's byte order, and that is little endian. */
    const bool ordered = length > 0 && text[0] && strchr("<>=|", text[0]);
    const char *code = text + ordered;
    const size_t rest = length - ordered;
    const int shown = length > 40 ? 40 : (int)length;
    if (rest > 0 && *code == 'O') {
        return bhi_refuse(complaint, "object arrays ('%.*s') are not supported", shown, text);
    }
    if (rest > 0 && *code == 'V') {
        return bhi_refuse(complaint,
                          "raw bytes ('%.*s'), which is how numpy saves bfloat16 ('V2') and 8-bit "
                          "floats ('V1'), are not supported; save a.view('u2') or a.view('u1') for "
                          "the bits, a.astype('f4') for the values, or a .safetensors",
                          shown, text);
    }
    const bool digit = rest == 2 && code[1] >= '0' && code[1] <= '9';
    const uint64_t bytes = digit ? (uint64_t)(code[1] - '0') : 0;
    if (!digit || !bhi_dtype_find_npy(*code, bytes, &array->dtype)) {
        return bhi_refuse(complaint, "dtype '%.*s' is not supported; it is one of %s", shown, text,
                          BHI_DTYPE_NAMES);
    }
    return (text[0] != '>' || bytes == 1) ||
           bhi_refuse(complaint,
                      "big-endian data ('%.*s') is not supported; save it in little endian "
                      "(numpy: a.astype('<%.2s'))",
                      shown, text, code);
}

static bool take_shape(struct literal *l, struct bhi_array *array,
                       struct bhi_complaint *complaint) {
    bool comma = true;

    array->dimensions = 0;
    if (!take(l, '(')) {
        return bhi_refuse(complaint, "malformed header: 'shape' is not a tuple");
    }
    while (!take(l, ')')) {
        uint64_t value = 0;
        if (!comma) {
            return bhi_refuse(complaint, "malformed header: 'shape' is not a tuple of integers");
        }
        if (take(l, '-')) {
            return bhi_refuse(complaint, "the shape has a negative dimension");
        }
        if (array->dimensions == BHI_MAX_DIMENSIONS) {
            return bhi_refuse(complaint, "the shape has more than %d dimensions",
                              BHI_MAX_DIMENSIONS);
        }
        skip_blanks(l);
        const char *digits = l->at;
        for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
            if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
                __builtin_add_overflow(value, (uint64_t)(*l->at - '0'), &value)) {
                return bhi_refuse(complaint, "the shape has more elements than 64 bits can count");
            }
        }
        if (l->at == digits) {
            return bhi_refuse(complaint, "malformed header: 'shape' is not a tuple of integers");
        }
        if (l->at < l->end && *l->at == 'L') { /* a long of Python 2 */
            l->at++;
        }
        array->shape[array->dimensions++] = value;
        comma = take(l, ',');
    }
    /* "(3)" is an integer in Python, not a tuple. */
    if (array->dimensions == 1 && !comma) {
        return bhi_refuse(complaint, "malformed header: 'shape' is not a tuple");
    }
    return true;
}

/* Both orders of the dimensions are the same bytes if one dimension has them all, or none has any.
 */
static bool has_one_order(const struct bhi_array *array) {
    uint32_t longer = 0;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        if (array->shape[i] == 0) {
            return true;
        }
        longer += array->shape[i] > 1;
    }
    return longer <= 1;
}

bool bhi_npy_parse_header(const char *text, size_t length, struct bhi_array *out_array,
                          struct bhi_complaint *complaint) {
    /* In the order in which a missing one is named. */
    static const char *const keys[] = {"descr", "shape", "fortran_order"};
    enum { DESCR, SHAPE, ORDER, KEYS };
    struct literal l = {text, text + length};
    unsigned seen = 0;
    bool fortran = false, comma = true;

    memset(out_array, 0, sizeof *out_array);
    if (!take(&l, '{')) {
        return bhi_refuse(complaint, "malformed header: not a dictionary");
    }
    while (!take(&l, '}')) {
        const char *key;
        size_t key_length;
        unsigned k = 0;
        if (!comma || !take_string(&l, &key, &key_length)) {
            return bhi_refuse(complaint, "malformed header: a quoted key was expected");
        }
        while (k < KEYS &&
               (strlen(keys[k]) != key_length || memcmp(keys[k], key, key_length) != 0)) {
            k++;
        }
        if (k == KEYS) {
            return bhi_refuse(complaint, "malformed header: unknown key '%.*s'",
                              key_length > 40 ? 40 : (int)key_length, key);
        }
        if (seen & 1u << k) {
            return bhi_refuse(complaint, "malformed header: key '%s' twice", keys[k]);
        }
        seen |= 1u << k;
        if (!take(&l, ':')) {
            return bhi_refuse(complaint, "malformed header: no ':' after '%s'", keys[k]);
        }
        if (k == DESCR && !take_descr(&l, out_array, complaint)) {
            return false;
        }
        if (k == SHAPE && !take_shape(&l, out_array, complaint)) {
            return false;
        }
        if (k == ORDER) {
            fortran = take_word(&l, "True");
            if (!fortran && !take_word(&l, "False")) {
                return bhi_refuse(complaint,
                                  "malformed header: 'fortran_order' is not True or False");
            }
        }
        comma = take(&l, ',');
    }
    skip_blanks(&l);
    if (l.at != l.end) {
        return bhi_refuse(complaint, "malformed header: text after the dictionary");
    }
    for (unsigned k = 0; k < KEYS; k++) {
        if (!(seen & 1u << k)) {
            return bhi_refuse(complaint, "malformed header: '%s' is missing", keys[k]);
        }
    }
    out_array->fortran = fortran && !has_one_order(out_array);
    return bhi_array_measure(out_array, complaint);
}

bool bhi_npy_read(const struct bhi_readable *file, uint64_t begin, uint64_t bytes,
                  struct bhi_array *out_array, uint64_t *out_data,
                  struct bhi_complaint *complaint) {
    uint8_t preamble[BHI_NPY_MAX_PREAMBLE];
    size_t start, length;
    const uint64_t head = bytes < sizeof preamble ? bytes : sizeof preamble;
    if (!file->read(file->user, preamble, begin, head, complaint) ||
        !bhi_npy_parse_preamble(preamble, (size_t)head, &start, &length, complaint)) {
        return false;
    }
    if (length > bytes - start) {
        return bhi_refuse(complaint, "truncated header at offset %llu",
                          (unsigned long long)(begin + start));
    }
    BHI_AUTO_FREE char *text = malloc(length + 1);
    if (!text) {
        return bhi_refuse(complaint, "out of memory for a header of %zu bytes", length);
    }
    if (!file->read(file->user, text, begin + start, length, complaint) ||
        !bhi_npy_parse_header(text, length, out_array, complaint)) {
        return false;
    }
    const uint64_t header = start + length, there = bytes - header;
    if (there != out_array->bytes) {
        return bhi_refuse(
            complaint,
            "%s: the shape needs %llu bytes of data, but %llu follow the header of %llu bytes",
            there < out_array->bytes ? "truncated" : "too long",
            (unsigned long long)out_array->bytes, (unsigned long long)there,
            (unsigned long long)header);
    }
    *out_data = begin + header;
    return true;
}

size_t bhi_npy_write_header(const struct bhi_array *array, uint8_t *out, size_t capacity) {
    char text[BHI_NPY_WRITE_CAPACITY];
    int used =
        bhi_format(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                   bhi_dtype_size(array->dtype) == 1 ? "|" : "<", bhi_dtype_npy_code(array->dtype));
    for (uint32_t i = 0; i < array->dimensions; i++) {
        used += bhi_format(text + used, sizeof text - (size_t)used, "%s%llu", i ? ", " : "",
                           (unsigned long long)array->shape[i]);
    }
    used += bhi_format(text + used, sizeof text - (size_t)used,
                       array->dimensions == 1 ? ",), }" : "), }");
    const size_t size = ((size_t)used + BHI_NPY_MIN_PREAMBLE + 1 + 63) / 64 * 64;
    if (size > capacity) {
        return 0;
    }
    const size_t length = size - BHI_NPY_MIN_PREAMBLE;
    const uint8_t rest[] = {1, 0, (uint8_t)length, (uint8_t)(length >> 8)}; /* the version first */
    memcpy(out, magic, sizeof magic);
    memcpy(out + sizeof magic, rest, sizeof rest);
    memset(out + BHI_NPY_MIN_PREAMBLE, ' ', length - 1);
    memcpy(out + BHI_NPY_MIN_PREAMBLE, text, (size_t)used);
    out[size - 1] = '\n';
    return size;
}
