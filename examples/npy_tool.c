/* npy_tool: makes, shows and checks .npy files, so that the demo and the tests need no Python.
 *
 *   npy_tool make FILE DTYPE[SHAPE] ramp START STEP
 *   npy_tool make FILE DTYPE[SHAPE] random SEED LOW HIGH
 *   npy_tool show FILE                    dtype, shape, first and last numbers
 *   npy_tool pgm FILE PICTURE.pgm         a 2-D array as a grey picture
 *   npy_tool check KERNEL ARGUMENT...     recomputes a kernel's result here and compares:
 *       saxpy A X Y OUT | square X OUT | add A B OUT | matmul A B OUT | reduce_sum X OUT
 *       histogram VALUES OUT | mandelbrot LIMIT OUT | blur RADIUS X OUT
 *
 * Exit status: 0, 1 where a check fails, 2 for bad usage or files.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/npy.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"

struct array {
    struct bhi_array form;
    uint64_t count;
    uint8_t *bytes;
};

static _Noreturn void fail(const char *what, const char *why) {
    fprintf(stderr, "npy_tool: %s: %s\n", what, why);
    exit(2);
}

static struct array make(const struct bhi_array *form) {
    struct array array = {*form, form->bytes / bhi_dtype_size(form->dtype), NULL};
    array.bytes = calloc(1, form->bytes + 1);
    if (!array.bytes) {
        fail("memory", "none left");
    }
    return array;
}

static struct array load(const char *path) {
    struct bhi_complaint complaint;
    struct bhi_npy_file file;
    if (!bhi_npy_file_open(path, &file, &complaint)) {
        fail(path, complaint.text);
    }
    struct array array = make(&file.array);
    if (!bhi_npy_file_read(&file, array.bytes, &complaint)) {
        fail(path, complaint.text);
    }
    bhi_npy_file_close(&file);
    return array;
}

static void save(const char *path, const struct array *array) {
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    struct bhi_complaint complaint;
    struct bhi_outfile file;
    size_t size = bhi_npy_write_header(&array->form, header, sizeof header);
    if (!bhi_outfile_open(path, size + array->form.bytes, &file, &complaint) ||
        !bhi_outfile_write(&file, header, size, array->bytes, array->form.bytes, &complaint) ||
        !bhi_outfile_seal(&file, &complaint) || !bhi_outfile_commit(&file, &complaint)) {
        fail(path, complaint.text);
    }
    bhi_outfile_abandon(&file);
}

/* -- elements as double: exact for every dtype but the largest 64-bit integers --------------- */

static double get(const struct array *array, uint64_t index) {
    const void *at = array->bytes + index * bhi_dtype_size(array->form.dtype);
    switch (array->form.dtype) {
    case BH_DTYPE_F16:
        return bhi_f16_to_double(*(const uint16_t *)at);
    case BH_DTYPE_F32:
        return *(const float *)at;
    case BH_DTYPE_F64:
        return *(const double *)at;
    case BH_DTYPE_I8:
        return *(const int8_t *)at;
    case BH_DTYPE_U8:
    case BH_DTYPE_BOOL:
        return *(const uint8_t *)at;
    case BH_DTYPE_I16:
        return *(const int16_t *)at;
    case BH_DTYPE_U16:
        return *(const uint16_t *)at;
    case BH_DTYPE_I32:
        return *(const int32_t *)at;
    case BH_DTYPE_U32:
        return *(const uint32_t *)at;
    case BH_DTYPE_I64:
        return (double)*(const int64_t *)at;
    case BH_DTYPE_U64:
        return (double)*(const uint64_t *)at;
    default:
        break;
    }
    abort();
}

static void set(struct array *array, uint64_t index, double value) {
    void *at = array->bytes + index * bhi_dtype_size(array->form.dtype);
    uint64_t bits = (uint64_t)(int64_t)value; /* two's complement: narrow by cutting */
    float narrow = (float)value;
    uint16_t half = bhi_f16_from_double(value);
    switch (array->form.dtype) {
    case BH_DTYPE_F16:
        memcpy(at, &half, sizeof half);
        break;
    case BH_DTYPE_F32:
        memcpy(at, &narrow, sizeof narrow);
        break;
    case BH_DTYPE_F64:
        memcpy(at, &value, sizeof value);
        break;
    default:
        memcpy(at, &bits, bhi_dtype_size(array->form.dtype));
    }
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (!*text || *end) {
        fail(text, "not a number");
    }
    return value;
}

/* splitmix64: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static int command_make(char **words, int count) {
    struct bhi_complaint complaint;
    struct bhi_array form;
    if (count < 3 || !bhi_parse_array(words[1], &form, &complaint)) {
        fail("make", count < 3 ? "needs FILE DTYPE[SHAPE] KIND" : complaint.text);
    }
    struct array array = make(&form);
    if (!strcmp(words[2], "ramp") && count == 5) {
        double start = number(words[3]), step = number(words[4]);
        for (uint64_t i = 0; i < array.count; i++) {
            set(&array, i, start + step * (double)i);
        }
    } else if (!strcmp(words[2], "random") && count == 6) {
        uint64_t state = (uint64_t)number(words[3]);
        double low = number(words[4]), high = number(words[5]);
        for (uint64_t i = 0; i < array.count; i++) {
            set(&array, i, low + (high - low) * ((double)(next_random(&state) >> 11) * 0x1p-53));
        }
    } else {
        fail(words[2], "is not ramp START STEP or random SEED LOW HIGH");
    }
    save(words[0], &array);
    free(array.bytes);
    return 0;
}

static int command_show(const char *path) {
    struct array array = load(path);
    printf("%s[", bhi_dtype_name(array.form.dtype));
    for (uint32_t i = 0; i < array.form.dimensions; i++) {
        printf("%s%" PRIu64, i ? "," : "", array.form.shape[i]);
    }
    printf("]");
    for (uint64_t i = 0; i < array.count; i++) {
        if (i == 6 && array.count > 8) {
            printf(" ...");
            i = array.count - 2;
        }
        printf(" %.9g", get(&array, i));
    }
    printf("\n");
    free(array.bytes);
    return 0;
}

static int command_pgm(const char *path, const char *picture) {
    struct array array = load(path);
    double high = 0;
    if (array.form.dimensions != 2) {
        fail(path, "not two-dimensional");
    }
    for (uint64_t i = 0; i < array.count; i++) {
        high = fmax(high, get(&array, i));
    }
    FILE *file = fopen(picture, "wb");
    if (!file) {
        fail(picture, "cannot be written");
    }
    fprintf(file, "P5\n%" PRIu64 " %" PRIu64 "\n255\n", array.form.shape[1], array.form.shape[0]);
    for (uint64_t i = 0; i < array.count; i++) {
        fputc(high > 0 ? (int)(sqrt(get(&array, i) / high) * 255) : 0, file);
    }
    if (fclose(file) != 0) {
        fail(picture, "cannot be written");
    }
    free(array.bytes);
    return 0;
}

/* -- checks: each computes the wanted value of one element of OUT ---------------------------- */

struct check {
    double scalar;
    struct array in[3];
    struct array out;
};

static double want_saxpy(const struct check *c, uint64_t i) {
    return c->scalar * get(&c->in[0], i) + get(&c->in[1], i);
}

static double want_square(const struct check *c, uint64_t i) {
    return get(&c->in[0], i) * get(&c->in[0], i);
}

static double want_add(const struct check *c, uint64_t i) {
    return get(&c->in[0], i) + get(&c->in[1], i);
}

static double want_matmul(const struct check *c, uint64_t i) {
    uint64_t k = c->in[0].form.shape[1], n = c->in[1].form.shape[1];
    double sum = 0;
    for (uint64_t j = 0; j < k; j++) {
        sum += get(&c->in[0], i / n * k + j) * get(&c->in[1], j * n + i % n);
    }
    return sum;
}

static double want_reduce_sum(const struct check *c, uint64_t i) {
    double sum = 0;
    for (uint64_t j = i * 256; j < (i + 1) * 256 && j < c->in[0].count; j++) {
        sum += get(&c->in[0], j);
    }
    return sum;
}

static double want_histogram(const struct check *c, uint64_t i) {
    double count = 0;
    for (uint64_t j = 0; j < c->in[0].count; j++) {
        count += (uint64_t)get(&c->in[0], j) % 256 == i;
    }
    return count;
}

static double want_mandelbrot(const struct check *c, uint64_t i) {
    uint64_t height = c->out.form.shape[0], width = c->out.form.shape[1];
    float cx = -2.0f + 2.5f * ((float)(i % width) + 0.5f) / (float)width;
    float cy = -1.25f + 2.5f * ((float)(i / width) + 0.5f) / (float)height;
    float x = 0, y = 0;
    double n = 0;
    while (n < c->scalar && x * x + y * y <= 4) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        n++;
    }
    return n;
}

static double want_blur(const struct check *c, uint64_t i) {
    uint64_t width = c->in[0].form.shape[1], radius = (uint64_t)c->scalar;
    uint64_t at = i % width, row = i - at, count = 0;
    double sum = 0;
    for (uint64_t k = at > radius ? at - radius : 0; k <= at + radius && k < width; k++, count++) {
        sum += get(&c->in[0], row + k);
    }
    return sum / (double)count;
}

static const struct {
    const char *name;
    bool scalar;
    int inputs;
    double (*want)(const struct check *check, uint64_t index);
    double tolerance; /* relative to 1 + |wanted| */
    double strays;    /* share of elements that may differ: rounding near a boundary */
} checks[] = {
    {"saxpy", true, 2, want_saxpy, 1e-6, 0},
    {"square", false, 1, want_square, 1e-6, 0},
    {"add", false, 2, want_add, 0, 0},
    {"matmul", false, 2, want_matmul, 1e-4, 0},
    {"reduce_sum", false, 1, want_reduce_sum, 1e-4, 0},
    {"histogram", false, 1, want_histogram, 0, 0},
    {"mandelbrot", true, 0, want_mandelbrot, 0, 0.01},
    {"blur", true, 1, want_blur, 1e-5, 0},
};

static int run_check(size_t which, const struct check *check) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < check->out.count; i++) {
        double wanted = checks[which].want(check, i), got = get(&check->out, i);
        if (fabs(got - wanted) <= checks[which].tolerance * (1 + fabs(wanted))) {
            continue;
        }
        if (wrong++ == 0 && checks[which].strays == 0) {
            printf("%s: element %" PRIu64 " is %.9g, not %.9g\n", checks[which].name, i, got,
                   wanted);
        }
    }
    bool good =
        check->out.count > 0 && (double)wrong <= checks[which].strays * (double)check->out.count;
    printf("%s: %" PRIu64 " of %" PRIu64 " numbers as computed here: %s\n", checks[which].name,
           check->out.count - wrong, check->out.count, good ? "right" : "WRONG");
    return good ? 0 : 1;
}

static int command_check(char **words, int count) {
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (strcmp(words[0], checks[i].name) != 0) {
            continue;
        }
        struct check check = {0};
        int at = 1;
        if (count != 1 + checks[i].scalar + checks[i].inputs + 1) {
            fail(words[0], "wrong number of arguments");
        }
        if (checks[i].scalar) {
            check.scalar = number(words[at++]);
        }
        for (int k = 0; k < checks[i].inputs; k++) {
            check.in[k] = load(words[at++]);
        }
        check.out = load(words[at]);
        int status = run_check(i, &check);
        for (int k = 0; k < checks[i].inputs; k++) {
            free(check.in[k].bytes);
        }
        free(check.out.bytes);
        return status;
    }
    fail(words[0], "is not a kernel that can be checked");
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "make")) {
        return command_make(argv + 2, argc - 2);
    }
    if (argc == 3 && !strcmp(argv[1], "show")) {
        return command_show(argv[2]);
    }
    if (argc == 4 && !strcmp(argv[1], "pgm")) {
        return command_pgm(argv[2], argv[3]);
    }
    if (argc > 2 && !strcmp(argv[1], "check")) {
        return command_check(argv + 2, argc - 2);
    }
    bool asked = argc == 2 && !strcmp(argv[1], "--help");
    fputs("Usage: npy_tool make FILE DTYPE[SHAPE] ramp START STEP\n"
          "       npy_tool make FILE DTYPE[SHAPE] random SEED LOW HIGH\n"
          "       npy_tool show FILE\n"
          "       npy_tool pgm FILE PICTURE.pgm\n"
          "       npy_tool check KERNEL ARGUMENT...   (see examples/npy_tool.c)\n",
          asked ? stdout : stderr);
    return asked ? 0 : 2;
}
