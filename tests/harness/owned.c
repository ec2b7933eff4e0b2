/* What a test makes through the API is the fixture's: what the test has not released itself is
 * released after it, the last one first. The linker puts these calls in place of the library's. */
#include "../hostile/wrap.h"
#include "fixture.h"

#include <bulkhead/queue.h>
#include <bulkhead/source.h>
#include <pthread.h>
#include <unistd.h>

enum kind { CONTEXT, QUEUE, STREAM, BUFFER, EVENT, KERNEL, MODULE, TEMPLATE };

/* In the order in which they were made. Those of the process that made them only: a fork owns none. */
static struct {
    pthread_mutex_t lock;
    pid_t pid;
    struct owned {
        void *object;
        enum kind kind;
    } *list;
    size_t count, capacity;
} owned = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_own(void) {
    pthread_mutex_lock(&owned.lock);
    if (owned.pid != getpid()) {
        owned.pid = getpid();
        owned.count = 0;
    }
}

/* The last one on the list, or NULL. Lock held. */
static struct owned *find(const void *object) {
    size_t i = owned.count;
    while (i > 0 && owned.list[i - 1].object != object) {
        i--;
    }
    return i > 0 ? &owned.list[i - 1] : NULL;
}

/* Takes it from the list, if it is there. */
static void disown(const void *object) {
    lock_own();
    struct owned *one = find(object);
    if (one) {
        const size_t behind = (size_t)(owned.list + owned.count - one) - 1;
        memmove(one, one + 1, behind * sizeof *one);
        owned.count--;
    }
    pthread_mutex_unlock(&owned.lock);
}

/* The makers that this thread is in: what one makes for another, inside the library, is not the
 * test's. */
static _Thread_local unsigned depth;
#define MAKE(call)                                                                                 \
    ({                                                                                             \
        depth++;                                                                                   \
        const bh_status made = (call);                                                             \
        depth--;                                                                                   \
        made;                                                                                      \
    })

/* What MAKE has made; another reference to it may be on the list. Returns |status|. */
static bh_status own(bh_status status, enum kind kind, void *object) {
    if (status != BH_OK || !object || depth > 0) {
        return status;
    }
    lock_own();
    if (owned.count == owned.capacity) {
        owned.capacity = owned.capacity ? 2 * owned.capacity : 64;
        owned.list = realloc(owned.list, owned.capacity * sizeof *owned.list);
        BHT_TRUE(owned.list);
    }
    owned.list[owned.count++] = (struct owned){object, kind};
    pthread_mutex_unlock(&owned.lock);
    return status;
}

/* Another reference to what is on the list. A handle that is dead is not. */
static void own_again(void *object) {
    lock_own();
    const struct owned *one = find(object);
    const struct owned again = one ? *one : (struct owned){0};
    pthread_mutex_unlock(&owned.lock);
    own(BH_OK, again.kind, again.object);
}

/* Its wrapper takes it from the list. */
static void release(const struct owned *one) {
    switch (one->kind) {
    case CONTEXT:
        BHT_EQ(bh_context_destroy(one->object), BH_OK);
        break;
    case QUEUE:
        bh_queue_destroy(one->object);
        break;
    case STREAM:
        bh_stream_release(one->object);
        break;
    case BUFFER:
        bh_buffer_release(one->object);
        break;
    case EVENT:
        bh_event_release(one->object);
        break;
    case KERNEL:
        bh_kernel_release(one->object);
        break;
    case MODULE:
        bh_module_release(one->object);
        break;
    case TEMPLATE:
        bh_template_release(one->object);
        break;
    }
}

void fx_release_all(void) {
    lock_own();
    while (owned.count > 0) {
        const struct owned last = owned.list[owned.count - 1];
        pthread_mutex_unlock(&owned.lock);
        release(&last);
        lock_own();
    }
    free(owned.list);
    owned.list = NULL;
    owned.capacity = 0;
    pthread_mutex_unlock(&owned.lock);
}

static void (*last_check)(void);

void fx_end_with(void (*end)(void)) {
    last_check = end;
}

static void end_test(void) {
    if (last_check) {
        last_check();
    }
    fx_release_all();
}

BHT_AT_START(bht_end_with(end_test))

/* -- what is called in place of the library's functions ----------------------------------------- */

WRAP(bh_status, bh_context_destroy, bh_context *context) {
    /* Still described while it closes: that can hang, too. */
    const bh_status status = __real_bh_context_destroy(context);
    if (context && status == BH_OK) {
        fx_forget_context(context);
        disown(context);
    }
    return status;
}

WRAP(void, bh_buffer_retain, bh_buffer *buffer) {
    __real_bh_buffer_retain(buffer);
    own_again(buffer);
}

WRAP(void, bh_buffer_release, bh_buffer *buffer) {
    disown(buffer);
    __real_bh_buffer_release(buffer);
}

WRAP(void, bh_event_retain, bh_event *event) {
    __real_bh_event_retain(event);
    own_again(event);
}

WRAP(void, bh_event_release, bh_event *event) {
    disown(event);
    __real_bh_event_release(event);
}

WRAP(void, bh_kernel_retain, bh_kernel *kernel) {
    __real_bh_kernel_retain(kernel);
    own_again(kernel);
}

WRAP(void, bh_kernel_release, bh_kernel *kernel) {
    disown(kernel);
    __real_bh_kernel_release(kernel);
}

WRAP(void, bh_module_retain, bh_module *module) {
    __real_bh_module_retain(module);
    own_again(module);
}

WRAP(void, bh_module_release, bh_module *module) {
    disown(module);
    __real_bh_module_release(module);
}

WRAP(void, bh_queue_destroy, bh_queue *queue) {
    disown(queue);
    __real_bh_queue_destroy(queue);
}

WRAP(void, bh_stream_retain, bh_stream *stream) {
    __real_bh_stream_retain(stream);
    own_again(stream);
}

WRAP(void, bh_stream_release, bh_stream *stream) {
    disown(stream);
    __real_bh_stream_release(stream);
}

WRAP(void, bh_template_retain, bh_template *template_) {
    __real_bh_template_retain(template_);
    own_again(template_);
}

WRAP(void, bh_template_release, bh_template *template_) {
    disown(template_);
    __real_bh_template_release(template_);
}

WRAP(bh_status, bh_context_create, const bh_context_options *options, bh_context **out,
     bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_context_create(options, out, detail));
    return own(status, CONTEXT, out ? *out : NULL);
}

WRAP(bh_status, bh_stream_create, bh_context *context, const bh_stream_options *options,
     bh_stream **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_stream_create(context, options, out, detail));
    return own(status, STREAM, out ? *out : NULL);
}

WRAP(bh_status, bh_buffer_create, bh_context *context, uint64_t size,
     const bh_buffer_options *options, bh_buffer **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_buffer_create(context, size, options, out, detail));
    return own(status, BUFFER, out ? *out : NULL);
}

WRAP(bh_status, bh_buffer_load_event, bh_buffer *buffer, bh_event **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_buffer_load_event(buffer, out, detail));
    return own(status, EVENT, out ? *out : NULL);
}

WRAP(bh_status, bh_kernel_create_spirv, bh_context *context, const void *code, size_t size,
     const bh_kernel_options *options, bh_kernel **out, bh_detail *detail) {
    const bh_status status =
        MAKE(__real_bh_kernel_create_spirv(context, code, size, options, out, detail));
    return own(status, KERNEL, out ? *out : NULL);
}

WRAP(bh_status, bh_kernel_create_image, bh_context *context, const void *image, size_t size,
     const bh_kernel_options *options, bh_kernel **out, bh_detail *detail) {
    const bh_status status =
        MAKE(__real_bh_kernel_create_image(context, image, size, options, out, detail));
    return own(status, KERNEL, out ? *out : NULL);
}

WRAP(bh_status, bh_kernel_create_source, bh_context *context, const bh_source *source,
     const bh_kernel_options *options, bh_kernel **out, bh_detail *detail) {
    const bh_status status =
        MAKE(__real_bh_kernel_create_source(context, source, options, out, detail));
    return own(status, KERNEL, out ? *out : NULL);
}

WRAP(bh_status, bh_kernel_prepare, bh_kernel *kernel, bh_stream *stream, bh_event **out,
     bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_kernel_prepare(kernel, stream, out, detail));
    return own(status, EVENT, out ? *out : NULL);
}

WRAP(bh_status, bh_module_kernel, bh_module *module, const bh_kernel_options *options,
     bh_kernel **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_module_kernel(module, options, out, detail));
    return own(status, KERNEL, out ? *out : NULL);
}

WRAP(bh_status, bh_queue_create, bh_queue **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_queue_create(out, detail));
    return own(status, QUEUE, out ? *out : NULL);
}

WRAP(bh_status, bh_queue_take, bh_queue *queue, uint64_t timeout_ns, bh_completion *out,
     size_t capacity, size_t *count) {
    const bh_status status = __real_bh_queue_take(queue, timeout_ns, out, capacity, count);
    for (size_t i = 0; status == BH_OK && i < *count; i++) {
        own(status, EVENT, out[i].event);
    }
    return status;
}

WRAP(bh_status, bh_submit, bh_stream *stream, const bh_submit_info *info, bh_event **out,
     bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_submit(stream, info, out, detail));
    return own(status, EVENT, out ? *out : NULL);
}

WRAP(bh_status, bh_launch, bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
     const bh_binding *bindings, uint32_t count, const void *push, uint32_t push_size,
     bh_event **out, bh_detail *detail) {
    const bh_status status = MAKE(
        __real_bh_launch(stream, kernel, groups, bindings, count, push, push_size, out, detail));
    return own(status, EVENT, out ? *out : NULL);
}

WRAP(bh_status, bh_template_create, bh_context *context, const bh_template_options *options,
     bh_template **out, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_template_create(context, options, out, detail));
    return own(status, TEMPLATE, out ? *out : NULL);
}

WRAP(bh_status, bh_template_launch, bh_stream *stream, bh_template *template_,
     const bh_argument *arguments, uint32_t count, const uint32_t *groups, bh_event **out,
     bh_detail *detail) {
    const bh_status status =
        MAKE(__real_bh_template_launch(stream, template_, arguments, count, groups, out, detail));
    return own(status, EVENT, out ? *out : NULL);
}

WRAP(bh_status, bh_module_compile, bh_context *context, const bh_source *source, bh_module **out,
     bh_event **event, bh_detail *detail) {
    const bh_status status = MAKE(__real_bh_module_compile(context, source, out, event, detail));
    own(status, MODULE, out ? *out : NULL);
    return own(status, EVENT, event ? *event : NULL);
}
