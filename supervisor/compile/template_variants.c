/* The kernels of a template, one for each variant. At most |capacity| are kept, and more only while
 * threads compile or fetch them. */
#include "base/detail.h"
#include "supervisor/compile/template.h"
#include "supervisor/context/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A variant is COMPILING, and in the list. Then it is READY, and in the list until it is evicted,
 * or FAILED, and not in the list. It exists while it is in the list or a thread uses it. */
struct entry {
    struct bhi_list link;
    struct bhi_variant variant;
    enum { COMPILING, READY, FAILED } state;
    bool listed;
    uint32_t users; /* number of threads that use it */
    bh_kernel *kernel;
    bh_status status;
    bh_detail detail;
};

bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail) {
    return BHI_FAIL(detail, call, complaint->memory ? BH_REASON_MEMORY : BH_REASON_TEMPLATE,
                    .text = complaint->text);
}

static struct entry *find(const struct bh_template *t, const struct bhi_variant *variant) {
    BHI_LIST_FOR(struct entry, entry, &t->variants, link) {
        if (!memcmp(&entry->variant, variant, sizeof *variant)) {
            return entry;
        }
    }
    return NULL;
}

/* Lock held. */
static void unlist(struct bh_template *t, struct entry *entry) {
    bhi_list_remove(&entry->link);
    entry->listed = false;
    t->variant_count--;
}

static void free_unused(struct entry *entry) {
    if (entry->listed || entry->users) {
        return;
    }
    bh_kernel_release(entry->kernel);
    free(entry);
}

/* Lock held. If there are too many variants, evicts the least recently used ones that no thread
 * uses. */
static void evict(struct bh_template *t) {
    struct bhi_list *node = t->variants.prev;
    while (t->variant_count > t->capacity && node != &t->variants) {
        struct entry *entry = BHI_CONTAINER(node, struct entry, link);
        node = node->prev;
        if (entry->users || entry->state == COMPILING) {
            continue;
        }
        unlist(t, entry);
        free_unused(entry);
    }
}

static bh_status compile(struct bh_template *t, const struct bhi_variant *variant, const char *call,
                         bh_kernel **out_kernel, bh_detail *detail) {
    struct bhi_complaint complaint;
    struct bhi_pen pen = {0};
    bh_source source;
    bh_kernel_options options;
    bh_status status = BH_OK;
    if (!bhi_form_write(&t->form, variant, &pen, &complaint)) {
        status = bhi_template_fail(&complaint, call, detail);
    }
    if (status == BH_OK) {
        source = (bh_source){.struct_size = sizeof(bh_source)};
        source.text = pen.text;
        source.name = t->form.name;
        source.deadline_ns = t->compile_deadline_ns;
        /* The optimiser would remove what does not affect the result, such as the input of "x*0"
         * and its binding. Then the caller's bindings would not fit the kernel. Drivers optimise
         * the module anyway. */
        source.unoptimized = true;
        options = (bh_kernel_options){.struct_size = sizeof(bh_kernel_options)};
        options.name = t->name;
        options.trusted = t->trusted;
        status = bh_kernel_create_source(t->context, &source, &options, out_kernel, detail);
    }
    bhi_pen_fini(&pen);
    return status;
}

static struct entry *add(struct bh_template *t, const struct bhi_variant *variant) {
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        return NULL;
    }
    entry->variant = *variant;
    entry->listed = true;
    bhi_list_insert_before(t->variants.next, &entry->link);
    t->variant_count++;
    return entry;
}

/* Compiles the variant of |entry|. Lock held, but released during the compile. */
static void fill(struct bh_template *t, struct entry *entry, const char *call) {
    bh_kernel *kernel = NULL;
    bh_detail detail = {0};
    pthread_mutex_unlock(&t->lock);
    const bh_status status = compile(t, &entry->variant, call, &kernel, &detail);
    pthread_mutex_lock(&t->lock);
    entry->state = status == BH_OK ? READY : FAILED;
    entry->kernel = kernel;
    entry->status = status;
    entry->detail = detail;
    if (status != BH_OK) {
        unlist(t, entry);
    }
    pthread_cond_broadcast(&t->changed);
}

bh_status bhi_template_kernel(struct bh_template *t, const struct bhi_variant *variant,
                              const char *call, bh_kernel **out_kernel, bh_detail *detail) {
    *out_kernel = NULL;
    pthread_mutex_lock(&t->lock);
    struct entry *entry = find(t, variant);
    bh_status status = entry && entry->state == READY ? BH_OK : bhi_callback_check(call, detail);
    if (status == BH_OK && !entry) {
        entry = add(t, variant);
        if (!entry) {
            status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
        } else {
            entry->users++, fill(t, entry, call), entry->users--;
        }
    }
    if (status == BH_OK) {
        entry->users++;
        while (entry->state == COMPILING) {
            pthread_cond_wait(&t->changed, &t->lock);
        }
        status = entry->status;
        if (status != BH_OK && detail) {
            *detail = entry->detail;
        }
        if (status == BH_OK) {
            *out_kernel = entry->kernel;
            bh_kernel_retain(entry->kernel);
            if (entry->listed) {
                bhi_list_remove(&entry->link);
                bhi_list_insert_before(t->variants.next, &entry->link);
            }
        }
        entry->users--;
        free_unused(entry);
        evict(t);
    }
    pthread_mutex_unlock(&t->lock);
    return status;
}

void bhi_template_drop_variants(struct bh_template *t) {
    while (!bhi_list_empty(&t->variants)) {
        struct entry *entry = BHI_CONTAINER(t->variants.next, struct entry, link);
        unlist(t, entry);
        free_unused(entry);
    }
}
