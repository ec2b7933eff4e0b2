/* A template: what the caller gave, and the kernels made from it so far. The template owns them;
 * its own lock guards them. */
#ifndef BHI_SUPERVISOR_COMPILE_TEMPLATE_H
#define BHI_SUPERVISOR_COMPILE_TEMPLATE_H

#include "base/list.h"
#include "core/handle.h"
#include "templates/shape.h"
#include "templates/signature.h"
#include <bulkhead/bulkhead.h>
#include <bulkhead/template.h>
#include <pthread.h>

struct bh_template {
    struct bhi_handle handle; /* the caller's references, and those of calls that use it */
    bh_context *context;      /* referenced */
    struct bhi_form form;
    char name[64];
    bool trusted;
    uint64_t compile_deadline_ns;
    uint32_t capacity;
    pthread_mutex_t lock; /* guards what follows; never held during a compile */
    pthread_cond_t changed;
    struct bhi_list variants; /* the most recently used first */
    uint32_t variant_count;
};

/* -- template_variants.c ----------------------------------------------------------------------- */

/* Reports a template's complaint, BH_INVALID_ARGUMENT or BH_NO_MEMORY, as |call|'s failure. */
bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail);
/* Returns the kernel of a variant, with a reference for the caller. Blocks if it must be compiled.
 */
bh_status bhi_template_kernel(struct bh_template *t, const struct bhi_variant *variant,
                              const char *call, bh_kernel **out_kernel, bh_detail *detail);
void bhi_template_drop_variants(struct bh_template *t);

/* -- template_arguments.c ---------------------------------------------------------------------- */

/* A launch's arguments, in the order of the parameters. */
struct bhi_bound {
    const bh_argument *arguments[BHI_MAX_PARAMETERS]; /* NULL: an output that is not made yet */
    struct bhi_shape shapes[BHI_MAX_PARAMETERS];      /* of the arrays that exist */
    uint64_t offsets[BHI_MAX_PARAMETERS];
    struct bhi_variant variant;
    struct bhi_constants push;
    struct bhi_shape shape; /* of the outputs, unless the template is a grid */
    struct bhi_axes axes;   /* of what the inputs join to */
    uint64_t length;        /* of a reduction: elements for each result */
};

/* |complete|: outputs must not be missing. */
bh_status bhi_template_bind(const struct bh_template *t, const bh_argument *arguments,
                            uint32_t count, bool complete, const char *call,
                            struct bhi_bound *out_bound, bh_detail *detail);
/* Fills in all of the command except its kernel. */
bh_status bhi_template_command(const struct bh_template *t, const struct bhi_bound *bound,
                               const uint32_t *groups, const char *call, bh_template_call *out_call,
                               bh_detail *detail);
bh_status bhi_template_describe(const struct bh_template *t, const struct bhi_bound *bound,
                                const char *name, const char *call, bh_description *out,
                                bh_detail *detail);

#endif
