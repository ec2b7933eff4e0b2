#include "supervisor/load/loaders.h"
#include "base/detail.h"
#include "core/worker.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"

#include <stdio.h>
#include <string.h>

#define LOADERS 4 /* loaders of a tenant for data; one more reads headers when all are busy */
#define MEMORY  (1ull << 30) /* far more than parsing any header takes */

static struct bh_stream *stream_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bh_stream, loader);
}

static bool idle(const struct bh_stream *stream) {
    return bhi_list_empty(&stream->core.queue) &&
           (!stream->core.worker || bhi_list_empty(&stream->core.worker->inflight));
}

/* The loaders of one tenant. */
struct own {
    uint32_t count;               /* for data */
    struct bh_stream *idle;       /* one of the tenant's loaders, or NULL */
    struct bh_stream *next;       /* the loader whose turn was longest ago */
    struct bh_stream *of_headers; /* or NULL */
};

/* Lock held. */
static struct own look(bh_context *context, const char *tenant) {
    struct own own = {0};
    BHI_LIST_EACH(node, &context->loaders) {
        struct bh_stream *stream = stream_of(node);
        if (strcmp(stream->tenant, tenant) != 0) {
            continue;
        }
        if (stream->headers_only) {
            own.of_headers = stream;
            continue;
        }
        own.next = own.count++ ? own.next : stream;
        own.idle = !own.idle && idle(stream) ? stream : own.idle;
    }
    return own;
}

/* Lock held. Returns an idle loader. If the tenant has LOADERS and all are busy, returns the next
 * one in turn for data, and the one for headers for a |header|: a thread waits for a header, and
 * the data before it could take any time. NULL: a loader is to be made. */
static struct bh_stream *find(bh_context *context, const char *tenant, bool header) {
    const struct own own = look(context, tenant);
    if (own.idle || own.count < LOADERS) {
        return own.idle;
    }
    if (header) {
        return own.of_headers;
    }
    bhi_list_remove(&own.next->loader);
    bhi_list_append(&context->loaders, &own.next->loader);
    return own.next;
}

/* Lock held. Removes the loader from the list and drops the list's reference. A thread that has
 * just picked the loader has a reference of its own. */
static void drop(struct bh_stream *stream) {
    bhi_list_remove(&stream->loader);
    bhi_stream_unref_locked(stream);
}

/* Lock held. If there are LOADERS or more, drops an idle one of another tenant. So tenants that
 * load one after the other need no more loaders than a single tenant; tenants that load at the same
 * time still have loaders of their own. Returns the number of loaders that remain. */
static uint32_t make_place(bh_context *context, const char *tenant) {
    uint32_t count = 0;
    struct bh_stream *unused = NULL;
    BHI_LIST_EACH(node, &context->loaders) {
        struct bh_stream *stream = stream_of(node);
        count++;
        if (!unused && strcmp(stream->tenant, tenant) != 0 && idle(stream)) {
            unused = stream;
        }
    }
    if (unused && count >= LOADERS) {
        drop(unused);
        count--;
    }
    return count;
}

/* Lock held. Adds |made| to the list, which takes over its first reference, if the tenant may have
 * another loader. Returns false otherwise, and if the context is closed. */
static bool keep(bh_context *context, bool header, struct bh_stream *made) {
    const struct own own = look(context, made->tenant);
    if (context->closed || (own.count >= LOADERS && (!header || own.of_headers))) {
        return false;
    }
    made->headers_only = own.count >= LOADERS;
    bhi_list_append(&context->loaders, &made->loader);
    return true;
}

static bh_status make(bh_context *context, const char *tenant, const char *call,
                      struct bh_stream **out_made, bh_detail *detail) {
    char name[32];
    bhi_context_lock(context);
    snprintf(name, sizeof name, "loader-%u", make_place(context, tenant) + 1);
    bhi_context_pump_unlock(context);
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = name;
    options.tenant = tenant;
    options.memory_limit = MEMORY;
    return bhi_stream_make(context, &options, BHI_WORKER_LOADER, out_made, call, detail);
}

bh_status bhi_loaders_pick(bh_context *context, const char *tenant, bool header, const char *call,
                           struct bh_stream **out_stream, bh_detail *detail) {
    struct bh_stream *made = NULL;
    bhi_context_lock(context);
    struct bh_stream *stream = find(context, tenant, header);
    if (!stream) {
        bhi_context_unlock(context);
        BHI_TRY(make(context, tenant, call, &made, detail));
        bhi_context_lock(context);
        if (keep(context, header, made)) {
            stream = made;
            made = NULL;
        } else {
            stream = find(context, tenant, header); /* other threads were faster */
        }
    }
    /* If there is none in the list because the context has just been closed, |made| is used. The
     * submission to it is then refused. */
    if (stream) {
        bhi_stream_ref(stream);
    } else {
        stream = made;
    }
    if (stream == made) {
        made = NULL;
    }
    bhi_context_unlock(context);
    bhi_stream_unref(made);
    *out_stream = stream;
    return BH_OK;
}

void bhi_loaders_forget(bh_context *context) {
    bhi_context_lock(context);
    BHI_LIST_EACH(node, &context->loaders) {
        (void)bhi_stream_reset(&stream_of(node)->core);
    }
    bhi_context_pump_unlock(context);
}

void bhi_loaders_trim(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->loaders) {
        if (idle(stream_of(node))) {
            drop(stream_of(node));
        }
    }
}

void bhi_loaders_stop(bh_context *context) {
    bhi_context_lock(context);
    /* Another thread may still look for a loader, so none stays in the list. */
    BHI_LIST_EACH_SAFE(node, &context->loaders) {
        drop(stream_of(node));
    }
    bhi_context_pump_unlock(context);
}
