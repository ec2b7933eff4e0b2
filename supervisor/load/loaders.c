#include "supervisor/load/loaders.h"
#include "core/worker.h"
#include "supervisor/context/pump.h"
#include "supervisor/stream/stream.h"

#include <stdio.h>

#define MEMORY (1ull << 30) /* far more than any header that is parsed takes */

static bool idle(const struct bh_stream *stream) {
    return bhi_list_empty(&stream->core.queue) &&
           (!stream->core.worker || bhi_list_empty(&stream->core.worker->inflight));
}

/* Lock held. An idle one, or, where there are as many as there may be, each in its turn. A header
 * is waited for: it does not queue behind data, which may take as long as it likes. */
static struct bh_stream *find(bh_context *context, bool header) {
    for (uint32_t i = 0; i < context->loader_count; i++) {
        if (idle(context->loaders[i])) {
            return context->loaders[i];
        }
    }
    if (context->loader_count < BHI_LOADERS) {
        return NULL;
    }
    return header ? context->inspector
                  : context->loaders[context->loader_turn++ % context->loader_count];
}

/* Lock held. Keeps |made|, with its first reference, where there is room for it. */
static bool keep(bh_context *context, bool header, struct bh_stream *made) {
    if (context->closed) {
        return false;
    }
    if (context->loader_count < BHI_LOADERS) {
        context->loaders[context->loader_count++] = made;
    } else if (header && !context->inspector) {
        context->inspector = made;
    } else {
        return false;
    }
    return true;
}

bh_status bhi_loaders_pick(bh_context *context, bool header, const char *call,
                           struct bh_stream **out_stream, bh_detail *detail) {
    struct bh_stream *made = NULL;
    bhi_context_lock(context);
    struct bh_stream *stream = find(context, header);
    if (!stream) {
        char name[32];
        snprintf(name, sizeof name, "loader-%u", context->loader_count + 1);
        bhi_context_unlock(context);
        bh_stream_options options;
        bh_stream_options_init(&options);
        options.name = name;
        options.memory_limit = MEMORY;
        bh_status status =
            bhi_stream_make(context, &options, BHI_WORKER_LOADER, &made, call, detail);
        if (status != BH_OK) {
            return status;
        }
        bhi_context_lock(context);
        if (keep(context, header, made)) {
            stream = made;
            made = NULL;
        } else {
            stream = find(context, header); /* others were faster */
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
    for (uint32_t i = 0; i < context->loader_count; i++) {
        (void)bhi_stream_reset(&context->loaders[i]->core);
    }
    if (context->inspector) {
        (void)bhi_stream_reset(&context->inspector->core);
    }
    bhi_context_pump_unlock(context);
}

void bhi_loaders_trim(bh_context *context) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < context->loader_count; i++) {
        struct bh_stream *stream = context->loaders[i];
        if (!idle(stream)) {
            context->loaders[kept++] = stream;
        } else {
            bhi_stream_unref_locked(stream); /* who has just picked it has a reference */
        }
    }
    context->loader_count = kept;
    if (context->inspector && idle(context->inspector)) {
        bhi_stream_unref_locked(context->inspector);
        context->inspector = NULL;
    }
}

void bhi_loaders_stop(bh_context *context) {
    bhi_context_lock(context);
    /* Another thread may be about to pick one: it finds none rather than one that is gone. */
    uint32_t count = context->loader_count;
    context->loader_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        bhi_stream_unref_locked(context->loaders[i]);
    }
    struct bh_stream *inspector = context->inspector;
    context->inspector = NULL;
    if (inspector) {
        bhi_stream_unref_locked(inspector);
    }
    bhi_context_pump_unlock(context);
}
