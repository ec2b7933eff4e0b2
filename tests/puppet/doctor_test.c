/* The doctor against a zygote that is a struct: what it makes of the answers to its probes, that it does not
 * wait for one that has died, and what it makes of a grid that ran, or did not. */
#include "../hostile/wrap.h"
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/compile/arithmetic.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/stream/stream.h"

#include <bulkhead/doctor.h>
#include <bulkhead/trace.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIES_AT 3 /* so many layers are answered for */

static struct {
    struct bhi_worker *worker; /* NULL: the doctor does not run */
    unsigned answered, waited_in_vain;
    int end; /* the zygote's, of its socket */
} scene;

WRAP(bh_status, bh_stream_wait_ready, bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    return scene.worker ? BH_OK : __real_bh_stream_wait_ready(stream, timeout_ns, detail);
}

WRAP(struct bhi_worker *, bhi_stream_worker, const struct bh_stream *stream) {
    return scene.worker ? scene.worker : __real_bhi_stream_worker(stream);
}

/* A device that launches the doctor's grid, as a row says. */
static const struct grid {
    bh_status launch, end; /* BH_PENDING: it does not end before the time is over */
    uint32_t marks[2];
    bh_check_result result;
    const char *text, *advice; /* the beginnings */
} *grid;

WRAP(bh_status, bh_devices, bh_context *context, bh_device_info *out, size_t capacity,
     size_t *count, bh_detail *detail) {
    (void)context, (void)capacity, (void)detail;
    if (!grid) {
        return BH_NO_DEVICE;
    }
    snprintf(out->selector, sizeof out->selector, "red:0");
    *count = 1;
    return BH_OK;
}

WRAP(bh_status, bhi_arithmetic_try, bh_context *context, bh_stream *stream,
     struct bhi_arithmetic *out, bh_detail *why) {
    (void)context, (void)stream, (void)why;
    *out = (struct bhi_arithmetic){.tried = 1};
    return BH_OK;
}

/* In doctor.c these are bh_kernel_create_source and bh_launch, which tests/harness/owned.c wraps. */
__typeof__(bh_kernel_create_source) doctor_kernel;
__typeof__(bh_launch) doctor_launch;

bh_status doctor_kernel(bh_context *context, const bh_source *source,
                        const bh_kernel_options *options, bh_kernel **out_kernel,
                        bh_detail *detail) {
    (void)context, (void)source, (void)options, (void)detail;
    *out_kernel = NULL;
    return BH_OK;
}

static bool withdrawn; /* the launch */

bh_status doctor_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                        const bh_binding *bindings, uint32_t binding_count, const void *push,
                        uint32_t push_size, bh_event **out_event, bh_detail *detail) {
    (void)stream, (void)kernel, (void)bindings, (void)push, (void)push_size, (void)detail;
    BHT_EQ((uint64_t)groups[0] * groups[1] * groups[2], UINT64_C(1) << 32);
    BHT_EQ(binding_count, 1);
    *out_event = NULL;
    withdrawn = false;
    return grid->launch;
}

WRAP(bh_status, bh_event_wait, bh_event *event, uint64_t timeout_ns) {
    (void)event, (void)timeout_ns;
    return grid->end == BH_PENDING ? BH_TIMEOUT : grid->end;
}

WRAP(bh_status, bh_event_cancel, bh_event *event) {
    (void)event;
    withdrawn = true;
    return BH_OK;
}

WRAP(bh_status, bh_event_verdict, bh_event *event, bh_verdict *out_verdict) {
    (void)event;
    out_verdict->status = grid->end == BH_PENDING ? BH_CANCELLED : grid->end;
    return BH_OK;
}

WRAP(bh_status, bh_buffer_read, bh_buffer *buffer, uint64_t offset, void *out, uint64_t size,
     uint64_t timeout_ns, bh_detail *detail) {
    (void)buffer, (void)timeout_ns, (void)detail;
    BHT_EQ(grid->end, BH_OK); /* of what has failed nothing is read */
    BHT_EQ(offset, 0);
    BHT_EQ(size, sizeof grid->marks);
    memcpy(out, grid->marks, sizeof grid->marks);
    return BH_OK;
}

WRAP(bh_status, bh_trace_driver, bh_context *context, const char *device, bh_trace *out_trace,
     bh_traced_call *out_calls, size_t capacity, size_t *out_count, bh_detail *detail) {
    (void)context, (void)device, (void)out_trace, (void)out_calls, (void)capacity;
    (void)out_count, (void)detail;
    return BH_UNAVAILABLE;
}

WRAP(bh_status, bhi_compilation_obtain, bh_context *context,
     const struct bhi_compile_source *source, const char *call, bh_event **out_event,
     struct bhi_compilation **out, bh_detail *detail) {
    (void)context, (void)source, (void)call, (void)out_event, (void)detail;
    *out = NULL;
    return BH_UNAVAILABLE;
}

/* The doctor waits for the answer: it comes, or the zygote dies. */
WRAP(int, bhi_futex_wait, const _Atomic uint32_t *word, uint32_t seen, bool shared,
     uint64_t deadline_ns) {
    if (word != &puppet.zygote->probe_word) {
        return __real_bhi_futex_wait(word, seen, shared, deadline_ns);
    }
    struct bhi_message asked;
    int fds[BHI_FDPASS_MAX];
    bhi_context_lock(puppet.context);
    if (puppet.zygote->state != BHI_ZYGOTE_READY) {
        scene.waited_in_vain++;
    } else if (scene.answered == DIES_AT) {
        puppet.zygote->state = BHI_ZYGOTE_LOST;
    } else {
        BHT_EQ(bhi_fdpass_recv_message(scene.end, BHI_S2Z, &asked, fds, MSG_DONTWAIT, NULL, 0), 1);
        BHT_EQ(asked.type, BHI_MSG_PROBE);
        puppet.zygote->probes[asked.probe.layer] = (struct bhi_probe_answer){
            .answered = true,
            .result = scene.answered % 2 ? BH_CHECK_BROKEN : BH_CHECK_HOLDS,
            .text = "so it is"};
        scene.answered++;
    }
    bhi_context_unlock(puppet.context);
    return scene.waited_in_vain ? -ETIMEDOUT : 0;
}

TEST(a_zygote_that_dies_is_not_waited_for) {
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    int pair[2];
    size_t count, layers = 0, holds = 0, answers = 0;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    scene.end = pair[1];
    scene.worker = puppet_worker(BHI_RUNNING);
    for (uint32_t layer = 0; layer < BHI_LAYER_COUNT; layer++) { /* of an earlier call */
        puppet.zygote->probes[layer] =
            (struct bhi_probe_answer){.answered = true, .text = "so it was"};
    }
    BHT_EQ(bh_doctor(puppet.context, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
    scene.worker = NULL;
    close(scene.end);
    BHT_EQ(scene.answered, DIES_AT);
    BHT_EQ(scene.waited_in_vain, 0);
    for (size_t i = 0; i < count; i++) {
        const bh_check *check = &checks[i];
        const bool answered = strcmp(check->text, "so it is") == 0;
        const bool silent = strcmp(check->text, "the probe did not answer") == 0;
        layers += answered || silent;
        BHT_TRUE(strcmp(check->text, "so it was") != 0);
        answers += answered;
        holds += answered && check->result == BH_CHECK_HOLDS;
        if (silent && check->result != BH_CHECK_BROKEN) {
            BHT_FAIL("%s did not answer, and is not broken", check->name);
        }
    }
    BHT_EQ(answers, DIES_AT);
    BHT_EQ(holds, 2);
    BHT_GT(layers, DIES_AT);
}

static const bh_check *find(const bh_check *checks, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, name) == 0) {
            return &checks[i];
        }
    }
    BHT_FAIL("there is no check %s", name);
}

/* The first and the last workgroup must both have run. */
TEST(a_grid_ran_if_both_its_ends_did) {
#define RAN "red:0 reports that 4096 x 4096 x 256 workgroups ran, but they did not"
#define OF  "red:0: of 4096 x 4096 x 256 workgroups "
#define BIG "a grid of more workgroups"
    static const struct grid rows[] = {
        {BH_OK, BH_OK, {1, 1}, BH_CHECK_HOLDS, "red:0 runs 4096 x 4096 x 256", ""},
        {BH_OK, BH_OK, {1, 0}, BH_CHECK_BROKEN, RAN, "report it"},
        {BH_OK, BH_OK, {0, 1}, BH_CHECK_BROKEN, RAN, "report it"},
        {BH_OK, BH_OK, {0, 0}, BH_CHECK_BROKEN, RAN, "report it"},
        {BH_OK, BH_LIMIT_EXCEEDED, {0, 0}, BH_CHECK_ABSENT, OF "none runs: its driver", BIG},
        {BH_OK, BH_DEADLINE, {0, 0}, BH_CHECK_ABSENT, OF "the deadline passed", BIG},
        {BH_OK, BH_PENDING, {0, 0}, BH_CHECK_ABSENT, OF, BIG},
        {BH_UNAVAILABLE, BH_OK, {0, 0}, BH_CHECK_ABSENT, "red:0: it could not be tried: ", ""},
    };
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    puppet.zygote->state = BHI_ZYGOTE_LOST; /* nothing is asked */
    scene.worker = puppet_worker(BHI_RUNNING);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        size_t count;
        grid = &rows[i];
        BHT_EQ(bh_doctor(puppet.context, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
        const bh_check *check = find(checks, count, "wholeGrids");
        BHT_STR_HAS(check->text, rows[i].text);
        BHT_EQ(check->result, rows[i].result);
        BHT_TRUE(!check->required);
        BHT_STR_HAS(check->advice, rows[i].advice);
        BHT_EQ(withdrawn, rows[i].end == BH_PENDING);
    }
    scene.worker = NULL;
    grid = NULL;
}
