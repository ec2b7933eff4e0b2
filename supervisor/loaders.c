#include "loaders.h"
#include "core/crew.h"
#include "stream.h"

#include <stdio.h>

#define MEMORY (1ull << 30) /* far more than any header that is parsed takes */

static bool idle(const struct bh_stream *stream) {
    return bhi_list_empty(&stream->core.queue) &&
           (!stream->core.crew || bhi_list_empty(&stream->core.crew->inflight));
}

/* Lock held. An idle one, or, where there are as many as there may be, each in its turn. */
static struct bh_stream *find(bh_context *context, bool full) {
    for (uint32_t i = 0; i < context->loader_count; i++)
        if (idle(context->loaders[i]))
            return context->loaders[i];
    return full ? context->loaders[context->loader_turn++ % context->loader_count] : NULL;
}

bh_status bhi_loaders_pick(bh_context *context, const char *call, struct bh_stream **out_stream,
                           bh_detail *detail) {
    struct bh_stream *made = NULL;
    bhi_context_lock(context);
    struct bh_stream *stream = find(context, context->loader_count == BHI_LOADERS);
    if (!stream) {
        char name[32];
        snprintf(name, sizeof name, "loader-%u", context->loader_count + 1);
        bhi_context_unlock(context);
        bh_stream_options options;
        bh_stream_options_init(&options);
        options.name = name;
        options.memory_limit = MEMORY;
        bh_status status = bhi_stream_make(context, &options, true, &made, call, detail);
        if (status != BH_OK)
            return status;
        bhi_context_lock(context);
        if (context->loader_count < BHI_LOADERS && !context->closed) {
            context->loaders[context->loader_count++] = made; /* its first reference */
            stream = made;
            made = NULL;
        } else if (context->loader_count) {
            stream = find(context, true); /* others were faster */
        }
    }
    /* None where the context has just been closed: that is found out again below. */
    if (stream)
        bhi_stream_ref(stream);
    else
        stream = made;
    if (stream == made)
        made = NULL;
    bhi_context_unlock(context);
    bhi_stream_unref(made);
    *out_stream = stream;
    return BH_OK;
}

void bhi_loaders_forget(bh_context *context) {
    bhi_context_lock(context);
    for (uint32_t i = 0; i < context->loader_count; i++)
        (void)bhi_stream_reset(&context->loaders[i]->core);
    bhi_context_unlock(context);
}

void bhi_loaders_stop(bh_context *context) {
    for (uint32_t i = 0; i < context->loader_count; i++)
        bhi_stream_unref(context->loaders[i]);
    context->loader_count = 0;
}
