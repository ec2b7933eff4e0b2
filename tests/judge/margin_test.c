/* Margins around an output: each byte of them counts, and none of the output; and the buffers of a
 * run, which have them. */
#include "judge/check/setup.h"

#include "harness.h"
#include "judge/check/trial.h"

enum { SIZE = 37 };
static const struct bhi_filler_place place = {.seed = 1};

static struct bhi_margins margins;
static uint8_t buffer[SIZE + 2 * BHI_MARGIN];

TEST(each_byte_of_them_counts) {
    int64_t offset = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    BHT_TRUE(!bhi_margins_find(&margins, buffer, SIZE, &offset));
    for (int i = 0; i < SIZE + 2 * BHI_MARGIN; i++) {
        const bool outside = i < BHI_MARGIN || i >= BHI_MARGIN + SIZE;
        buffer[i] ^= 1;
        BHT_TRUE(bhi_margins_find(&margins, buffer, SIZE, &offset) == outside);
        BHT_TRUE(!outside || offset == i - BHI_MARGIN);
        buffer[i] ^= 1;
    }
}

TEST(the_first_is_named) {
    int64_t offset = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    buffer[BHI_MARGIN + SIZE + 3] ^= 0x80;
    buffer[BHI_MARGIN - 1] ^= 0x80;
    BHT_TRUE(bhi_margins_find(&margins, buffer, SIZE, &offset));
    BHT_EQ(offset, -1);
}

/* The output holds noise before a run, other than in the run before. */
TEST(the_output_is_noise) {
    uint8_t first[SIZE];
    int zeros = 0;
    bhi_margins_fill(&margins, place, buffer, SIZE);
    memcpy(first, buffer + BHI_MARGIN, SIZE);
    for (int i = 0; i < SIZE; i++) {
        zeros += first[i] == 0;
    }
    BHT_LT(zeros, 5);
    bhi_margins_fill(&margins, (struct bhi_filler_place){.seed = 2}, buffer, SIZE);
    BHT_NE(memcmp(first, buffer + BHI_MARGIN, SIZE), 0);
}

/* Noise repeats, but it is everywhere. */
TEST(a_large_output_is_noise_to_its_end) {
    enum { LARGE = 300001, PIECE = 1 << 12 };
    static uint8_t large[LARGE + 2 * BHI_MARGIN];
    int64_t offset = 0;
    bhi_margins_fill(&margins, place, large, LARGE);
    for (size_t i = 0; i + PIECE <= sizeof large; i += PIECE) {
        int zeros = 0;
        for (size_t k = 0; k < PIECE; k++) {
            zeros += large[i + k] == 0;
        }
        BHT_LT(zeros, 64); /* 16 are to be expected */
    }
    BHT_TRUE(!bhi_margins_find(&margins, large, LARGE, &offset));
    large[sizeof large - 1] ^= 1;
    BHT_TRUE(bhi_margins_find(&margins, large, LARGE, &offset));
    BHT_EQ(offset, LARGE + BHI_MARGIN - 1);
}

/* -- a run's buffers ------------------------------------------------------------------------------
 * Nothing runs: its buffers are memory of this process (--wrap).
 */

enum { X, V, Y, Z, ARRAYS, MOST_BUFFERS = 24 };

static struct fake {
    uint64_t size;
    int references;
    uint8_t bytes[BHI_TAIL + 8 * BHI_MARGIN + 256];
} fakes[MOST_BUFFERS];
static size_t made;

static struct fake *fake_of(bh_buffer *of) {
    return (struct fake *)(void *)of;
}

BHT_WRAP(bool, bhi_content_make, bh_context *context, bh_stream *near, uint64_t size,
         bh_buffer **out_buffer, struct bhi_judge_outcome *outcome) {
    BHT_LT(made, MOST_BUFFERS);
    BHT_LE(size, sizeof fakes[0].bytes);
    fakes[made] = (struct fake){.size = size, .references = 1};
    memset(fakes[made].bytes, 0x5a, size); /* what was there before */
    *out_buffer = (bh_buffer *)(void *)&fakes[made++];
    return true;
}

BHT_WRAP(bool, bhi_content_begin, bh_buffer *of, uint64_t size, void **out_room,
         struct bhi_judge_outcome *outcome) {
    BHT_EQ(size, fake_of(of)->size);
    *out_room = fake_of(of)->bytes;
    return true;
}

BHT_WRAP(bool, bhi_content_commit, bh_buffer *of, uint64_t size, void *room,
         struct bhi_judge_outcome *outcome) {
    return true;
}

BHT_WRAP(bool, bhi_content_read, bh_buffer *of, uint64_t offset, uint64_t size, void **out_room,
         struct bhi_judge_outcome *outcome) {
    BHT_LE(offset + size, fake_of(of)->size);
    *out_room = fake_of(of)->bytes + offset;
    return true;
}

BHT_WRAP(bool, bhi_content_write, bh_buffer *of, uint64_t offset, const void *bytes, uint64_t size,
         struct bhi_judge_outcome *outcome) {
    BHT_LE(offset + size, fake_of(of)->size);
    memcpy(fake_of(of)->bytes + offset, bytes, size);
    return true;
}

BHT_WRAP(void *, bhi_content_take, bh_buffer *of, void *room, uint64_t offset, uint64_t size) {
    void *const taken = malloc(size);
    return taken ? memcpy(taken, (uint8_t *)room + offset, size) : NULL;
}

BHT_WRAP(void, bhi_content_leave, bh_buffer *of, void *room) {
    BHT_TRUE(room == fake_of(of)->bytes);
}

BHT_WRAP(void, bh_buffer_release, bh_buffer *of) {
    if (of) {
        fake_of(of)->references--;
    }
}

BHT_WRAP(void, bh_buffer_retain, bh_buffer *of) {
    fake_of(of)->references++;
}

BHT_WRAP(uint64_t, bh_buffer_size, const bh_buffer *of) {
    return ((const struct fake *)(const void *)of)->size;
}

static struct bhi_task task;
static struct bhi_court court = {.task = &task, .noise_seed = 7};
static struct bhi_judged_kernel kernel;
static struct bhi_judge_outcome outcome;

static void open_court(void) {
    static const char text[] =
        "{\"sizes\": [{\"n\": 3}], \"groups\": [\"ceildiv(n, local_x)\"],\n"
        "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},\n"
        "\"inout\": {\"V\": {\"dtype\": \"u8\", \"shape\": [5], \"fill\": \"bits\"}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [2, \"n\"]},\n"
        "          \"Z\": {\"dtype\": \"u8\", \"shape\": []}},\n"
        "\"reference\": {\"kernel\": \"r.comp\"}}";
    static const char *const names[ARRAYS] = {"X", "V", "Y", "Z"};
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", "", text, &task, &complaint));
    BHT_TRUE(bhi_trials_make(&task, NULL, 0, &court.trials, &complaint));
    struct bhi_kernel_types *types = calloc(1, sizeof *types + ARRAYS * sizeof types->types[0]);
    *types = (struct bhi_kernel_types){.local_size = {2, 1, 1}, .count = ARRAYS};
    for (uint32_t i = 0; i < ARRAYS; i++) {
        struct bhi_kernel_type *type = &types->types[i];
        *type = (struct bhi_kernel_type){.slot.binding = ARRAYS - i, .count = 1};
        type->access = i == X ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
        strcpy(type->type, task.arrays[i].dtype == BH_DTYPE_F32 ? "f32[]" : "u8[]");
        strcpy(type->name, names[i]);
    }
    kernel = (struct bhi_judged_kernel){.name = "kernel", .steps = {{.types = types}}, .count = 1};
}

static void close_court(void) {
    free(kernel.steps[0].types);
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
}

BHT_AT_START(bht_around(open_court, close_court))

static const bh_command *command_of(const struct bhi_setup *setup) {
    uint32_t count;
    const bh_command *command = bhi_setup_commands(setup, &count);
    BHT_EQ(count, 1);
    return command;
}

static struct bhi_setup *set_up_with(uint64_t exact, uint64_t number, const struct bhi_trial *trial,
                                     const struct bhi_lap_place *at) {
    const struct bhi_program program = {
        .kernel = &kernel, .groups = &task.groups, .exact = exact, .number = number};
    struct bhi_setup *setup = NULL;
    if (!bhi_setup_make(&court, &program, trial, at, &setup, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    return setup;
}

static struct bhi_setup *set_up(void) {
    return set_up_with(0, 0, court.trials.list, NULL);
}

static struct bhi_launched take(const struct bhi_setup *setup) {
    struct bhi_launched launched;
    BHT_TRUE(bhi_setup_take(setup, &launched, &outcome));
    return launched;
}

/* All outputs have margins, and noise in them and around them, which is another in each run; inputs
 * are what they are, and nothing else. */
TEST(a_run_has_buffers_of_its_own) {
    const struct bhi_trial_array *arrays = court.trials.list[0].arrays;
    made = 0;
    struct bhi_setup *first = set_up(), *second = set_up();
    const bh_command *command = command_of(first);
    BHT_EQ(made, 2 * ARRAYS);
    BHT_EQ(command->dispatch.binding_count, ARRAYS);
    BHT_EQ(command->dispatch.groups[0], 2);
    for (uint32_t i = 0; i < ARRAYS; i++) {
        const bh_binding *binding = &command->dispatch.bindings[i];
        const uint64_t bytes = arrays[i].form.bytes;
        const uint8_t *one = fakes[i].bytes, *other = fakes[ARRAYS + i].bytes;
        BHT_TRUE(fake_of(binding->buffer) == &fakes[i]);
        BHT_EQ(binding->binding, ARRAYS - i);
        BHT_EQ(binding->access, i == X ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE);
        BHT_EQ(binding->offset, i == X ? 0 : BHI_MARGIN);
        BHT_EQ(binding->size, bytes);
        BHT_EQ(fakes[i].size, i == X ? bytes : bytes + 2 * BHI_MARGIN);
        if (arrays[i].before) {
            BHT_MEM_EQ(one + binding->offset, arrays[i].before, bytes);
        }
        if (i != X) {
            BHT_NE(memcmp(one, other, BHI_MARGIN), 0);
            BHT_NE(memcmp(one + BHI_MARGIN + bytes, other + BHI_MARGIN + bytes, BHI_MARGIN), 0);
        }
    }
    BHT_NE(memcmp(fakes[Y].bytes + BHI_MARGIN, fakes[ARRAYS + Y].bytes + BHI_MARGIN, 24), 0);
    BHT_NE(memcmp(fakes[Y].bytes, fakes[V].bytes, BHI_MARGIN), 0); /* nor does an array */
    bhi_setup_free(first);
    bhi_setup_free(second);
    for (size_t i = 0; i < made; i++) {
        BHT_EQ(fakes[i].references, 0);
    }
}

TEST(a_run_in_the_opposite_order_has_the_kernel_for_it) {
    struct bhi_program program = {.kernel = &kernel, .groups = &task.groups};
    made = 0;
    kernel.steps[0].kernel = (bh_kernel *)(void *)&fakes[0];
    kernel.steps[0].opposite = (bh_kernel *)(void *)&fakes[1];
    for (int i = 0; i < 2; i++) {
        struct bhi_setup *setup;
        program.opposite = i == 1;
        BHT_TRUE(bhi_setup_make(&court, &program, court.trials.list, NULL, &setup, &outcome));
        BHT_TRUE(command_of(setup)->dispatch.kernel ==
                 (i ? kernel.steps[0].opposite : kernel.steps[0].kernel));
        bhi_setup_free(setup);
    }
    kernel.steps[0].kernel = kernel.steps[0].opposite = NULL;
}

/* To make memory takes longer than to run. But a trial of another size has other buffers, and contents are
 * fresh. */
TEST(a_worker_has_its_buffers_again) {
    struct bhi_rack rack = {.count = 0};
    const struct bhi_program program = {.kernel = &kernel, .groups = &task.groups, .rack = &rack};
    uint8_t noise[BHI_MARGIN];
    made = 0;
    for (int run = 0; run < 3; run++) {
        struct bhi_setup *setup;
        rack.of = run == 2; /* those are of other trials */
        BHT_TRUE(bhi_setup_make(&court, &program, court.trials.list, NULL, &setup, &outcome));
        BHT_EQ(made, run < 2 ? ARRAYS : 2 * ARRAYS);
        if (run == 1) {
            BHT_NE(memcmp(noise, fakes[Y].bytes, sizeof noise), 0);
            BHT_NE(memcmp(noise, fakes[Z].bytes, sizeof noise), 0);
        }
        memcpy(noise, fakes[Y].bytes, sizeof noise);
        struct bhi_launched launched = take(setup);
        BHT_TRUE(!launched.strayed);
        bhi_launched_free(&launched);
        bhi_setup_free(setup);
    }
    bhi_rack_close(&rack);
    for (size_t i = 0; i < made; i++) {
        BHT_EQ(fakes[i].references, 0);
    }
}

/* The margins of each output, and the output between them. */
TEST(the_margins_of_each_output_are_looked_at) {
    made = 0;
    struct bhi_setup *setup = set_up();
    struct bhi_launched launched = take(setup);
    BHT_TRUE(!launched.strayed && !launched.outputs[X]);
    bhi_launched_free(&launched);
    for (uint32_t i = V; i < ARRAYS; i++) {
        const uint64_t bytes = court.trials.list[0].arrays[i].form.bytes;
        const uint64_t places[] = {0, BHI_MARGIN - 1, BHI_MARGIN + bytes,
                                   2 * BHI_MARGIN + bytes - 1};
        for (size_t k = 0; k < BHT_COUNT(places); k++) {
            fakes[i].bytes[places[k]] ^= 1;
            launched = take(setup);
            BHT_TRUE(launched.strayed);
            BHT_STR_EQ(launched.stray_place, task.arrays[i].place);
            BHT_EQ(launched.stray_bytes, bytes);
            BHT_EQ(launched.stray_offset, (int64_t)places[k] - BHI_MARGIN);
            bhi_launched_free(&launched);
            fakes[i].bytes[places[k]] ^= 1;
        }
        fakes[i].bytes[BHI_MARGIN] ^= 1;
        fakes[i].bytes[BHI_MARGIN + bytes - 1] ^= 0x80;
        launched = take(setup);
        BHT_TRUE(!launched.strayed);
        BHT_MEM_EQ(launched.outputs[i], fakes[i].bytes + BHI_MARGIN, bytes);
        bhi_launched_free(&launched);
    }
    fakes[V].bytes[BHI_MARGIN - 2] ^= 1; /* the first one is named */
    fakes[Z].bytes[BHI_MARGIN - 1] ^= 1;
    launched = take(setup);
    BHT_STR_EQ(launched.stray_place, "V");
    BHT_EQ(launched.stray_offset, -2);
    bhi_launched_free(&launched);
    bhi_setup_free(setup);
}

/* What the task and the kernel say of a binding must agree, for each of them. */
TEST(bindings_that_do_not_agree_are_refused) {
    static const struct {
        uint32_t array;
        bh_access access;
        const char *type, *name, *why;
    } cases[] = {
        {X, BH_ACCESS_READ_WRITE, "f32[]", "X", "in X: the kernel may write it"},
        {X, BH_ACCESS_WRITE, "f32[]", "X", "in X: the kernel may write it"},
        {Z, BH_ACCESS_READ, "u8[]", "Z", "out Z: the kernel does not write it"},
        {V, BH_ACCESS_READ, "u8[]", "V", "inout V: the kernel does not write it"},
        {Y, BH_ACCESS_READ_WRITE, "i32[]", "Y", NULL},
        {Y, BH_ACCESS_READ_WRITE, "f64[]", "Y", NULL},
        {Y, BH_ACCESS_READ_WRITE, "u32x4[]", "Y",
         "out Y: the kernel declares u32x4[], and 24 bytes"},
        {Z, BH_ACCESS_READ_WRITE, "f32[]", "Z", "out Z: the kernel declares f32[], and 1 bytes"},
        {V, BH_ACCESS_READ_WRITE, "i8[]", "V", NULL},
        {V, BH_ACCESS_READ_WRITE, "u16[] | u32[]", "V",
         "inout V: the kernel declares u16[] | u32[]"},
        {V, BH_ACCESS_READ_WRITE, "u32[] | u8[]", "V", NULL},
        {Z, BH_ACCESS_READ_WRITE, "u8[]", "W", "out Z: the kernel has no binding 'Z'"},
        {Z, BH_ACCESS_WRITE, "u8[]", "Z", NULL},
        {X, (bh_access)0, "f32[]", "X", NULL},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_kernel_type *type = &kernel.steps[0].types->types[cases[i].array];
        const struct bhi_kernel_type was = *type;
        type->access = cases[i].access;
        strcpy(type->type, cases[i].type);
        strcpy(type->name, cases[i].name);
        const bool good = bhi_court_check_kernel(&court, &kernel, &task.groups, &outcome);
        BHT_EQ(good, !cases[i].why);
        if (!good) {
            BHT_EQ(outcome.status, BH_BINDING_MISMATCH);
            BHT_STR_HAS(outcome.message, cases[i].why);
        }
        *type = was;
    }
    kernel.steps[0].types->push_size = 4;
    BHT_TRUE(!bhi_court_check_kernel(&court, &kernel, &task.groups, &outcome));
    kernel.steps[0].types->push_size = 0;
    BHT_TRUE(bhi_court_check_kernel(&court, &kernel, &task.groups, &outcome));
}

/* -- what is behind an array ---------------------------------------------------------------------- */

/* The kernel's bindings are buffers, or those of |kind|. */
static void declare(bh_binding_kind kind) {
    for (uint32_t i = 0; i < ARRAYS; i++) {
        kernel.steps[0].types->types[i].kind = kind;
    }
}

static uint64_t bytes_of(uint32_t index) {
    return court.trials.list[0].arrays[index].form.bytes;
}

/* Those arrays of which the kernel can see what is behind them, a bit for each. The setup is freed. */
static uint32_t shown_by(struct bhi_setup *setup) {
    const bh_command *command = command_of(setup);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < ARRAYS; i++) {
        const bh_binding *binding = &command->dispatch.bindings[i];
        const uint64_t behind = binding->size - bytes_of(i);
        BHT_TRUE(!behind || behind == (i == X ? BHI_TAIL : BHI_MARGIN));
        BHT_LE(binding->offset + binding->size, fake_of(binding->buffer)->size);
        shown |= (uint32_t)!!behind << i;
    }
    bhi_setup_free(setup);
    return shown;
}

enum { ALL = (1 << ARRAYS) - 1 };

TEST(an_access_behind_an_array_meets_what_is_there) {
    declare(BH_BINDING_STORAGE_BUFFER);
    made = 0;
    BHT_EQ(shown_by(set_up()), ALL);
    BHT_EQ(shown_by(set_up()), ALL);
    BHT_EQ(fakes[X].size, bytes_of(X) + BHI_TAIL);
    BHT_EQ(fakes[Y].size, bytes_of(Y) + 2 * BHI_MARGIN);
    BHT_MEM_EQ(fakes[X].bytes, court.trials.list[0].arrays[X].before, bytes_of(X));
    const uint8_t *const tail = fakes[X].bytes + bytes_of(X);
    BHT_NE(memcmp(tail, fakes[ARRAYS + X].bytes + bytes_of(X), BHI_TAIL), 0);
    for (size_t i = 0; i < BHI_TAIL; i += sizeof(float)) {
        float number;
        memcpy(&number, tail + i, sizeof number);
        BHT_TRUE(number > 0x1p125F || number < -0x1p125F);
        BHT_TRUE(number - number == 0); /* finite */
    }
}

/* No binding can have 0 bytes: behind an array that is empty is what is behind any, also to a kernel that
 * cannot see it. */
TEST(an_array_that_is_empty_has_noise_and_margins) {
    struct bhi_trials trials;
    struct bhi_complaint complaint;
    enum { ELEMENT = 16 };
    task.sizes[0].values[0] = 0;
    BHT_TRUE(bhi_trials_make(&task, NULL, 0, &trials, &complaint));
    for (int shown = 0; shown < 2; shown++) {
        declare(shown ? BH_BINDING_STORAGE_BUFFER : BH_BINDING_UNIFORM_BUFFER);
        made = 0;
        struct bhi_setup *setup = set_up_with(0, 0, trials.list, NULL);
        const bh_command *command = command_of(setup);
        const bh_binding *x = &command->dispatch.bindings[X], *y = &command->dispatch.bindings[Y];
        BHT_EQ(command->dispatch.groups[0], 1);
        BHT_EQ(x->size, shown ? BHI_TAIL : ELEMENT);
        BHT_EQ(x->size, fakes[X].size);
        BHT_EQ(y->size, shown ? BHI_MARGIN : ELEMENT);
        BHT_EQ(y->offset, BHI_MARGIN);
        BHT_EQ(fakes[Y].size, 2 * BHI_MARGIN);
        BHT_TRUE(fakes[X].bytes[3] || fakes[X].bytes[7] || fakes[X].bytes[11]);
        struct bhi_launched launched = take(setup);
        BHT_TRUE(!launched.strayed);
        bhi_launched_free(&launched);
        fakes[Y].bytes[BHI_MARGIN] ^= 1;
        launched = take(setup);
        BHT_TRUE(launched.strayed && launched.stray_offset == 0);
        BHT_STR_EQ(launched.stray_place, "Y");
        bhi_launched_free(&launched);
        bhi_setup_free(setup);
    }
    bhi_trials_free(&task, &trials);
}

/* Two runs of one number have the same noise, in outputs and behind inputs; others have another. */
TEST(a_number_decides_the_noise) {
    declare(BH_BINDING_STORAGE_BUFFER);
    made = 0;
    for (uint64_t i = 0; i < 3; i++) {
        struct bhi_setup *setup = set_up_with(0, 900 + i / 2, court.trials.list, NULL);
        struct bhi_launched launched = take(setup);
        BHT_EQ(launched.number, 900 + i / 2);
        bhi_launched_free(&launched);
        bhi_setup_free(setup);
    }
    for (uint32_t i = X; i < ARRAYS; i++) {
        BHT_MEM_EQ(fakes[i].bytes, fakes[ARRAYS + i].bytes, fakes[i].size);
        BHT_NE(memcmp(fakes[i].bytes, fakes[2 * ARRAYS + i].bytes, fakes[i].size), 0);
    }
}

TEST(a_run_without_noise_has_zeros_that_may_not_change) {
    declare(BH_BINDING_STORAGE_BUFFER);
    made = 0;
    struct bhi_setup *setup = set_up_with(0, BHI_NO_NOISE, court.trials.list, NULL);
    static const uint8_t zeros[BHI_TAIL];
    BHT_MEM_EQ(fakes[X].bytes, court.trials.list[0].arrays[X].before, bytes_of(X));
    BHT_MEM_EQ(fakes[X].bytes + bytes_of(X), zeros, BHI_TAIL);
    BHT_MEM_EQ(fakes[Y].bytes, zeros, fakes[Y].size);
    struct bhi_launched launched = take(setup);
    BHT_TRUE(!launched.strayed);
    bhi_launched_free(&launched);
    fakes[Y].bytes[BHI_MARGIN + bytes_of(Y)] = 1;
    launched = take(setup);
    BHT_TRUE(launched.strayed && !strcmp(launched.stray_place, "Y"));
    bhi_launched_free(&launched);
    bhi_setup_free(setup);
}

/* What is behind arrays is not shown to whom the task allows to access it, nor to a kernel that asks how
 * long they are, and only of storage buffers. */
TEST(who_may_see_what_is_behind_arrays) {
    declare(BH_BINDING_UNIFORM_BUFFER);
    made = 0;
    BHT_EQ(shown_by(set_up()), 0);
    declare(BH_BINDING_STORAGE_BUFFER);
    for (uint32_t i = 0; i < ARRAYS; i++) {
        kernel.steps[0].types->types[i].measured = true;
        made = 0;
        BHT_EQ(shown_by(set_up()), ALL & ~(1u << i));
        kernel.steps[0].types->types[i].measured = false;
    }
    task.robust = true;
    made = 0;
    BHT_EQ(shown_by(set_up()), 0);
}

/* Each array alone can be one behind which nothing is, for one run. */
TEST(an_array_is_exact_where_that_is_asked_for) {
    declare(BH_BINDING_STORAGE_BUFFER);
    for (uint32_t i = 0; i < ARRAYS; i++) {
        made = 0;
        BHT_EQ(shown_by(set_up_with(1u << i, 0, court.trials.list, NULL)), ALL & ~(1u << i));
        BHT_EQ(fakes[i].size, bytes_of(i) + (i == X ? 0 : 2 * BHI_MARGIN));
    }
    made = 0;
    BHT_EQ(shown_by(set_up_with(UINT64_MAX, 0, court.trials.list, NULL)), 0);
}

/* The inputs of all timed runs are in one buffer, where each begins behind the other, and so are their
 * outputs: those hold a word over and over, also in their margins. */
TEST(timed_runs_see_their_arrays_alone) {
    enum { BEGIN = 256 };
    static const uint32_t word = 0xFEDCBA98;
    struct bhi_trial timed;
    BHT_TRUE(bhi_trial_anew(&task, court.trials.list, 3, NULL, &timed));
    declare(BH_BINDING_STORAGE_BUFFER);
    made = 2;
    for (size_t i = 0; i < made; i++) {
        fakes[i] = (struct fake){.size = sizeof fakes[i].bytes, .references = 1};
        for (size_t k = 0; k < sizeof fakes[i].bytes; k++) {
            fakes[i].bytes[k] = (uint8_t)(word >> k % sizeof word * 8);
        }
    }
    const struct bhi_lap_place at = {.inputs = (bh_buffer *)(void *)&fakes[0],
                                     .inputs_begin = BEGIN,
                                     .outputs = (bh_buffer *)(void *)&fakes[1],
                                     .outputs_begin = BEGIN,
                                     .word = word};
    struct bhi_setup *setup = set_up_with(0, 0, &timed, &at);
    const bh_binding *bindings = command_of(setup)->dispatch.bindings;
    uint64_t end = BEGIN;
    BHT_TRUE(bindings[X].buffer == at.inputs);
    BHT_EQ(bindings[X].offset, BEGIN);
    for (uint32_t i = V; i < ARRAYS; i++) {
        const uint64_t bytes = bytes_of(i);
        BHT_TRUE(bindings[i].buffer == at.outputs);
        BHT_EQ(bindings[i].size, bytes);
        BHT_EQ(bindings[i].offset, end + BHI_MARGIN);
        for (uint64_t k = 0; k < 2; k++) { /* the margins' last and first byte beside it */
            uint8_t *const byte = &fakes[1].bytes[end + BHI_MARGIN - 1 + k * (bytes + 1)];
            struct bhi_launched launched = take(setup);
            BHT_TRUE(!launched.strayed);
            bhi_launched_free(&launched);
            *byte ^= 1;
            launched = take(setup);
            BHT_TRUE(launched.strayed);
            BHT_STR_EQ(launched.stray_place, task.arrays[i].place);
            bhi_launched_free(&launched);
            *byte ^= 1;
        }
        end += bhi_lap_bytes(bytes + 2 * BHI_MARGIN);
    }
    BHT_EQ(fakes[0].references, 2);
    BHT_EQ(fakes[1].references, 1 + ARRAYS - V);
    BHT_EQ(shown_by(setup), 0);
    BHT_EQ(fakes[0].references, 1);
    BHT_EQ(fakes[1].references, 1);
    bhi_trial_free(&task, &timed);
}

/* A CUDA kernel sees in any case what is behind an array, and also what is around an output. */
TEST(zeros_are_behind_an_exact_array_on_cuda) {
    declare(BH_BINDING_STORAGE_BUFFER);
    court.cuda = kernel.cuda = true;
    for (int exact = 0; exact < 2; exact++) {
        made = 0;
        struct bhi_setup *setup = set_up_with(exact ? UINT64_MAX : 0, 0, court.trials.list, NULL);
        for (uint32_t i = 0; i < ARRAYS; i++) {
            const uint64_t begin = (i == X ? 0 : BHI_MARGIN) + bytes_of(i);
            bool zeros = true, front = true;
            BHT_EQ(fakes[i].size, begin + (i == X ? BHI_TAIL : BHI_MARGIN));
            for (uint64_t k = begin; k < fakes[i].size; k++) {
                zeros = zeros && !fakes[i].bytes[k];
            }
            for (uint64_t k = 0; i != X && k < BHI_MARGIN; k++) {
                front = front && !fakes[i].bytes[k];
            }
            BHT_EQ(zeros, exact);
            BHT_EQ(front, i == X);
        }
        struct bhi_launched launched = take(setup);
        BHT_TRUE(!launched.strayed);
        bhi_launched_free(&launched);
        fakes[Y].bytes[fakes[Y].size - 1] ^= 1;
        launched = take(setup);
        BHT_TRUE(launched.strayed);
        bhi_launched_free(&launched);
        bhi_setup_free(setup);
    }
}

/* -- a plan --------------------------------------------------------------------------------------- */

enum { T = ARRAYS }; /* its scratch */

/* Two kernels: the first reads X, and writes V, Z and scratch T; the second reads T, and writes Y. */
static struct bhi_judged_kernel planned(void) {
    static const char text[] = "{\"kernels\": [{\"groups\": [\"n\", 2]}, {}],\n"
                               "\"scratch\": {\"T\": {\"dtype\": \"f32\", \"shape\": [\"n\", 4]}}}";
    static const struct {
        uint32_t array;
        bh_access access;
    } declared[2][4] = {{{X, BH_ACCESS_READ},
                         {V, BH_ACCESS_READ_WRITE},
                         {Z, BH_ACCESS_WRITE},
                         {T, BH_ACCESS_WRITE}},
                        {{T, BH_ACCESS_READ}, {Y, BH_ACCESS_WRITE}, {V, BH_ACCESS_READ}}};
    const struct bhi_judge_plan_place where = {text, strlen(text), 1};
    struct bhi_judged_kernel out = {.name = "c", .count = 2};
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_judge_plan_parse("c.comp", &where, true, &task, &out.plan, &complaint));
    for (uint32_t k = 0; k < 2; k++) {
        struct bhi_kernel_types *types = calloc(1, sizeof *types + 4 * sizeof types->types[0]);
        *types = (struct bhi_kernel_types){.local_size = {2, 1, 1}, .count = k ? 3 : 4};
        for (uint32_t i = 0; i < types->count; i++) {
            struct bhi_kernel_type *type = &types->types[i];
            const uint32_t array = declared[k][i].array;
            *type = (struct bhi_kernel_type){.slot.binding = 10 * k + i,
                                             .count = 1,
                                             .kind = BH_BINDING_STORAGE_BUFFER,
                                             .access = declared[k][i].access};
            strcpy(type->type, array == V || array == Z ? "u8[]" : "f32[]");
            strcpy(type->name, bhi_judged_array(&task, &out, array)->place);
        }
        out.steps[k].types = types;
    }
    return out;
}

static void drop(struct bhi_judged_kernel *out) {
    free(out->steps[0].types);
    free(out->steps[1].types);
    bhi_judge_plan_free(out->plan);
}

static struct bhi_setup *set_up_plan(const struct bhi_judged_kernel *of, uint64_t number) {
    const struct bhi_program program = {.kernel = of, .groups = &task.groups, .number = number};
    struct bhi_setup *setup = NULL;
    if (!bhi_setup_make(&court, &program, court.trials.list, NULL, &setup, &outcome)) {
        BHT_FAIL("%s", outcome.message);
    }
    return setup;
}

/* Each kernel binds what it declares, in one submission; scratch is a buffer that they share. */
TEST(kernels_of_a_plan_share_arrays_and_scratch) {
    struct bhi_judged_kernel two = planned();
    uint32_t count;
    made = 0;
    struct bhi_setup *setup = set_up_plan(&two, 0);
    const bh_command *commands = bhi_setup_commands(setup, &count);
    BHT_EQ(count, 2);
    BHT_EQ(made, ARRAYS + 1);
    BHT_EQ(commands[0].dispatch.groups[0], 3); /* its own */
    BHT_EQ(commands[0].dispatch.groups[1], 2);
    BHT_EQ(commands[1].dispatch.groups[0], 2); /* the task's */
    static const uint32_t bound[2][4] = {{X, V, Z, T}, {V, Y, T}};
    for (uint32_t k = 0; k < 2; k++) {
        BHT_EQ(commands[k].dispatch.binding_count, k ? 3 : 4);
        for (uint32_t i = 0; i < commands[k].dispatch.binding_count; i++) {
            const bh_binding *binding = &commands[k].dispatch.bindings[i];
            const uint32_t array = bound[k][i];
            const bool reads = array == X || (k && array != Y);
            BHT_TRUE(fake_of(binding->buffer) == &fakes[array]);
            BHT_EQ(binding->access, reads ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE);
            BHT_EQ(binding->offset, array == X ? 0 : BHI_MARGIN);
            BHT_EQ(binding->size,
                   (array == T ? 48 : bytes_of(array)) + (array == X ? BHI_TAIL : BHI_MARGIN));
        }
    }
    bhi_setup_free(setup);
    drop(&two);
}

/* It begins as noise, another in each run, and its margins are looked at. */
TEST(scratch_is_noise_with_margins) {
    struct bhi_judged_kernel two = planned();
    made = 0;
    struct bhi_setup *first = set_up_plan(&two, 0), *second = set_up_plan(&two, 0),
                     *zeros = set_up_plan(&two, BHI_NO_NOISE);
    const uint8_t *const one = fakes[T].bytes, *const other = fakes[ARRAYS + 1 + T].bytes;
    static const uint8_t nothing[48];
    BHT_EQ(fakes[T].size, 48 + 2 * BHI_MARGIN);
    BHT_NE(memcmp(one + BHI_MARGIN, other + BHI_MARGIN, 48), 0);
    BHT_NE(memcmp(one + BHI_MARGIN, fakes[Y].bytes + BHI_MARGIN, 24), 0);
    BHT_MEM_EQ(fakes[2 * (ARRAYS + 1) + T].bytes + BHI_MARGIN, nothing, 48);
    static const uint64_t places[] = {BHI_MARGIN - 1, BHI_MARGIN, BHI_MARGIN + 47, BHI_MARGIN + 48};
    for (size_t i = 0; i < BHT_COUNT(places); i++) {
        fakes[T].bytes[places[i]] ^= 1;
        struct bhi_launched launched = take(first);
        BHT_EQ(launched.strayed, i == 0 || i == 3);
        if (launched.strayed) {
            BHT_STR_EQ(launched.stray_place, "T");
            BHT_EQ(launched.stray_bytes, 48);
            BHT_EQ(launched.stray_offset, (int64_t)places[i] - BHI_MARGIN);
        }
        bhi_launched_free(&launched);
        fakes[T].bytes[places[i]] ^= 1;
    }
    bhi_setup_free(first);
    bhi_setup_free(second);
    bhi_setup_free(zeros);
    drop(&two);
}

/* What no kernel of a plan binds or writes, and who of them is wrong. */
TEST(a_plan_that_does_not_fit_is_refused) {
    static const struct {
        uint32_t step, type;
        bh_access access;
        const char *name, *why;
    } cases[] = {
        {0, 0, BH_ACCESS_READ, "W", "in X: no kernel binds it"},
        {0, 3, BH_ACCESS_WRITE, "W", "\"kernels\" [0] \"kernel\": the kernel binds"},
        {1, 1, BH_ACCESS_READ, "Y", "out Y: no kernel writes it"},
        {0, 3, BH_ACCESS_READ, "T", "scratch T: no kernel writes it"},
        {0, 0, BH_ACCESS_READ_WRITE, "X",
         "\"kernels\" [0] \"kernel\": in X: the kernel may write it"},
        {0, 2, BH_ACCESS_READ_WRITE, "Z", NULL},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_judged_kernel two = planned();
        struct bhi_kernel_types *types = two.steps[cases[i].step].types;
        types->types[cases[i].type].access = cases[i].access;
        strcpy(types->types[cases[i].type].name, cases[i].name);
        if (i == 0) {
            types->types[0] = types->types[3]; /* it has X no more, and so nothing in its place */
            types->count = 3;
            strcpy(types->types[0].name, "T");
        }
        BHT_EQ(bhi_court_check_kernel(&court, &two, &task.groups, &outcome), !cases[i].why);
        if (cases[i].why) {
            BHT_EQ(outcome.status, BH_BINDING_MISMATCH);
            BHT_STR_HAS(outcome.message, cases[i].why);
        }
        drop(&two);
    }
}

/* A kernel that takes fewer push constants than the task has gets those alone. */
TEST(a_kernel_takes_those_push_constants_that_it_has) {
    static const struct {
        const char *names[3], *why;
        uint32_t words[3];
    } cases[] = {
        {{"a", "b", "c"}, NULL, {1, 2, 3}},
        {{"c", "a"}, NULL, {3, 1}},
        {{"b"}, NULL, {2}},
        {{NULL}, NULL, {0}},
        {{"d"}, "the task has none of them", {0}},
        {{"a", "d"}, "'d' (u32) is missing", {0}},
    };
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        task.pushes[i] = (struct bhi_task_push){.name = names[i]};
        snprintf(task.pushes[i].text, sizeof task.pushes[i].text, "%u", i + 1);
    }
    task.push_count = 3;
    struct bhi_kernel_types *types = kernel.steps[0].types;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        types->member_count = 0;
        for (; types->member_count < 3 && cases[i].names[types->member_count];
             types->member_count++) {
            struct bhi_kernel_member *member = &types->members[types->member_count];
            *member = (struct bhi_kernel_member){.offset = 4 * types->member_count};
            strcpy(member->type, "u32");
            strcpy(member->name, cases[i].names[types->member_count]);
        }
        types->push_size = 4 * types->member_count;
        BHT_EQ(bhi_court_check_kernel(&court, &kernel, &task.groups, &outcome), !cases[i].why);
        if (cases[i].why) {
            BHT_STR_HAS(outcome.message, cases[i].why);
            continue;
        }
        made = 0;
        struct bhi_setup *setup = set_up();
        const bh_command *command = command_of(setup);
        BHT_EQ(command->dispatch.push_size, types->push_size);
        if (types->push_size) {
            BHT_MEM_EQ(command->dispatch.push, cases[i].words, types->push_size);
        }
        bhi_setup_free(setup);
    }
    task.push_count = 0;
    types->member_count = types->push_size = 0;
}

/* -- push constants that are drawn --------------------------------------------------------------- */

static float push_of(const struct bhi_trial *trial, uint64_t noise_seed) {
    float out;
    court.noise_seed = noise_seed;
    made = 0;
    struct bhi_setup *setup = set_up_with(0, 0, trial, NULL);
    const bh_command *command = command_of(setup);
    BHT_EQ(command->dispatch.push_size, sizeof out);
    memcpy(&out, command->dispatch.push, sizeof out);
    bhi_setup_free(setup);
    return out;
}

/* In a trial by its seed alone, so that the reference has the same; in timed runs nobody has seen them
 * before, and all runs of a size have the same. */
TEST(push_constants_of_timed_runs_are_secret) {
    static const char drawn[] =
        "{\"sizes\": [{}], \"seeds\": [5, 6], \"groups\": [1],\n"
        "\"out\": {\"X\": {\"dtype\": \"f32\", \"shape\": [3]}},\n"
        "\"push\": {\"a\": {\"uniform\": [0, 1]}}, \"reference\": {\"kernel\": \"r.comp\"}}";
    struct bhi_complaint complaint;
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
    BHT_TRUE(bhi_task_parse("t.json", "", drawn, &task, &complaint));
    BHT_TRUE(bhi_trials_make(&task, NULL, 0, &court.trials, &complaint));
    BHT_EQ(court.trials.count, 2);
    kernel.steps[0].types->types[0].access = BH_ACCESS_READ_WRITE;
    kernel.steps[0].types->count = 1;
    kernel.steps[0].types->push_size = sizeof(float);
    kernel.steps[0].types->member_count = 1;
    strcpy(kernel.steps[0].types->members[0].name, "a");
    strcpy(kernel.steps[0].types->members[0].type, "f32");
    const struct bhi_trial *const first = &court.trials.list[0], *const second = first + 1;
    BHT_TRUE(push_of(first, 7) == push_of(first, 8));
    BHT_TRUE(push_of(first, 7) != push_of(second, 7));
    struct bhi_trial one, other;
    BHT_TRUE(bhi_trial_anew(&task, first, 3, NULL, &one) &&
             bhi_trial_anew(&task, first, 4, NULL, &other));
    BHT_TRUE(push_of(&one, 7) == push_of(&other, 7));
    BHT_TRUE(push_of(&one, 7) != push_of(&one, 8));
    BHT_TRUE(push_of(&one, 7) != push_of(first, 7));
    bhi_trial_free(&task, &one);
    bhi_trial_free(&task, &other);
}
