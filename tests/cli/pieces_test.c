/* How arrays that are too large for one dispatch are cut, on a template that keeps what it is asked. */
#include "request/eval_pieces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../batch/faulty_memory.h"
#include "harness.h"

enum { MOST_ARRAYS = 4, MOST_PIECES = 64, MOST_ELEMENTS = 4096 };

/* What the template was asked for, and how it answers. */
static struct {
    uint32_t arrays, prepared, ended;
    bh_description pieces[MOST_PIECES][MOST_ARRAYS];
    const bh_description *given[MOST_ARRAYS]; /* of the last call */
    uint32_t fails_at;                        /* the number of the call that fails, from 1 */
    bh_status output;
} template;

BHT_WRAP(bh_status, bh_template_prepare, bh_template *of, const bh_argument *arguments,
         uint32_t argument_count, const uint32_t *groups, bh_template_call *out_call,
         bh_detail *detail) {
    BHT_TRUE(!of && !groups);
    BHT_EQ(argument_count, template.arrays + 1);
    BHT_STR_EQ(arguments[template.arrays].name, "number");
    BHT_EQ(arguments[template.arrays].bits, 7u);
    BHT_LT(template.prepared, (uint32_t)MOST_PIECES);
    if (template.prepared + 1 == template.fails_at) {
        return detail->status = BH_COMPILE_FAILED;
    }
    for (uint32_t i = 0; i < template.arrays; i++) {
        template.given[i] = arguments[i].description;
        if (arguments[i].description) {
            template.pieces[template.prepared][i] = *arguments[i].description;
        }
    }
    *out_call = (bh_template_call){.command = {.type = BH_COMMAND_DISPATCH}};
    out_call->command.dispatch.groups[0] = ++template.prepared;
    return BH_OK;
}

BHT_WRAP(void, bh_template_call_fini, bh_template_call *call) {
    BHT_EQ(call->command.dispatch.groups[0], ++template.ended);
}

BHT_WRAP(bh_status, bh_template_output, bh_template *of, const bh_argument *arguments,
         uint32_t argument_count, const char *name, bh_description *out, bh_detail *detail) {
    BHT_TRUE(!of && arguments && out->struct_size == sizeof *out);
    BHT_EQ(argument_count, template.arrays + 1);
    BHT_STR_EQ(name, "out");
    return detail->status = template.output;
}

/* A buffer is its description. */
BHT_WRAP(bh_status, bh_buffer_description, bh_buffer *buffer, bh_description *out,
         bh_detail *detail) {
    if (!buffer) {
        return detail->status = BH_INVALID_ARGUMENT;
    }
    *out = *(const bh_description *)(const void *)buffer;
    return BH_OK;
}

/* -- arrays ----------------------------------------------------------------------------------- */

/* "f4:7,1@64": floats of 4 bytes, 7 by 1, from byte 64. */
static bh_description array_of(const char *text) {
    bh_description array = {.struct_size = sizeof array, .kind = BH_NUMBER_FLOAT, .lanes = 1};
    char *at;
    array.bits = (uint32_t)strtoul(text + 1, &at, 10) * 8;
    while (*at == ':' || *at == ',') {
        if (!at[1] || at[1] == '@') {
            at++;
            break; /* of rank 0 */
        }
        array.shape[array.rank++] = strtoull(at + 1, &at, 10);
    }
    array.strided = true; /* as bh_buffer_description tells it */
    array.offset = *at == '@' ? strtoull(at + 1, &at, 10) : 0;
    BHT_STR_EQ(at, "");
    return array;
}

static uint64_t elements_of(const bh_description *array) {
    uint64_t count = 1;
    for (uint32_t k = 0; k < array->rank; k++) {
        count *= array->shape[k];
    }
    return count;
}

/* Which element of |array| goes with element |index| of |result|, as NumPy broadcasts. */
static uint64_t broadcast(const bh_description *array, const bh_description *result,
                          uint64_t index) {
    uint64_t element = 0, step = 1;
    for (uint32_t k = 1; k <= array->rank; k++) {
        const uint64_t of_result = result->shape[result->rank - k];
        const uint64_t size = array->shape[array->rank - k];
        BHT_TRUE(size == 1 || size == of_result);
        element += size == 1 ? 0 : index % of_result * step;
        index /= of_result;
        step *= size;
    }
    return element;
}

/* The arguments of a template: arrays and a number. */
struct call {
    bh_description arrays[MOST_ARRAYS];
    bh_argument arguments[MOST_ARRAYS + 1];
    uint32_t count; /* of arrays */
};

/* |texts|: the arrays, the result last, with blanks between them. */
static void begin(struct call *call, const char *texts) {
    static const char *const names[MOST_ARRAYS] = {"a", "b", "c", "d"};
    char copy[200];
    *call = (struct call){.count = 0};
    memset(&template, 0, sizeof template);
    snprintf(copy, sizeof copy, "%s", texts);
    for (char *rest, *text = strtok_r(copy, " ", &rest); text; text = strtok_r(NULL, " ", &rest)) {
        BHT_LT(call->count, (uint32_t)MOST_ARRAYS);
        call->arrays[call->count] = array_of(text);
        call->arguments[call->count].name = names[call->count];
        call->arguments[call->count].description = &call->arrays[call->count];
        call->count++;
    }
    call->arguments[call->count - 1].name = "out";
    call->arguments[call->count] = (bh_argument){.name = "number", .bits = 7};
    template.arrays = call->count;
}

static bh_status cut(struct call *call, uint64_t bytes, uint32_t alignment,
                     struct bhi_pieces *pieces, bh_detail *detail) {
    *detail = (bh_detail){.status = BH_OK};
    *pieces = (struct bhi_pieces){0};
    const bh_status status = bhi_pieces_cut(pieces, NULL, call->arguments, call->count + 1,
                                            call->count, bytes, alignment, detail);
    if (status != BH_OK) {
        bhi_pieces_free(pieces);
    }
    return status;
}

/* -- what a cut must be ----------------------------------------------------------------------- */

/* Each element of the result is computed once, from the elements it goes with. */
static void check_pieces(const struct call *call, uint32_t alignment) {
    const uint32_t last = call->count - 1;
    const bh_description *result = &call->arrays[last];
    static uint8_t times[MOST_ELEMENTS];
    BHT_LE(elements_of(result), (uint64_t)MOST_ELEMENTS);
    memset(times, 0, sizeof times);
    for (uint32_t p = 0; p < template.prepared; p++) {
        const bh_description *part = template.pieces[p];
        for (uint32_t i = 0; i <= last; i++) {
            BHT_TRUE(!part[i].strided);
            BHT_EQ(part[i].bits, call->arrays[i].bits);
            BHT_EQ(part[i].offset % alignment, 0u);
        }
        const uint64_t first = (part[last].offset - result->offset) / (result->bits / 8);
        for (uint64_t k = 0; k < elements_of(&part[last]); k++) {
            BHT_LT(first + k, elements_of(result));
            times[first + k]++;
            for (uint32_t i = 0; i < last; i++) {
                const uint64_t whole = broadcast(&call->arrays[i], result, first + k);
                const uint64_t in = broadcast(&part[i], &part[last], k);
                BHT_EQ(part[i].offset + in * (part[i].bits / 8),
                       call->arrays[i].offset + whole * (part[i].bits / 8));
            }
        }
    }
    for (uint64_t k = 0; k < elements_of(result); k++) {
        BHT_EQ(times[k], 1);
    }
}

struct cut_case {
    const char *arrays;
    uint64_t bytes;
    uint32_t alignment, pieces;
    uint64_t most; /* elements of the result's largest piece */
};

static void expect_cuts(const struct cut_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct call call;
        struct bhi_pieces pieces;
        bh_detail detail;
        uint64_t most = 0;
        begin(&call, cases[i].arrays);
        if (cut(&call, cases[i].bytes, cases[i].alignment, &pieces, &detail) != BH_OK) {
            BHT_FAIL("%s: %s", cases[i].arrays, detail.message);
        }
        for (uint32_t p = 0; p < template.prepared; p++) {
            const uint64_t elements = elements_of(&template.pieces[p][call.count - 1]);
            most = elements > most ? elements : most;
            BHT_EQ(pieces.commands[p].dispatch.groups[0], p + 1);
        }
        if (pieces.count != cases[i].pieces || template.prepared != pieces.count ||
            most != cases[i].most) {
            BHT_FAIL("%s in %u bytes: %u pieces of up to %u", cases[i].arrays,
                     (unsigned)cases[i].bytes, pieces.count, (unsigned)most);
        }
        check_pieces(&call, cases[i].alignment);
        bhi_pieces_free(&pieces);
        BHT_EQ(template.ended, template.prepared);
    }
}

TEST(arrays_of_one_shape_are_cut_as_one_row) {
    static const struct cut_case cases[] = {
        {"f4:1000 f4:1000", 1024, 64, 4, 256},
        {"f4:10,100 f4:10,100", 1024, 64, 4, 256},
        {"f4:10,100@128 f4: f4:10,100@64", 1024, 64, 4, 256},
        {"f4:10,100 f4:1,1 f4:10,100", 1024, 64, 4, 256},
        {"f1:1000 f8: f1:1000", 256, 64, 4, 256}, /* a single element has no width */
        {"f8:100 f1:100", 256, 16, 4, 32},
        {"f1:100 f8:100", 256, 16, 4, 32},
        {"f8:100 f1:100", 320, 16, 4, 32},  /* the narrowest array has the longest step */
        {"f4:100 f4:100", 16, 64, 7, 16},   /* no fewer than the alignment needs */
        {"f4:100 f4:100", 316, 64, 2, 64},  /* whole steps of it */
        {"f1:257 f1:257", 128, 1, 3, 127},  /* no kernel for a last element alone */
        {"f1:129 f1:129", 64, 64, 3, 64},   /* there is no shorter step */
        {"f4:50@64 f4:50@64", 2, 4, 50, 1}, /* not even one element */
    };
    expect_cuts(cases, BHT_COUNT(cases));
}

TEST(stretched_arrays_are_cut_along_one_dimension) {
    static const struct cut_case cases[] = {
        {"f4:7,1 f4:1,50 f4:7,50", 400, 4, 7, 50},
        {"f4:8,1 f4:50 f4:8,50", 600, 4, 3, 150},
        {"f4:7,50 f4:50 f4:7,50", 600, 4, 4, 100}, /* 3 would leave one */
        {"f4:8,3 f4:1,3 f4:8,3", 40, 16, 2, 12},   /* rows of 12 bytes begin at 48 */
        {"f4:4,1 f4:3,1,50 f4:3,4,50", 80, 4, 36, 20},
        {"f4:4,50 f4:3,1,1 f4:3,4,50", 500, 4, 6, 100},
        {"f4:3,1,50 f4:4,50 f4:3,4,50", 500, 4, 6, 100},
        {"f4:2,1,4,8 f4:3,1,1 f4:2,3,4,8", 128, 4, 6, 32},
        {"f4:2,3,1,8 f4:4,1 f4:2,3,4,8", 64, 4, 12, 16},
        {"f8:3,1 f1:4 f1:3,4", 16, 1, 6, 2},
        {"f4:5,1 f4:2 f4:5,2", 8, 4, 5, 2},
    };
    expect_cuts(cases, BHT_COUNT(cases));
}

TEST(arrays_that_fit_are_one_piece) {
    static const struct {
        const char *arrays;
        uint64_t bytes;
    } cases[] = {{"f4:100 f4:100", 0},
                 {"f4:100 f4:100", 400},
                 {"f4:5,0 f4:5,1 f4:5,0", 4},
                 {"f4:7,1 f4:1,50 f4:7,50", 1400}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct call call;
        struct bhi_pieces pieces;
        bh_detail detail;
        begin(&call, cases[i].arrays);
        template.output = BH_INVALID_ARGUMENT; /* nobody asks */
        BHT_EQ(cut(&call, cases[i].bytes, 64, &pieces, &detail), BH_OK);
        BHT_EQ(pieces.count, 1u);
        for (uint32_t k = 0; k < call.count; k++) {
            BHT_TRUE(template.given[k] == &call.arrays[k]); /* as they are */
        }
        bhi_pieces_free(&pieces);
        BHT_EQ(template.ended, 1u);
    }
}

TEST(a_buffer_has_its_own_description) {
    struct call call;
    struct bhi_pieces pieces;
    bh_detail detail;
    uint64_t bytes;
    begin(&call, "f4:1000 f8:1000@64 f2:1000");
    for (uint32_t i = 0; i < call.count; i++) {
        call.arguments[i].description = NULL;
        call.arguments[i].buffer = (bh_buffer *)(void *)&call.arrays[i];
    }
    BHT_EQ(bhi_pieces_measure(call.arguments, call.count, &bytes, &detail), BH_OK);
    BHT_EQ(bytes, 8000u);
    BHT_EQ(cut(&call, 4096, 64, &pieces, &detail), BH_OK);
    BHT_EQ(pieces.count, 2u);
    check_pieces(&call, 64);
    bhi_pieces_free(&pieces);
    call.arguments[1].buffer = NULL; /* it cannot be asked */
    BHT_EQ(bhi_pieces_measure(call.arguments, call.count, &bytes, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bytes, 0u);
    BHT_EQ(cut(&call, 4096, 64, &pieces, &detail), BH_INVALID_ARGUMENT);
}

TEST(a_cut_that_fails_leaves_nothing) {
    struct call call;
    struct bhi_pieces pieces;
    bh_detail detail;
    begin(&call, "f4:1000 f4:1000");
    template.fails_at = 3;
    BHT_EQ(cut(&call, 1024, 64, &pieces, &detail), BH_COMPILE_FAILED);
    BHT_EQ(template.prepared, 2u);
    BHT_EQ(template.ended, 2u);

    begin(&call, "f4:1000 f4:1000");
    template.output = BH_INVALID_ARGUMENT; /* shapes that do not go together; their pieces might */
    BHT_EQ(cut(&call, 1024, 64, &pieces, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(template.prepared, 0u);

    begin(&call, "f4:1000 f4:1000@4 f4:1000");
    BHT_EQ(cut(&call, 1024, 64, &pieces, &detail), BH_TOO_LARGE);
    BHT_EQ(detail.status, BH_TOO_LARGE);
    BHT_EQ(detail.sys_errno, 0);
    BHT_STR_HAS(detail.message, "'b'");
    BHT_EQ(template.prepared, 0u);

    /* The rows of one plane begin aligned; those of the next one do not. */
    begin(&call, "f4:2,3,1 f4:2,3,5 f4:2,3,5");
    BHT_EQ(cut(&call, 32, 8, &pieces, &detail), BH_TOO_LARGE);
    BHT_EQ(template.ended, template.prepared);
}

/* Of four pieces: each is an allocation, and so are the two lists. */
enum { ALLOCATIONS = 6 };

/* |at|: the allocation that fails. */
static void cut_without(long at) {
    struct call call;
    struct bhi_pieces pieces;
    bh_detail detail;
    begin(&call, "f4:1000 f4:1000");
    const bh_status status = cut(&call, 1024, 64, &pieces, &detail);
    BHT_EQ(status, at > ALLOCATIONS ? BH_OK : BH_NO_MEMORY);
    if (status != BH_OK) {
        BHT_EQ(detail.status, BH_NO_MEMORY);
        BHT_EQ(detail.sys_errno, ENOMEM);
    } else {
        bhi_pieces_free(&pieces);
    }
    BHT_EQ(template.ended, template.prepared);
}

TEST(a_cut_without_memory_leaves_nothing) {
    for (long at = 1; faulty_memory_run(at, cut_without); at++) {
        BHT_LE(at, ALLOCATIONS);
    }
}
