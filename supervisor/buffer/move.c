#include "supervisor/buffer/move.h"
#include "supervisor/context/context.h"

struct bh_buffer *bhi_buffer_take_place(struct bh_buffer *buffer) {
    bhi_context_lock(buffer->context);
    struct bh_buffer *place = bhi_buffer_place(buffer);
    bhi_buffer_ref(place);
    bhi_context_unlock(buffer->context);
    return place;
}

void bhi_buffer_move(struct bh_buffer *buffer, struct bh_buffer *place) {
    struct bh_buffer *before = bhi_buffer_place(buffer);
    bhi_buffer_ref(place);
    /* |place| may itself be a replica of |before|: the reference above keeps it. */
    buffer->context->drop_replicas(buffer->context, before, NULL);
    buffer->place = place;
    place->owner = buffer;
    if (before != buffer) {
        before->owner = NULL;
        bhi_buffer_unref_locked(before);
    } /* else the caller still has a reference to it: without that, its memory is given back */
}
