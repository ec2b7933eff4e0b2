/* Inputs that a device makes: on a real worker, byte by byte what the host makes. */
#include "judge/check/maker.h"

#include "harness.h"

#include <stdlib.h>

#include "formats/dtype.h"
#include "judge/check/launch.h"

enum {
    SLOT = 4096,
    CAPABILITY = 17,
    DECORATE = 71,
    NO_CONTRACTION = 42,
};

/* -- kernels with mistakes, and a host that makes something else ------------------------------- */

static struct {
    uint32_t word, becomes;  /* in the kernel's code: all such words; 0: none */
    bool no_reals;           /* the device cannot take the kernel with doubles */
    bool runs_nothing;       /* the kernel is not run */
    bool contracts;          /* an operation on doubles may be contracted */
    size_t doubles, kernels; /* operations on floats, kernels that were made */
    bool differs_far;        /* the host makes other elements far from the first one, */
    bool differs_as_double;  /* or other doubles */
    bool cuda, no_nvrtc;     /* the device is CUDA's */
} look;

static bool is_exact(const uint32_t *code, size_t words, uint32_t id) {
    for (size_t i = 5; i < words; i += code[i] >> 16) {
        if (code[i] == (3u << 16 | DECORATE) && code[i + 1] == id &&
            code[i + 2] == NO_CONTRACTION) {
            return true;
        }
    }
    return false;
}

/* Sums, differences, products and quotients of floats are OpFAdd, 129, to OpFDiv, 136, with those of
 * integers among them. */
static void look_at(const uint32_t *code, size_t words) {
    for (size_t i = 5; i < words; i += code[i] >> 16) {
        const uint32_t op = code[i] & 0xFFFFu;
        if (op == 129 || op == 131 || op == 133 || op == 136) {
            look.doubles++;
            look.contracts |= !is_exact(code, words, code[i + 2]);
        }
    }
}

BHT_WRAP(bh_status, bh_kernel_create_spirv, bh_context *context, const void *code, size_t size,
         const bh_kernel_options *options, bh_kernel **out, bh_detail *detail) {
    uint32_t *own = malloc(size);
    BHT_TRUE(own);
    memcpy(own, code, size);
    const size_t before = look.doubles, words = size / 4;
    look.kernels++;
    look_at(own, words);
    for (size_t i = 5; i < words; i++) {
        own[i] = look.word && own[i] == look.word ? look.becomes : own[i];
    }
    if (look.no_reals && look.doubles > before) {
        for (size_t i = 5; (own[i] & 0xFFFFu) == CAPABILITY; i += own[i] >> 16) {
            own[i + 1] = own[i + 1] == 10 ? 58 : own[i + 1]; /* Float64: SubgroupDispatch */
        }
    }
    const bh_status status =
        __real_bh_kernel_create_spirv(context, own, size, options, out, detail);
    free(own);
    return status;
}

BHT_WRAP(void, bhi_filler_fill_part, const struct bhi_filler *filler, struct bhi_filler_place place,
         bh_dtype dtype, uint64_t first, uint64_t count, void *out) {
    __real_bhi_filler_fill_part(filler, place, dtype, first, count, out);
    if ((look.differs_far && first) || (look.differs_as_double && dtype == BH_DTYPE_F64)) {
        ((uint8_t *)out)[count * bhi_dtype_size(dtype) - 1] ^= 1;
    }
}

/* -- CUDA: maker.cu on the processor (maker_cuda.cpp) ------------------------------------------ */

void maker_cuda_run(unsigned blocks, unsigned threads, void *words, const void *push);

BHT_WRAP(bh_status, bh_kernel_create_source, bh_context *context, const bh_source *source,
         const bh_kernel_options *options, bh_kernel **out, bh_detail *detail) {
    const bh_source other = {.struct_size = sizeof other, .text = "#version 450\nvoid main() {}"};
    BHT_TRUE(look.cuda);
    BHT_STR_EQ(source->name, "maker.cu");
    BHT_STR_EQ(source->options, "--fmad=false");
    BHT_STR_EQ(options->entry, "make");
    BHT_TRUE(options->block[0] == 256 && options->block[1] == 1 && options->block[2] == 1);
    BHT_TRUE(source->length && memmem(source->text, source->length, "void make(", 10));
    look.kernels++;
    if (look.no_nvrtc) {
        return BH_UNSUPPORTED;
    }
    return __real_bh_kernel_create_source(context, &other, NULL, out, detail);
}

static void run_cuda(const bh_dispatch *dispatch) {
    bh_detail why = {0};
    void *bytes;
    BHT_EQ(bh_buffer_map(dispatch->bindings[0].buffer, BH_MAP_READ_WRITE, BH_FOREVER, &bytes, &why),
           BH_OK);
    maker_cuda_run(dispatch->groups[0], 256, (uint8_t *)bytes + dispatch->bindings[0].offset,
                   dispatch->push);
}

BHT_WRAP(bool, bhi_court_submit_within, bh_stream *stream, const bh_command *commands,
         uint32_t count, uint64_t deadline_ns, struct bhi_clocked *out,
         struct bhi_judge_outcome *outcome) {
    for (uint32_t i = 0; look.cuda && i < count; i++) {
        if (commands[i].type == BH_COMMAND_DISPATCH) {
            run_cuda(&commands[i].dispatch);
        } else if (!__real_bhi_court_submit_within(stream, &commands[i], 1, deadline_ns, NULL,
                                                   outcome)) {
            return false;
        }
    }
    if (look.cuda) {
        return true;
    }
    while (look.runs_nothing && count && commands[count - 1].type == BH_COMMAND_DISPATCH) {
        count--;
    }
    return __real_bhi_court_submit_within(stream, commands, count, deadline_ns, out, outcome);
}

/* -- the machine ----------------------------------------------------------------------------- */

static struct bhi_task task;
static struct bhi_court court;
static bh_stream *stream;
static struct bhi_judge_outcome outcome;

static void begin_on(const char *device) {
    bh_stream_options options = {.struct_size = sizeof options, .device = device};
    bh_detail why = {0};
    memset(&look, 0, sizeof look);
    outcome = (struct bhi_judge_outcome){.status = BH_OK};
    options.deadline_ns = 1; /* a task's: no kernel has enough */
    court = (struct bhi_court){.task = &task};
    if (bh_context_create(NULL, &court.context, &why) != BH_OK ||
        bh_stream_create(court.context, &options, &stream, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static void end(void) {
    bh_stream_release(stream);
    BHT_EQ(bh_context_destroy(court.context), BH_OK);
}

static void open_maker(const struct bhi_maker_array *needs, size_t count, struct bhi_maker *out) {
    if (!bhi_maker_open(&court, stream, needs, count, out, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    BHT_EQ(outcome.status, BH_OK);
}

static bool can(const struct bhi_maker *maker, const struct bhi_maker_array *array) {
    return bhi_maker_can(maker, &array->filler, array->dtype);
}

/* A buffer full of ones. */
static bh_buffer *make_buffer(uint64_t size, uint8_t **out_bytes) {
    bh_buffer *buffer;
    bh_detail why = {0};
    void *bytes;
    if (bh_buffer_create(court.context, size, NULL, &buffer, &why) != BH_OK ||
        bh_buffer_map(buffer, BH_MAP_DISCARD, BH_FOREVER, &bytes, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    memset(bytes, 0xFF, size);
    *out_bytes = bytes;
    return buffer;
}

static void make(const struct bhi_maker *maker, const struct bhi_maker_array *arrays, size_t count,
                 bh_buffer *into) {
    bh_detail why = {0};
    void *bytes;
    if (!bhi_maker_make(maker, arrays, count, into, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    BHT_EQ(bh_buffer_map(into, BH_MAP_READ, BH_FOREVER, &bytes, &why), BH_OK);
}

#define BITS    {.kind = BHI_FILLER_BITS}
#define UNIFORM {.kind = BHI_FILLER_UNIFORM, .low = -300, .high = 70000}

static const struct bhi_filler bits = BITS, uniform = UNIFORM,
                               normal = {.kind = BHI_FILLER_NORMAL, .low = 1, .high = 50};

static struct bhi_filler integers(int64_t first, int64_t last) {
    return (struct bhi_filler){.kind = BHI_FILLER_INTEGERS, .first = first, .last = last};
}

/* -- tests ----------------------------------------------------------------------------------- */

enum { ARRAYS = 190, COUNT = 3001 };

/* One of each filler and type, with special values and without. */
static size_t list_all(struct bhi_maker_array arrays[ARRAYS]) {
    size_t count = 0;
    for (size_t i = 0; i < BHI_ELEMENT_COUNT; i++) {
        const bh_dtype dtype = bhi_dtypes[i];
        const bool is_float = bhi_dtype_is_float(dtype);
        const bool is_wide = bhi_dtype_size(dtype) == 8 && !is_float;
        const struct bhi_filler fillers[] = {
            bits,
            integers(0, 1),
            is_wide    ? integers(0, INT64_MAX)
            : is_float ? integers(-INT64_MAX - 1, INT64_MAX)
                       : integers(1, 1),
            is_float || dtype == BH_DTYPE_I64 ? integers(-70000, INT64_C(1) << 40) : integers(0, 1),
            uniform,
            normal,
        };
        for (size_t k = 0; k < BHT_COUNT(fillers) - (is_wide ? 2 : 0); k++) {
            if (dtype == BH_DTYPE_F8_E4M3) {
                break; /* the host makes them */
            }
            for (int special = 0; special < 2 && count < ARRAYS; special++, count++) {
                arrays[count] = (struct bhi_maker_array){
                    .filler = fillers[k],
                    .place = {.seed = UINT64_C(0x9000000080000001) * (count + 1),
                              .trial = 65535 - (uint32_t)count,
                              .array = (uint32_t)count},
                    .dtype = dtype,
                    .count = COUNT - count,
                    .offset = count * 8 * SLOT};
                arrays[count].filler.special = special * 0.25;
            }
        }
    }
    BHT_LT(count, ARRAYS);
    return count;
}

static void expect_equal(const struct bhi_maker_array *array, uint64_t first, uint64_t count,
                         const uint8_t *bytes) {
    const uint32_t size = bhi_dtype_size(array->dtype);
    uint8_t *expected = malloc(count * size);
    BHT_TRUE(expected);
    __real_bhi_filler_fill_part(&array->filler, array->place, array->dtype, first, count, expected);
    if (memcmp(bytes + array->offset + first * size, expected, count * size) != 0) {
        BHT_FAIL("kind %d of %s, special %g", (int)array->filler.kind, bhi_dtype_name(array->dtype),
                 array->filler.special);
    }
    free(expected);
}

TEST(cuda_makes_the_same_bytes) {
    static struct bhi_maker_array arrays[ARRAYS];
    struct bhi_maker maker;
    uint8_t *bytes;
    begin_on("lavapipe");
    look.cuda = court.cuda = true;
    const size_t count = list_all(arrays);
    open_maker(arrays, count, &maker);
    bh_buffer *into = make_buffer(count * 8 * SLOT, &bytes);
    make(&maker, arrays, count, into);
    for (size_t i = 0; i < count; i++) {
        BHT_TRUE(can(&maker, &arrays[i]));
        expect_equal(&arrays[i], 0, arrays[i].count, bytes);
    }
    bh_buffer_release(into);
    bhi_maker_close(&maker);
    end();
}

TEST(cuda_makes_nothing_without_nvrtc) {
    struct bhi_maker_array array = {.filler = normal, .dtype = BH_DTYPE_F32, .count = 9};
    struct bhi_maker maker;
    begin_on("lavapipe");
    look.cuda = court.cuda = look.no_nvrtc = true;
    open_maker(&array, 1, &maker);
    BHT_TRUE(!can(&maker, &array));
    BHT_EQ(look.kernels, 1);
    bhi_maker_close(&maker);
    end();
}

/* All at once. What follows an array is not touched, but for what is left of its last word. */
TEST(the_same_bytes_as_the_host) {
    static struct bhi_maker_array arrays[ARRAYS];
    const size_t count = list_all(arrays);
    struct bhi_maker maker;
    uint8_t *bytes;
    begin_on("lavapipe");
    open_maker(arrays, count, &maker);
    bh_buffer *const buffer = make_buffer(count * 8 * SLOT, &bytes);
    for (size_t i = 0; i < count; i++) {
        if (!can(&maker, &arrays[i])) {
            BHT_FAIL("kind %d of %s", (int)arrays[i].filler.kind, bhi_dtype_name(arrays[i].dtype));
        }
    }
    make(&maker, arrays, count, buffer);
    for (size_t i = 0; i < count; i++) {
        expect_equal(&arrays[i], 0, arrays[i].count, bytes);
        uint64_t end = arrays[i].offset + arrays[i].count * bhi_dtype_size(arrays[i].dtype);
        for (; end % 4; end++) {
            BHT_EQ(bytes[end], 0);
        }
        BHT_EQ(bytes[end], 0xFF);
    }
    BHT_EQ(look.kernels, 1);
    BHT_LT(100, look.doubles);
    BHT_TRUE(!look.contracts); /* on this driver it would make no difference */
    bh_buffer_release(buffer);
    bhi_maker_close(&maker);
    end();
}

/* More elements than a dispatch makes, and more arrays than a submission. */
TEST(much_is_made_in_pieces) {
    enum { MANY = 600 };
    static struct bhi_maker_array arrays[MANY];
    const uint64_t piece = UINT64_C(8) << 20, count = piece + 70001;
    struct bhi_maker maker;
    uint8_t *bytes;
    for (uint32_t i = 0; i < MANY; i++) {
        arrays[i] = (struct bhi_maker_array){.filler = bits,
                                             .place = {.seed = 4, .trial = i},
                                             .dtype = BH_DTYPE_I32,
                                             .count = 1 + i % 7,
                                             .offset = i * (uint64_t)SLOT};
    }
    arrays[MANY - 1].count = count;
    begin_on("lavapipe");
    open_maker(arrays, 1, &maker);
    bh_buffer *const buffer = make_buffer((MANY + 1) * (uint64_t)SLOT + count * 4, &bytes);
    make(&maker, arrays, MANY, buffer);
    for (size_t i = 0; i < MANY - 1; i++) {
        expect_equal(&arrays[i], 0, arrays[i].count, bytes);
    }
    expect_equal(&arrays[MANY - 1], 0, 1024, bytes);
    expect_equal(&arrays[MANY - 1], piece - 512, 1024, bytes);
    expect_equal(&arrays[MANY - 1], count / 512 * 512, count % 512, bytes);
    bh_buffer_release(buffer);
    bhi_maker_close(&maker);
    end();
}

/* What no task asks for, and what nobody has tried. */
TEST(some_it_cannot_make) {
    const struct bhi_maker_array needs[] = {
        {.filler = uniform, .dtype = BH_DTYPE_I64},
        {.filler = normal, .dtype = BH_DTYPE_U64},
        {.filler = integers(-1, 5), .dtype = BH_DTYPE_U64},
        {.filler = integers(0, 256), .dtype = BH_DTYPE_U8},
        {.filler = integers(-129, 0), .dtype = BH_DTYPE_I8},
        {.filler = integers(0, 2), .dtype = BH_DTYPE_BOOL},
        {.filler = {.kind = BHI_FILLER_FILE}, .dtype = BH_DTYPE_F32},
        {.filler = BITS, .dtype = BH_DTYPE_F8_E4M3},
    };
    const struct bhi_filler ends[] = {integers(-128, 127), integers(0, UINT32_MAX)};
    const struct bhi_maker_array good[] = {{.filler = ends[0], .dtype = BH_DTYPE_I8},
                                           {.filler = ends[1], .dtype = BH_DTYPE_U32}};
    struct bhi_maker maker;
    begin_on("lavapipe");
    open_maker(needs, BHT_COUNT(needs), &maker);
    for (size_t i = 0; i < BHT_COUNT(needs); i++) {
        BHT_TRUE(!can(&maker, &needs[i]));
    }
    BHT_TRUE(!maker.kernel);
    BHT_TRUE(!can(&maker, &good[0]));
    bhi_maker_close(&maker);
    open_maker(good, 2, &maker);
    BHT_TRUE(can(&maker, &good[0]) && can(&maker, &good[1]));
    BHT_TRUE(!bhi_maker_can(&maker, &ends[0], BH_DTYPE_I32));
    BHT_TRUE(!bhi_maker_can(&maker, &bits, BH_DTYPE_I8));
    BHT_TRUE(!can(&maker, &needs[4]));
    bhi_maker_close(&maker);
    end();
}

static const struct bhi_maker_array three[] = {{.filler = BITS, .dtype = BH_DTYPE_U32},
                                               {.filler = UNIFORM, .dtype = BH_DTYPE_F32},
                                               {.filler = UNIFORM, .dtype = BH_DTYPE_I32}};

static void expect_can(bool first, bool second, bool third) {
    struct bhi_maker maker;
    open_maker(three, 3, &maker);
    BHT_EQ(can(&maker, &three[0]), first);
    BHT_EQ(can(&maker, &three[1]), second);
    BHT_EQ(can(&maker, &three[2]), third);
    bhi_maker_close(&maker);
}

/* Of all that is made it must be seen. 2^-53 is a number of doubles, and rounding hides its last bit. */
TEST(what_differs_is_not_made) {
    begin_on("lavapipe");
    expect_can(true, true, true);
    look.runs_nothing = true; /* where the last one did */
    expect_can(false, false, false);
    look.runs_nothing = false;
    look.word = 0xD2511F53;
    look.becomes = 0xD2511F51;
    expect_can(false, false, false);
    look.word = 0x3CA00000;
    look.becomes = 0x3CB00000;
    expect_can(true, false, false);
    look.word = 0;
    look.differs_as_double = true;
    expect_can(true, false, false);
    look.differs_far = true;
    expect_can(false, false, false);
    end();
}

/* One filler of a kind and type is made right and another one is not: none is used. */
TEST(one_wrong_filler_is_enough) {
    struct bhi_maker_array both[] = {three[1], three[1]};
    struct bhi_maker maker;
    begin_on("lavapipe");
    both[1].filler.special = 0.5;
    look.word = 18; /* so many special values there are */
    look.becomes = 17;
    open_maker(both, 2, &maker);
    BHT_TRUE(!can(&maker, &both[0]));
    bhi_maker_close(&maker);
    open_maker(both, 1, &maker);
    BHT_TRUE(can(&maker, &both[0]));
    bhi_maker_close(&maker);
    end();
}

/* It makes zeros of any kind, but no other numbers. */
TEST(a_device_without_doubles_makes_the_rest) {
    const struct bhi_maker_array needs[] = {
        three[0],
        three[1],
        {.filler = integers(0, 0), .dtype = BH_DTYPE_F32},
    };
    struct bhi_maker maker;
    uint8_t *bytes;
    begin_on("lavapipe");
    look.no_reals = true;
    open_maker(needs, BHT_COUNT(needs), &maker);
    BHT_EQ(look.kernels, 2);
    BHT_TRUE(can(&maker, &needs[0]) && !can(&maker, &needs[1]) && !can(&maker, &needs[2]));
    bh_buffer *const buffer = make_buffer(SLOT, &bytes);
    struct bhi_maker_array array = three[0];
    array.count = 1000;
    make(&maker, &array, 1, buffer);
    expect_equal(&array, 0, array.count, bytes);
    bh_buffer_release(buffer);
    bhi_maker_close(&maker);
    end();
}

TEST(without_a_device_nothing_is_known) {
    struct bhi_maker maker;
    begin_on("lavapipe:63");
    BHT_TRUE(!bhi_maker_open(&court, stream, three, 3, &maker, &outcome));
    BHT_EQ(outcome.status, BH_NO_DEVICE);
    BHT_TRUE(!maker.kernel);
    bhi_maker_close(&maker);
    end();
}
