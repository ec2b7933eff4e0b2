/* What a binding may do where the caller leaves that to the kernel: what its module declares (B5).
 */
#include "fixture.h"

#include <stdio.h>

struct scene {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square, *saxpy, *pick;
    bh_buffer *x, *y;
};

static struct scene set_up(void) {
    struct scene s = {.context = fx_context(NULL)};
    s.stream = fx_stream(s.context, "a", FX_SECONDS);
    s.square = fx_kernel(s.context, "square");
    s.saxpy = fx_kernel(s.context, "saxpy");
    s.pick = fx_kernel(s.context, "pick");
    s.x = fx_words(s.context, 64, 0x40000000); /* 2 */
    s.y = fx_words(s.context, 64, 0x3f800000); /* 1 */
    return s;
}

static void reflect(const struct scene *s, bh_kernel *kernel) {
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_detail detail;
    if (bh_kernel_reflect(kernel, s->stream, FX_SECONDS, &info, &detail) != BH_OK) {
        BHT_FAIL("bh_kernel_reflect: %s", detail.message);
    }
}

/* |kernel| on x and y, with what it declares. */
static bh_status launch(const struct scene *s, bh_kernel *kernel, bh_access x, bh_access y,
                        bh_event **out_event, bh_detail *detail) {
    const struct {
        float a;
        uint32_t n;
    } push = {3, 64};
    const bh_binding bindings[] = {
        {.binding = 0, .buffer = s->x, .size = BH_WHOLE_SIZE, .access = x},
        {.binding = 1, .buffer = s->y, .size = BH_WHOLE_SIZE, .access = y},
    };
    return bh_launch(s->stream, kernel, (uint32_t[]){1, 1, 1}, bindings, 2,
                     kernel == s->saxpy ? &push : NULL, kernel == s->saxpy ? sizeof push : 0,
                     out_event, detail);
}

static bh_event *run(const struct scene *s, bh_kernel *kernel, bh_access x, bh_access y) {
    bh_event *event = NULL;
    bh_detail detail;
    if (launch(s, kernel, x, y, &event, &detail) != BH_OK) {
        BHT_FAIL("bh_launch: %s", detail.message);
    }
    return event;
}

/* With what the module declares. */
static bh_event *run_declared(const struct scene *s, bh_kernel *kernel) {
    return run(s, kernel, BH_ACCESS_DECLARED, BH_ACCESS_DECLARED);
}

static void refuses(const struct scene *s, bh_kernel *kernel, const char *words) {
    bh_event *event = NULL;
    bh_detail detail;
    BHT_EQ(launch(s, kernel, BH_ACCESS_DECLARED, BH_ACCESS_DECLARED, &event, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, words);
    BHT_TRUE(!event);
}

TEST(not_before_it_is_known) {
    struct scene s = set_up();
    refuses(&s, s.square, "set 0 binding 0: the declared access of kernel \"square\" is not known");
    bh_event *event = NULL;
    BHT_EQ(bh_kernel_prepare(s.square, s.stream, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    refuses(&s, s.square, "call bh_kernel_reflect first"); /* nobody has asked */
    reflect(&s, s.square);
    fx_expect(run_declared(&s, s.square), BH_OK);
    BHT_EQ(fx_pointer(s.y)[63], 0x40800000); /* 4 */
    bh_kernel *empty = fx_kernel(s.context, "empty");
    reflect(&s, empty);
    refuses(&s, empty, "kernel \"empty\" has no such binding");
}

/* Poisons a buffer: a kernel that does not end has it to write. */
static void poison(const struct scene *s, bh_buffer *buffer) {
    bh_event *event = fx_gate(s->stream, fx_kernel(s->context, "gate"), buffer);
    fx_await_gate(buffer);
    fx_kill(fx_ready(s->stream), SIGKILL);
    fx_expect(event, BH_WORKER_SIGNAL);
}

/* readonly: what is only read stays CLEAN where the submission is poisoned; and poison comes in. */
TEST(what_is_only_read) {
    struct scene s = set_up();
    reflect(&s, s.saxpy);
    poison(&s, s.y); /* which saxpy reads and writes */
    BHT_EQ(fx_expect(run_declared(&s, s.saxpy), BH_WORKER_SIGNAL).hops, 1);
    BHT_EQ(fx_content(s.x), BH_OK);
    BHT_EQ(fx_content(s.y), BH_WORKER_SIGNAL);
}

/* writeonly is no promise to overwrite: what was poisoned stays so, until a caller promises it. */
TEST(what_is_only_written) {
    struct scene s = set_up();
    reflect(&s, s.square);
    poison(&s, s.y);
    fx_expect(run_declared(&s, s.square), BH_OK);
    BHT_EQ(fx_content(s.y), BH_WORKER_SIGNAL);
    fx_expect(run(&s, s.square, BH_ACCESS_DECLARED, BH_ACCESS_WRITE), BH_OK);
    BHT_EQ(fx_content(s.y), BH_OK);
}

/* The caller may say less than the module does: y of saxpy, not decorated, given to read. */
TEST(narrowed_by_the_caller) {
    struct scene s = set_up();
    reflect(&s, s.saxpy);
    bh_event *event = run(&s, s.saxpy, BH_ACCESS_DECLARED, BH_ACCESS_READ);
    BHT_EQ(fx_expect(event, BH_BINDING_MISMATCH).executed, BH_EXECUTED_NO);
    BHT_EQ(fx_content(s.y), BH_OK);
    fx_expect(run_declared(&s, s.saxpy), BH_OK);
    BHT_EQ(fx_pointer(s.y)[0], 0x40e00000); /* 3 * 2 + 1 */
}

/* A BH_ACCESS_WRITE that cannot be kept would make what is there CLEAN: here it is known. */
TEST(overwriting_what_is_readonly) {
    struct scene s = set_up();
    bh_event *event = run(&s, s.square, BH_ACCESS_WRITE, BH_ACCESS_WRITE);
    BHT_STR_HAS(fx_expect(event, BH_BINDING_MISMATCH).message,
                "is bound for overwriting, but the kernel declares it readonly");
    BHT_EQ(fx_content(s.x), BH_BINDING_MISMATCH); /* it was to write it */
    event = run(&s, s.square, BH_ACCESS_READ_WRITE, BH_ACCESS_WRITE);
    fx_expect(event, BH_BINDING_MISMATCH); /* of what was poisoned before */
}

/* What is said of a poisoned content does not call a dependent's kernel by its origin's name. */
TEST(whose_kernel_it_was) {
    struct scene s = set_up();
    bh_detail detail;
    void *pointer;
    poison(&s, s.x);
    fx_expect(run(&s, s.square, BH_ACCESS_READ, BH_ACCESS_WRITE), BH_WORKER_SIGNAL);
    BHT_EQ(bh_buffer_map(s.x, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, " of stream a, kernel gate: ");
    BHT_EQ(bh_buffer_map(s.y, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, " of stream a: depends on event ");
    BHT_STR_HAS(detail.message, " (kernel gate)");
}

/* -- arrays of buffers ---------------------------------------------------------------------- */

/* pick.comp: sums[1] = sums[0] + data[which], with three and two buffers. */
static bh_event *launch_pick(const struct scene *s, bh_buffer *const data[3], bh_access first,
                             bh_access second, uint32_t last_element, bh_status status,
                             bh_detail *detail) {
    const bh_binding bindings[] = {
        {.binding = 2, .buffer = s->y, .size = BH_WHOLE_SIZE, .access = second, .element = 1},
        bh_bind_read(0, s->x),
        bh_bind_read(1, data[0]),
        {.binding = 1, .buffer = data[1], .size = BH_WHOLE_SIZE, .element = 1},
        {.binding = 1, .buffer = data[2], .size = BH_WHOLE_SIZE, .element = last_element},
        {.binding = 2, .buffer = data[0], .size = BH_WHOLE_SIZE, .access = first, .element = 0},
    };
    bh_event *event = NULL;
    BHT_EQ(
        bh_launch(s->stream, s->pick, (uint32_t[]){64, 1, 1}, bindings, 6, NULL, 0, &event, detail),
        status);
    BHT_EQ(!event, status != BH_OK);
    return event;
}

/* Callers print it: one line. */
TEST(the_name_of_a_binding_is_one_line) {
    struct scene s = set_up();
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_kernel *kernel = fx_kernel(s.context, "two_lines");
    BHT_EQ(bh_kernel_reflect(kernel, s.stream, FX_SECONDS, &info, NULL), BH_OK);
    BHT_EQ(info.binding_count, 1);
    BHT_STR_EQ(info.bindings[0].name, "first second");
}

TEST(elements_of_an_array) {
    struct scene s = set_up();
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_detail detail;
    BHT_EQ(bh_kernel_reflect(s.pick, s.stream, FX_SECONDS, &info, &detail), BH_OK);
    BHT_EQ(info.binding_count, 3);
    BHT_EQ(info.bindings[0].count, 1);
    BHT_EQ(info.bindings[1].count, 3);
    BHT_EQ(info.bindings[1].access, BH_ACCESS_READ);
    BHT_EQ(info.bindings[2].count, 2);
    BHT_EQ(info.bindings[2].access, BH_ACCESS_READ_WRITE);

    bh_buffer *data[3];
    for (uint32_t i = 0; i < 3; i++) {
        data[i] = fx_words(s.context, 64, 100 * (i + 1));
    }
    uint32_t *which = fx_pointer(s.x);
    for (uint32_t i = 0; i < 64; i++) { /* the last: out of range, and -1 */
        which[i] = i < 60 ? i % 3 : i < 62 ? 3 : UINT32_MAX;
    }
    const bh_access both = BH_ACCESS_READ_WRITE;
    fx_expect(launch_pick(&s, data, both, BH_ACCESS_DECLARED, 2, BH_OK, NULL), BH_OK);
    for (uint32_t i = 0; i < 64; i++) {
        BHT_EQ(fx_pointer(s.y)[i], 100 + 100 * ((i < 60 ? i % 3 : 2) + 1));
    }

    /* One of them is stored to: all of them have to be given to write. */
    bh_event *event = launch_pick(&s, data, BH_ACCESS_READ, both, 2, BH_OK, NULL);
    bh_verdict verdict = fx_expect(event, BH_BINDING_MISMATCH);
    BHT_EQ(verdict.reason, BH_REASON_BINDING_WRITTEN);
    BHT_EQ(verdict.subject, BH_SUBJECT_BINDING);
    BHT_STR_EQ(verdict.subject_name, "set 0 binding 2 element 0 (\"sums\")");
    event = launch_pick(&s, data, both, BH_ACCESS_WRITE, 7, BH_OK, NULL);
    verdict = fx_expect(event, BH_BINDING_MISMATCH);
    BHT_STR_HAS(verdict.message, "set 0 binding 1 element 7 (\"data\") was given, but "
                                 "kernel \"pick\" has 3 there");
    launch_pick(&s, data, both, BH_ACCESS_WRITE, 1, BH_INVALID_ARGUMENT, &detail);
    BHT_STR_HAS(detail.message, "set 0 binding 1 element 1 is given twice");
    launch_pick(&s, data, both, BH_ACCESS_WRITE, 256, BH_INVALID_ARGUMENT, &detail);
    BHT_STR_HAS(detail.message,
                "set 0 binding 1 element 256: an array of buffers has 256 elements");
}

/* Launches square with one more binding, which it does not declare. */
static bh_status launch_extra(const struct scene *s, const bh_binding *extra, bh_event **out_event,
                              bh_detail *detail) {
    bh_binding bindings[] = {*extra, bh_bind_read(0, s->x), bh_bind_write(1, s->y)};
    bindings[2].access |= BH_ACCESS_OPTIONAL;
    return bh_launch(s->stream, s->square, (uint32_t[]){1, 1, 1}, bindings, 3, NULL, 0, out_event,
                     detail);
}

static void expect_extra(const struct scene *s, const bh_binding *extra, bh_status status) {
    bh_event *event = NULL;
    bh_detail detail;
    if (launch_extra(s, extra, &event, &detail) != BH_OK) {
        BHT_FAIL("bh_launch: %s", detail.message);
    }
    fx_expect(event, status);
}

TEST(an_optional_binding_may_be_undeclared) {
    struct scene s = set_up();
    bh_buffer *other = fx_words(s.context, 64, 0);
    bh_binding extra = bh_bind_read(7, other);
    expect_extra(&s, &extra, BH_BINDING_MISMATCH);
    extra.access |= BH_ACCESS_OPTIONAL;
    expect_extra(&s, &extra, BH_OK);
    BHT_EQ(fx_content(s.y), BH_BINDING_MISMATCH); /* nobody knows that it was overwritten */
    reflect(&s, s.square);
    expect_extra(&s, &extra, BH_OK);
    BHT_EQ(fx_pointer(s.y)[0], 0x40800000); /* 2 * 2: what is declared and optional is bound */
    extra.binding = 0;
    extra.element = 3; /* of what is no array */
    expect_extra(&s, &extra, BH_OK);
    extra.access = BH_ACCESS_READ;
    expect_extra(&s, &extra, BH_BINDING_MISMATCH);
    /* The command depends on it as on any other. */
    extra = bh_bind_read(7, s.y);
    extra.access |= BH_ACCESS_OPTIONAL;
    BHT_EQ(fx_content(s.y), BH_BINDING_MISMATCH);
    expect_extra(&s, &extra, BH_BINDING_MISMATCH);
    /* What the kernel does not declare it has not overwritten (B5). */
    extra.buffer = other;
    extra.access = BH_ACCESS_WRITE | BH_ACCESS_OPTIONAL;
    poison(&s, other);
    expect_extra(&s, &extra, BH_OK);
    BHT_EQ(fx_content(other), BH_WORKER_SIGNAL);
}

TEST(an_optional_binding_is_checked) {
    struct scene s = set_up();
    bh_event *event = NULL;
    bh_detail detail;
    bh_binding extra = {.binding = 7, .buffer = s.x, .size = BH_WHOLE_SIZE, .access = 8};
    BHT_EQ(launch_extra(&s, &extra, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "access 8 is not a bh_access");
    reflect(&s, s.square);
    extra.access = BH_ACCESS_DECLARED;
    BHT_EQ(launch_extra(&s, &extra, &event, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "has no such binding");
    extra.access = BH_ACCESS_DECLARED | BH_ACCESS_OPTIONAL;
    expect_extra(&s, &extra, BH_OK);
}
