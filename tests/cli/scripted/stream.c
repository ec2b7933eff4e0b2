/* Contexts and streams. */
#include "script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bh_status bh_context_create(const bh_context_options *options, bh_context **out_context,
                            bh_detail *detail) {
    bh_status status = script_answer("SCRIPT_CONTEXT", detail);
    if (status == BH_OK) {
        *out_context = script_new(sizeof **out_context);
    }
    if (options->log) {
        options->log(BH_LOG_INFO, "scripted\033[31m log", options->log_user);
    }
    return status;
}

bh_status bh_context_destroy(bh_context *context) {
    pthread_mutex_lock(&script_lock);
    script_closed = true;
    pthread_cond_broadcast(&script_changed);
    pthread_mutex_unlock(&script_lock);
    script_free(context);
    return BH_OK;
}

bh_status bh_context_trim(bh_context *context, uint64_t bytes, bh_detail *detail) {
    script_counts.trims++;
    return BH_OK;
}

bh_status bh_stream_create(bh_context *context, const bh_stream_options *options,
                           bh_stream **out_stream, bh_detail *detail) {
    if (options->device && strstr(options->device, "bad")) {
        snprintf(detail->message, sizeof detail->message, "no such selector");
        return BH_INVALID_ARGUMENT;
    }
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "stream: compile %llu, grace %llu, tenant '%s'\n",
                (unsigned long long)options->compile_deadline_ns,
                (unsigned long long)options->grace_ns, options->tenant ? options->tenant : "");
    }
    bh_status status = script_answer("SCRIPT_STREAM", detail);
    if (status == BH_OK) {
        *out_stream = script_new(sizeof **out_stream);
        snprintf((*out_stream)->tenant, sizeof(*out_stream)->tenant, "%s",
                 options->tenant ? options->tenant : "");
    }
    return status;
}

bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    return script_answer("SCRIPT_READY", detail);
}

bh_status bh_stream_device(bh_stream *stream, char out_selector[48]) {
    snprintf(out_selector, 48, "script:0");
    return BH_OK;
}

bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail) {
    script_counts.resets++;
    return BH_OK;
}

bh_status bh_stream_cancel(bh_stream *stream) {
    return BH_OK;
}

void bh_stream_release(bh_stream *stream) {
    script_free(stream);
}
