/* Negative controls: each thing that the guard takes care of is undone in a guarded module, and the
 * validator must refuse what is left. Where it did not, a test that passes would prove nothing. */
#include "stand.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A loop whose header's only phi comes from the entry block, and whose merge block has a phi of the
 * block that the poll splits. */
static const char body[] = "%pa = OpAccessChain %p_uint %out %u_0 %u_0\nOpBranch %h\n"
                           "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                           "%v = OpLoad %uint %pa\n%c = OpINotEqual %bool %i %v\n"
                           "OpLoopMerge %m %k None\nOpBranchConditional %c %b %m\n"
                           "%b = OpLabel\nOpBranch %k\n"
                           "%k = OpLabel\n%i2 = OpIAdd %uint %i %u_2\nOpBranch %h\n"
                           "%m = OpLabel\n%x = OpPhi %uint %i %h\nOpStore %pa %x\nOpReturn\n";

struct words {
    uint32_t *code;
    size_t count;
};

static uint32_t *next(const struct words *w, uint32_t *from, SpvOp op) {
    uint32_t *at = !from ? w->code + 5 : from + (from[0] >> SpvWordCountShift);
    while (at < w->code + w->count && (at[0] & SpvOpCodeMask) != (uint32_t)op) {
        at += at[0] >> SpvWordCountShift;
    }
    return at < w->code + w->count ? at : NULL;
}

static uint32_t named(const struct words *w, const char *name) {
    for (uint32_t *at = NULL; (at = next(w, at, SpvOpName));) {
        if (strcmp((const char *)&at[2], name) == 0) {
            return at[1];
        }
    }
    BHT_FAIL("nothing is named %s", name);
    return 0;
}

static void cut_out(struct words *w, uint32_t *at) {
    const size_t length = at[0] >> SpvWordCountShift, offset = (size_t)(at - w->code);
    memmove(at, at + length, (w->count - offset - length) * sizeof *at);
    w->count -= length;
}

static uint32_t *decoration(const struct words *w, uint32_t id, SpvDecoration decoration) {
    for (uint32_t *at = NULL; (at = next(w, at, SpvOpDecorate));) {
        if (at[1] == id && at[2] == (uint32_t)decoration) {
            return at;
        }
    }
    return NULL;
}

/* The block whose label is |id|. */
static uint32_t *block(const struct words *w, uint32_t id) {
    for (uint32_t *at = NULL; (at = next(w, at, SpvOpLabel));) {
        if (at[1] == id) {
            return at;
        }
    }
    return NULL;
}

static void undo_block(struct words *w) {
    cut_out(w, decoration(w, named(w, "bulkhead_words"), SpvDecorationBlock));
}

static void undo_set(struct words *w) {
    cut_out(w, decoration(w, named(w, "bulkhead_guard"), SpvDecorationDescriptorSet));
}

static void undo_offset(struct words *w) {
    const uint32_t id = named(w, "bulkhead_words");
    for (uint32_t *at = NULL; (at = next(w, at, SpvOpMemberDecorate));) {
        if (at[1] == id && at[3] == SpvDecorationOffset) {
            cut_out(w, at);
            return;
        }
    }
}

static void undo_interface(struct words *w) {
    const uint32_t id = named(w, "bulkhead_guard");
    uint32_t *at = next(w, NULL, SpvOpEntryPoint);
    for (uint32_t i = 3; i < at[0] >> SpvWordCountShift; i++) {
        if (at[i] == id) {
            memmove(&at[i], &at[i + 1], (size_t)(w->code + w->count - &at[i + 1]) * sizeof *at);
            at[0] -= 1u << SpvWordCountShift;
            w->count--;
            return;
        }
    }
}

/* The merge of the poll's selection. */
static void undo_merge(struct words *w) {
    cut_out(w, next(w, block(w, named(w, "bulkhead_poll")), SpvOpSelectionMerge));
}

/* The header's phi says again that the entry block leads to it. */
static void undo_entry_phi(struct words *w) {
    uint32_t *entry = next(w, NULL, SpvOpLabel);
    next(w, NULL, SpvOpPhi)[4] = entry[1];
}

/* The merge block's phi says again that the header leads to it. */
static void undo_exit_phi(struct words *w) {
    uint32_t *header = next(w, NULL, SpvOpPhi);
    uint32_t *last = next(w, header, SpvOpPhi);
    while (next(w, last, SpvOpPhi)) {
        last = next(w, last, SpvOpPhi);
    }
    /* The header's label stands before its phi. */
    last[4] = header[-1];
}

static bool valid(const struct words *w) {
    struct bhi_error error;
    return bhi_validate(&stand_device, w->code, w->count, "main", &error);
}

TEST(test_what_is_undone_is_refused) {
    static const struct {
        const char *what;
        void (*undo)(struct words *w);
    } controls[] = {
        {"Block", undo_block},
        {"DescriptorSet", undo_set},
        {"Offset", undo_offset},
        {"interface", undo_interface},
        {"merge of the poll", undo_merge},
        {"phi behind the entry", undo_entry_phi},
        {"phi behind the header", undo_exit_phi},
    };
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        struct stand_module module = stand_compute("", body, "", 4);
        struct bhi_guarded guarded = stand_guard(&module);
        BHT_EQ(guarded.polled, 1);
        struct words w = {guarded.code, guarded.words};
        BHT_TRUE(valid(&w));
        controls[i].undo(&w);
        if (valid(&w)) {
            char *text = stand_text(w.code, w.count);
            fprintf(stderr, "%s\n", text);
            BHT_FAIL("valid without: %s", controls[i].what);
        }
    }
}

/* A loop in the continue construct of another: |inner| is its body, from %h2 to a branch to %m2. */
static struct stand_module in_continue(const char *inner) {
    static const char head[] = "%pa = OpAccessChain %p_uint %out %u_0 %u_0\n"
                               "%v = OpLoad %uint %pa\nOpBranch %h\n"
                               "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %m2\n"
                               "%c = OpULessThan %bool %i %v\nOpLoopMerge %m %k None\n"
                               "OpBranchConditional %c %b %m\n"
                               "%b = OpLabel\nOpBranch %k\n"
                               "%k = OpLabel\nOpBranch %h2\n";
    static const char tail[] = "%m2 = OpLabel\n%i2 = OpIAdd %uint %i %u_1\nOpBranch %h\n"
                               "%m = OpLabel\nOpReturn\n";
    char text[2048];
    strcpy(text, head);
    strcat(text, inner);
    strcat(text, tail);
    return stand_compute("", text, "", 3);
}

/* Of one block; with a test at its head; with a test at its end. */
static const char one_block[] = "%h2 = OpLabel\n%j = OpPhi %uint %u_0 %k %j2 %h2\n"
                                "%j2 = OpIAdd %uint %j %u_1\n%c2 = OpINotEqual %bool %j2 %v\n"
                                "OpLoopMerge %m2 %h2 None\nOpBranchConditional %c2 %h2 %m2\n";
static const char test_first[] = "%h2 = OpLabel\n%j = OpPhi %uint %u_0 %k %j2 %k2\n"
                                 "%c2 = OpUGreaterThan %bool %j %v\nOpLoopMerge %m2 %k2 None\n"
                                 "OpBranchConditional %c2 %m2 %b2\n"
                                 "%b2 = OpLabel\nOpBranch %k2\n"
                                 "%k2 = OpLabel\n%j2 = OpIAdd %uint %j %u_1\nOpBranch %h2\n";
static const char test_last[] = "%h2 = OpLabel\n%j = OpPhi %uint %u_0 %k %j2 %k2\n"
                                "OpLoopMerge %m2 %k2 None\nOpBranch %b2\n"
                                "%b2 = OpLabel\nOpStore %pa %j\nOpBranch %k2\n"
                                "%k2 = OpLabel\n%j2 = OpIAdd %uint %j %u_1\n"
                                "%c2 = OpINotEqual %bool %j2 %v\nOpBranchConditional %c2 %h2 %m2\n";
/* Left only on a way that not every iteration takes. */
static const char no_exit[] = "%h2 = OpLabel\nOpLoopMerge %m2 %k2 None\nOpBranch %b2\n"
                              "%b2 = OpLabel\n%w = OpLoad %uint %pa\n"
                              "%c2 = OpINotEqual %bool %w %u_0\nOpSelectionMerge %z2 None\n"
                              "OpBranchConditional %c2 %y2 %z2\n"
                              "%y2 = OpLabel\n%c3 = OpINotEqual %bool %w %u_1\n"
                              "OpBranchConditional %c3 %m2 %z2\n"
                              "%z2 = OpLabel\nOpBranch %k2\n"
                              "%k2 = OpLabel\nOpBranch %h2\n";

TEST(test_loops_in_a_continue_construct) {
    static const char *const loops[] = {one_block, test_first, test_last};
    for (int cut = 0; cut < 2; cut++) {
        for (size_t i = 0; i < 3; i++) {
            struct stand_module module = in_continue(loops[i]);
            const struct bhi_guard_options options = {
                .entry = "main", .max_sets = 8, .count_iterations = cut == 1};
            struct bhi_guarded guarded = stand_guard_with(&module, &options);
            BHT_EQ(guarded.polled, 2); /* never covered, nor lowered, nor that around it */
        }
    }
}

TEST(test_no_way_out_of_a_continue_construct) {
    struct stand_module module = in_continue(no_exit);
    stand_refuses(&module, BH_INVALID_KERNEL, "continue construct");
}

/* Why it is not simply a return. */
TEST(test_a_return_in_a_continue_construct_is_refused) {
    struct stand_module module = in_continue("%h2 = OpLabel\nOpSelectionMerge %m2 None\n"
                                             "OpBranchConditional %c %b2 %m2\n"
                                             "%b2 = OpLabel\nOpReturn\n");
    const struct words w = {module.code, module.words};
    BHT_TRUE(!valid(&w));
}
