#include "supervisor/buffer/replica.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/stream/stream.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct bhi_replica *replica) {
    bhi_list_remove(&replica->link);
    struct bh_buffer *copy = replica->copy;
    struct bh_stream *stream = replica->stream;
    free(replica);
    bhi_buffer_unref_locked(copy);
    bhi_stream_unref_locked(stream);
}

/* |of|, |stream|: NULL means all. Dropping a replica may free another buffer, and with that drop
 * replicas of that buffer, so the loop starts again after each. */
static void drop_all(bh_context *context, const struct bh_buffer *of,
                     const struct bh_stream *stream) {
    for (bool found = true; found;) {
        found = false;
        BHI_LIST_FOR(struct bhi_replica, replica, &context->replicas, link) {
            if ((!of || replica->of == of) && (!stream || replica->stream == stream)) {
                drop(replica);
                found = true;
                break;
            }
        }
    }
}

void bhi_replicas_init(bh_context *context) {
    context->drop_replicas = drop_all;
}

/* Returns true if |stream| can read the replica: it is of the same tenant, and its memory is on the
 * stream's device; or in the host, if processes cannot share memory of that device. */
static bool suits(const struct bhi_replica *replica, const struct bh_stream *stream) {
    if (strcmp(replica->stream->tenant, stream->tenant) != 0) {
        return false;
    }
    if (!replica->copy->device) {
        return !bhi_stream_shares_memory(stream);
    }
    return bhi_stream_shares_memory(stream) &&
           memcmp(replica->stream->runs_on.uuid, stream->runs_on.uuid,
                  sizeof stream->runs_on.uuid) == 0;
}

static bool is_poisoned(struct bh_buffer *buffer) {
    return !bhi_content_obstacle(&buffer->content, false) && bhi_content_poison(&buffer->content);
}

struct bh_buffer *bhi_replica_find(const struct bh_stream *stream, struct bh_buffer *of) {
    if (is_poisoned(of)) {
        return of; /* a submission that reads it is poisoned, so it reaches no worker */
    }
    BHI_LIST_FOR(const struct bhi_replica, replica, &stream->context->replicas, link) {
        if (replica->of == of && suits(replica, stream)) {
            /* If the copy failed, another may succeed: |of| itself is not poisoned. */
            return is_poisoned(replica->copy) ? NULL : replica->copy;
        }
    }
    return NULL;
}

void bhi_replica_keep(struct bh_stream *stream, struct bh_buffer *of, uint64_t version,
                      struct bh_buffer *copy) {
    const struct bh_buffer *named = of->owner ? of->owner : of;
    if (!bhi_handle_live(&stream->handle) || !bhi_handle_live(&named->handle) ||
        of->device->version != version) {
        return;
    }
    BHI_LIST_FOR(struct bhi_replica, older, &stream->context->replicas, link) {
        if (older->of == of && strcmp(older->stream->tenant, stream->tenant) == 0 &&
            (suits(older, stream) || !older->copy->device)) {
            drop(older);
            break;
        }
    }
    struct bhi_replica *replica = calloc(1, sizeof *replica);
    if (replica) {
        *replica = (struct bhi_replica){.of = of, .copy = copy, .stream = stream};
        bhi_buffer_ref(copy);
        bhi_stream_ref(stream);
        bhi_list_append(&stream->context->replicas, &replica->link);
    }
}
