/* What the calls of nth_call.c and nth_kernels.c share. */
#ifndef FAULT_NTH_CALL_H
#define FAULT_NTH_CALL_H

#include "scene.h"

struct scene {
    bh_context *context;
    bh_stream *stream, *other;
    bh_buffer *buffer;
    bh_kernel *gate;
    bh_buffer *word; /* of the gate */
    volatile uint32_t *open;
    int file;                       /* a .npy; 0: not made */
    bh_event *running, *queued[16]; /* as many as make its worker's books grow */
};

/* The next call, unless one before it has failed. */
#define THEN(call) (status = status == BH_OK ? (call) : status)

/* One call, and the end of what it began. Returns the call's status. */
typedef bh_status entry(struct scene *scene, bh_detail *detail);
/* What has to be there before, with nothing failing. */
typedef void setting(struct scene *scene);

entry nth_kernel_create, nth_large_kernel_create, nth_prepare_refused, nth_prepare, nth_reflect,
    nth_glsl, nth_inspect, nth_template_use, nth_template_launch;

#endif
