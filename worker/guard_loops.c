#include "guard_internal.h"

#include <bulkhead/bulkhead.h>

static void guard_function(struct bhi_guard *g, struct bhi_function *function) {
    bhi_cfg_build(&g->ir, function);
    /* Inner loops first: they stand behind their outer ones. */
    for (uint32_t i = function->loop_count; i-- > 0;) {
        struct bhi_loop *loop = function->loops[i];
        loop->weight = 1;
        if (loop->in_continue) {
            bhi_ir_refuse(&g->ir, BH_INVALID_KERNEL,
                          "the loop at %s stands in the continue construct of another, from which "
                          "the guard cannot return; move it into the other's body, or mark the "
                          "kernel trusted",
                          bhi_ir_describe(&g->ir, SpvOpLabel, loop->header->label));
        }
        bhi_guard_poll(g, loop);
        g->out->polled++;
    }
    g->out->loops += function->loop_count;
}

void bhi_guard_loops(struct bhi_guard *g) {
    for (struct bhi_function *f = g->ir.first; f != NULL; f = f->next) {
        guard_function(g, f);
    }
}
