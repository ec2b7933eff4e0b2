#include "supervisor/load/loaders.h"
#include "core/worker.h"
#include "supervisor/context/pump.h"
#include "supervisor/stream/stream.h"

#include <stdio.h>
#include <string.h>

#define LOADERS 4            /* of a tenant, for data; one more reads headers when all are busy */
#define MEMORY  (1ull << 30) /* far more than any header that is parsed takes */

static struct bh_stream *stream_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bh_stream, loader);
}

static bool idle(const struct bh_stream *stream) {
    return bhi_list_empty(&stream->core.queue) &&
           (!stream->core.worker || bhi_list_empty(&stream->core.worker->inflight));
}

/* What a tenant has. */
struct own {
    uint32_t count;               /* for data */
    struct bh_stream *idle;       /* one of them; or NULL */
    struct bh_stream *next;       /* the one whose turn was longest ago */
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

/* Lock held. An idle one, or, where there are as many as there may be, each in its turn. A header
 * is waited for: it does not queue behind data, which may take as long as it likes. */
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

/* Lock held. The list's reference goes with it; who has just picked it has one. */
static void drop(struct bh_stream *stream) {
    bhi_list_remove(&stream->loader);
    bhi_stream_unref_locked(stream);
}

/* Lock held. A tenant that loads takes the place of one that does not, so that many tenants, one
 * after the other, have no more loaders than one. Those that load at once have their own each.
 * Returns how many others there are. */
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

/* Lock held. Keeps |made|, with its first reference, where there is room for it. */
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
    bh_stream_options options;
    bh_stream_options_init(&options);
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
        const bh_status status = make(context, tenant, call, &made, detail);
        if (status != BH_OK) {
            return status;
        }
        bhi_context_lock(context);
        if (keep(context, header, made)) {
            stream = made;
            made = NULL;
        } else {
            stream = find(context, tenant, header); /* others were faster */
        }
    }
    /* None where the context has just been closed: that is found out again below. */
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
    /* Another thread may be about to pick one: it finds none rather than one that is gone. */
    BHI_LIST_EACH_SAFE(node, &context->loaders) {
        drop(stream_of(node));
    }
    bhi_context_pump_unlock(context);
}
