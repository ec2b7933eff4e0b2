/* The doctor against a zygote that is a struct: what it makes of the answers to its probes, and that it
 * does not wait for one that has died. */
#include "../hostile/wrap.h"
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/stream/stream.h"

#include <bulkhead/doctor.h>
#include <bulkhead/trace.h>
#include <errno.h>
#include <stdlib.h>
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

WRAP(bh_status, bh_devices, bh_context *context, bh_device_info *out, size_t capacity,
     size_t *count, bh_detail *detail) {
    (void)context, (void)out, (void)capacity, (void)count, (void)detail;
    return BH_NO_DEVICE;
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
