#include "scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

unsigned bht_next(unsigned n, unsigned dense, unsigned part) {
    if (bht_nightly() || n < dense) {
        return n + 1;
    }
    return n + 1 + n / part;
}

/* Each n of a sanitizer's build is a whole call of the library, or a whole start of it. */
enum { STRIDE = 3 };

static unsigned stride(void) {
    return !bht_nightly() && (BHT_ASAN || BHT_TSAN) ? STRIDE : 1;
}

unsigned bht_walk_first(unsigned row, unsigned dense, unsigned part) {
    unsigned n = 1;
    for (unsigned skip = (row + (BHT_TSAN ? 1 : 0)) % stride(); skip; skip--) {
        n = bht_next(n, dense, part);
    }
    return n;
}

unsigned bht_walk_next(unsigned n, unsigned dense, unsigned part) {
    for (unsigned i = stride(); i; i--) {
        n = bht_next(n, dense, part);
    }
    return n;
}

unsigned bht_walk_least(unsigned calls) {
    return calls / stride();
}

bool bht_mine(size_t i) {
    return bht_nightly() || !(BHT_ASAN || BHT_TSAN) || i % 2 == (BHT_TSAN ? 1 : 0);
}

void bht_check_detail(bh_status status, const bh_detail *detail, const char *what) {
    if (status == BH_OK) {
        return;
    }
    if (bh_status_classify(status) == BH_STATUS_CLASS_NONE ||
        bh_status_classify(status) == BH_STATUS_CLASS_CALLER) {
        BHT_FAIL("%s: %s blames the caller, or nobody: %s", what, bh_status_name(status),
                 detail->message);
    }
    if (detail->status != status || !detail->message[0]) {
        BHT_FAIL("%s: the call says %s, its detail %s: \"%s\"", what, bh_status_name(status),
                 bh_status_name(detail->status), detail->message);
    }
}

bh_status bht_end(bh_event *event, const char *what) {
    if (!event) {
        return BH_OK;
    }
    /* A worker whose descriptor cannot be received is given up when it is overdue: after 30 s. */
    bh_status status = bh_event_wait(event, 3 * FX_SECONDS);
    if (status == BH_TIMEOUT) {
        BHT_FAIL("%s (%s): the event never ends", what, bht_where());
    }
    bh_verdict verdict = {.struct_size = sizeof verdict};
    BHT_EQ(bh_event_verdict(event, &verdict), BH_OK);
    BHT_EQ(verdict.status, status);
    BHT_EQ(bh_event_query(event), status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED);
    if (status != BH_OK && !verdict.message[0]) {
        BHT_FAIL("%s: poisoned %s without a word", what, bh_status_name(status));
    }
    bh_event_release(event);
    return status;
}

void bht_refused(bh_stream *stream, bh_command command, bh_status status, const char *words) {
    bh_detail detail;
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    BHT_EQ(bh_submit(stream, &info, NULL, &detail), status);
    BHT_STR_HAS(detail.message, words);
}

bh_event *bht_square(bh_context *context, bh_stream *stream, bh_buffer **out_y) {
    bh_buffer *x = fx_words(context, 64, 0x40000000u), *y = fx_words(context, 64, 0);
    if (out_y) {
        *out_y = y;
    }
    return fx_square(stream, fx_kernel(context, "square"), x, y);
}

bool bht_says(bh_context *context, const char *one, const char *other) {
    static char text[1 << 14];
    bh_context_describe(context, text, sizeof text);
    const char *line = strstr(text, one);
    return line && strstr(line, other);
}

bh_status bht_kernel(bh_context *context, const char *name, bh_kernel **out, bh_detail *detail) {
    static uint8_t code[65536];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.spv", BHT_SHADERS, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t size = read(fd, code, sizeof code);
    close(fd);
    BHT_TRUE(size > 0 && size < (ssize_t)sizeof code);
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    return bh_kernel_create_spirv(context, code, (size_t)size, &options, out, detail);
}
