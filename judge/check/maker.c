#include "judge/check/maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "formats/dtype.h"
#include "judge/check/content.h"
#include "judge/check/submit.h"

static const uint32_t code_reals[] =
#include "maker.reals.inc"
    ;
static const uint32_t code_wholes[] =
#include "maker.wholes.inc"
    ;

/* For CUDA's devices, as text. */
static const char code_cuda[] = {
#include "maker.cu.inc"
};

/* A piece is bound and made by one dispatch: every device binds so much, and takes so many groups. */
enum { PIECE = 32 << 20, PIECES = 256, THREADS = 256 };
/* No array takes so long; the task's deadline is for its kernels. */
static const uint64_t deadline_ns = 60000000000u;

/* -- what the kernel is told ----------------------------------------------------------------- */

enum form { FORM_BOOL, FORM_UNSIGNED, FORM_SIGNED, FORM_FLOAT };

/* As in maker.comp. */
struct push {
    uint64_t key, first;
    uint32_t count, place, kind, size, form, mantissa, exponent, is_special;
    uint64_t share, low, high, least, most;
};

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static enum form form_of(bh_dtype dtype) {
    return bhi_dtype_is_float(dtype)     ? FORM_FLOAT
           : bhi_dtype_is_signed(dtype)  ? FORM_SIGNED
           : bhi_dtype_is_integer(dtype) ? FORM_UNSIGNED
                                         : FORM_BOOL;
}

/* The least and the most that an integer type holds; of u64 the most that a filler asks for. */
static int64_t least_of(bh_dtype dtype) {
    return form_of(dtype) != FORM_SIGNED ? 0 : INT64_MIN >> (64 - 8 * bhi_dtype_size(dtype));
}

static int64_t most_of(bh_dtype dtype) {
    const uint32_t bits = 8 * bhi_dtype_size(dtype) - (form_of(dtype) == FORM_SIGNED);
    return form_of(dtype) == FORM_BOOL ? 1 : bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

struct bhi_maker_array bhi_maker_array_of(const struct bhi_trial_array *array, uint64_t offset) {
    return (struct bhi_maker_array){.filler = array->fill.filler,
                                    .place = array->place,
                                    .dtype = array->form.dtype,
                                    .count = array->count,
                                    .offset = offset};
}

static bool is_real(enum bhi_filler_kind kind) {
    return kind == BHI_FILLER_UNIFORM || kind == BHI_FILLER_NORMAL;
}

static struct push push_of(const struct bhi_maker_array *array) {
    const struct bhi_filler *filler = &array->filler;
    struct push push = {.key = array->place.seed,
                        .place = array->place.trial << 16 | (array->place.array & 0xFFFFu),
                        .kind = filler->kind,
                        .size = bhi_dtype_size(array->dtype),
                        .form = form_of(array->dtype)};
    if (push.form == FORM_FLOAT) {
        push.mantissa = bhi_float_of(array->dtype).mantissa;
        push.exponent = bhi_float_of(array->dtype).exponent;
    } else {
        push.least = bits_of((double)least_of(array->dtype));
        push.most = bits_of((double)most_of(array->dtype));
    }
    if (filler->special > 0) {
        push.is_special = 1;
        push.share = (uint64_t)ceil(filler->special * 0x1p53);
    }
    if (is_real(filler->kind)) {
        const bool is_uniform = filler->kind == BHI_FILLER_UNIFORM;
        push.low = bits_of(filler->low);
        push.high = bits_of(is_uniform ? filler->high - filler->low : filler->high);
    } else if (filler->kind == BHI_FILLER_INTEGERS) {
        push.low = (uint64_t)filler->first;
        push.high = (uint64_t)filler->last - (uint64_t)filler->first + 1;
    }
    return push;
}

/* -- submissions ----------------------------------------------------------------------------- */

struct batch {
    const struct bhi_maker *maker;
    bh_buffer *into;
    uint32_t count;
    bh_command commands[PIECES];
    bh_binding bindings[PIECES];
    struct push pushes[PIECES];
};

static bool submit(struct batch *batch, struct bhi_judge_outcome *outcome) {
    const uint32_t count = batch->count;
    batch->count = 0;
    return !count || bhi_court_submit_within(batch->maker->stream, batch->commands, count,
                                             deadline_ns, NULL, outcome);
}

/* Adds the elements from |first| on as an array of its own. */
static bool add(struct batch *batch, const struct bhi_maker_array *array, uint64_t first,
                struct bhi_judge_outcome *outcome) {
    const uint32_t size = bhi_dtype_size(array->dtype);
    bool good = true;
    for (uint64_t done = 0; done < array->count && good; done += PIECE / size) {
        const uint64_t left = array->count - done;
        const uint32_t here = (uint32_t)(left < PIECE / size ? left : PIECE / size);
        const uint32_t bytes = (here * size + 3) / 4 * 4;
        const uint32_t threads = size == 8 ? here : bytes / 4;
        const uint32_t i = batch->count++;
        batch->pushes[i] = push_of(array);
        batch->pushes[i].first = first + done;
        batch->pushes[i].count = here;
        batch->bindings[i] = (bh_binding){.buffer = batch->into,
                                          .offset = array->offset + done * size,
                                          .size = bytes,
                                          .access = BH_ACCESS_WRITE};
        batch->commands[i] =
            (bh_command){.type = BH_COMMAND_DISPATCH,
                         .dispatch = {.kernel = batch->maker->kernel,
                                      .groups = {(threads + THREADS - 1) / THREADS, 1, 1},
                                      .bindings = &batch->bindings[i],
                                      .binding_count = 1,
                                      .push = &batch->pushes[i],
                                      .push_size = sizeof batch->pushes[i]}};
        good = batch->count < PIECES || submit(batch, outcome);
    }
    return good;
}

static struct batch *begin(const struct bhi_maker *maker, bh_buffer *into,
                           struct bhi_judge_outcome *outcome) {
    struct batch *batch = malloc(sizeof *batch);
    if (!batch) {
        bhi_judge_outcome_memory(outcome);
        return NULL;
    }
    batch->maker = maker;
    batch->into = into;
    batch->count = 0;
    return batch;
}

bool bhi_maker_make(const struct bhi_maker *maker, const struct bhi_maker_array *arrays,
                    size_t count, bh_buffer *into, struct bhi_judge_outcome *outcome) {
    struct batch *batch = begin(maker, into, outcome);
    bool good = batch;
    for (size_t i = 0; i < count && good; i++) {
        BHI_CHECK(bhi_maker_can(maker, &arrays[i].filler, arrays[i].dtype));
        good = add(batch, &arrays[i], 0, outcome);
    }
    good = good && submit(batch, outcome);
    free(batch);
    return good;
}

/* -- what it can make ------------------------------------------------------------------------ */

/* Needs the kernel double arithmetic for it? */
static bool needs_reals(const struct bhi_filler *filler, bh_dtype dtype) {
    return is_real(filler->kind) ||
           (filler->kind == BHI_FILLER_INTEGERS && form_of(dtype) == FORM_FLOAT);
}

/* Was the kernel written for it? Not for what no task asks for: real numbers that become integers of
 * 64 bits, and integers out of the range of their type. Nor for E4M3, whose numbers end in their own way. */
static bool is_known(const struct bhi_filler *filler, bh_dtype dtype) {
    const bool is_float = form_of(dtype) == FORM_FLOAT;
    if (dtype == BH_DTYPE_F8_E4M3) {
        return false;
    }
    switch (filler->kind) {
    case BHI_FILLER_UNIFORM:
    case BHI_FILLER_NORMAL:
        return is_float || bhi_dtype_size(dtype) < 8;
    case BHI_FILLER_INTEGERS:
        return is_float || (filler->first >= least_of(dtype) && filler->last <= most_of(dtype));
    case BHI_FILLER_BITS:
        return true;
    default:
        return false;
    }
}

bool bhi_maker_can(const struct bhi_maker *maker, const struct bhi_filler *filler, bh_dtype dtype) {
    return is_known(filler, dtype) && maker->made[filler->kind] >> dtype & 1;
}

/* What is compared for each need: a part at the beginning, one where element numbers no longer fit 32
 * bits, and, because rounding hides what is wrong with a double, the first part as doubles. */
enum { TRIES = 3, TRY = 16384 * 8 };

static const struct {
    uint64_t first;
    uint32_t count;
    bool as_double;
} tries[TRIES] = {{0, 16381, false}, {(UINT64_C(1) << 32) - 512, 1021, false}, {0, 16384, true}};

static struct bhi_maker_array try_of(const struct bhi_maker_array *need, int which) {
    struct bhi_maker_array array = *need;
    const bool as_double = tries[which].as_double && needs_reals(&need->filler, need->dtype);
    array.place = (struct bhi_filler_place){.seed = 0x6D616B6572000000, .trial = 3, .array = 5};
    array.count = tries[which].count;
    array.dtype = as_double ? BH_DTYPE_F64 : need->dtype;
    return array;
}

static bool is_equal(const struct bhi_maker_array *need, const uint8_t *got, uint8_t *expected) {
    bool equal = true;
    for (int i = 0; i < TRIES && equal; i++) {
        const struct bhi_maker_array array = try_of(need, i);
        bhi_filler_fill_part(&array.filler, array.place, array.dtype, tries[i].first, array.count,
                             expected);
        equal = !memcmp(got + (size_t)i * TRY, expected, array.count * bhi_dtype_size(array.dtype));
    }
    return equal;
}

/* Lets the kernel make everything that is tried. The buffer's memory may hold what another kernel made
 * there: it is overwritten first. */
static bool make_tries(const struct bhi_maker *maker, const struct bhi_maker_array *needs,
                       size_t count, bh_buffer *buffer, struct bhi_judge_outcome *outcome) {
    struct batch *batch = begin(maker, buffer, outcome);
    bool good = batch;
    if (good) {
        batch->commands[batch->count++] =
            (bh_command){.type = BH_COMMAND_FILL,
                         .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 0xA5A5A5A5}};
    }
    for (size_t i = 0; i < count * TRIES && good; i++) {
        const struct bhi_maker_array *need = &needs[i / TRIES];
        if (is_known(&need->filler, need->dtype)) {
            struct bhi_maker_array array = try_of(need, (int)(i % TRIES));
            array.offset = i * TRY;
            good = add(batch, &array, tries[i % TRIES].first, outcome);
        }
    }
    good = good && submit(batch, outcome);
    free(batch);
    return good;
}

static void compare_tries(struct bhi_maker *maker, const struct bhi_maker_array *needs,
                          size_t count, bool reals, const uint8_t *got, uint8_t *expected) {
    uint32_t wrong[BHI_FILLER_FILE] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct bhi_filler *filler = &needs[i].filler;
        if (is_known(filler, needs[i].dtype)) {
            const bool good = (reals || !needs_reals(filler, needs[i].dtype)) &&
                              is_equal(&needs[i], got + i * TRIES * TRY, expected);
            (good ? maker->made : wrong)[filler->kind] |= 1u << needs[i].dtype;
        }
    }
    for (int i = 0; i < BHI_FILLER_FILE; i++) {
        maker->made[i] &= ~wrong[i];
    }
}

static bh_status make_cuda(const struct bhi_court *court, bh_kernel **out, bh_detail *detail) {
    const bh_source source = {.struct_size = sizeof source,
                              .text = code_cuda,
                              .length = sizeof code_cuda,
                              .name = "maker.cu",
                              .options = "--fmad=false"};
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = "maker", .entry = "make", .block = {THREADS, 1, 1}};
    return bh_kernel_create_source(court->context, &source, &options, out, detail);
}

static bool make_kernel(const struct bhi_court *court, bool reals, bh_kernel **out,
                        struct bhi_judge_outcome *outcome) {
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = "maker", .trusted = true};
    bh_detail detail = {0};
    const bh_status status =
        court->cuda ? make_cuda(court, out, &detail)
                    : bh_kernel_create_spirv(court->context, reals ? code_reals : code_wholes,
                                             reals ? sizeof code_reals : sizeof code_wholes,
                                             &options, out, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

static bool try_kernel(const struct bhi_court *court, const struct bhi_maker_array *needs,
                       size_t count, bool reals, struct bhi_maker *maker,
                       struct bhi_judge_outcome *outcome) {
    const uint64_t size = count * TRIES * TRY;
    bh_buffer *buffer = NULL;
    void *got;
    if (!make_kernel(court, reals, &maker->kernel, outcome)) {
        return false;
    }
    uint8_t *expected = malloc(TRY);
    bool good = expected || bhi_judge_outcome_memory(outcome);
    good = good && bhi_content_make(court->context, maker->stream, size, &buffer, outcome) &&
           make_tries(maker, needs, count, buffer, outcome) &&
           bhi_content_read(buffer, 0, size, &got, outcome);
    if (good) {
        compare_tries(maker, needs, count, reals, got, expected);
        bhi_content_leave(buffer, got);
    }
    bh_buffer_release(buffer);
    free(expected);
    if (!good) {
        bhi_maker_close(maker);
    }
    return good;
}

bool bhi_maker_open(const struct bhi_court *court, bh_stream *stream,
                    const struct bhi_maker_array *needs, size_t count, struct bhi_maker *out,
                    struct bhi_judge_outcome *outcome) {
    bool reals = false, any = false;
    *out = (struct bhi_maker){.stream = stream};
    for (size_t i = 0; i < count; i++) {
        const bool known = is_known(&needs[i].filler, needs[i].dtype);
        any |= known;
        reals |= known && needs_reals(&needs[i].filler, needs[i].dtype);
    }
    while (any && !try_kernel(court, needs, count, reals, out, outcome)) {
        if (bhi_judge_outcome_is_elsewhere(outcome) && outcome->status != BH_UNSUPPORTED) {
            return false;
        }
        *outcome = (struct bhi_judge_outcome){.status = BH_OK};
        *out = (struct bhi_maker){.stream = stream};
        any = reals && !court->cuda; /* perhaps the device has no doubles */
        reals = false;
    }
    return true;
}

void bhi_maker_close(struct bhi_maker *maker) {
    bh_kernel_release(maker->kernel);
    *maker = (struct bhi_maker){0};
}
