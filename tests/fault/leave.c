/* A worker that dies while it is idle, and whose end its device delays: the supervisor has seen
 * that it is dying, and its process goes on until the test ends it. SIGKILL does nothing meanwhile
 * (--wrap). Its stream goes on with another worker; the burial comes when it is gone. */
#include "scene.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>

static _Atomic int held = -1; /* the pidfd of the one that its device holds */
static _Atomic unsigned shots;

int __real_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags) {
    if (pidfd != held) {
        return __real_pidfd_send_signal(pidfd, signal, info, flags);
    }
    shots += signal == SIGKILL;
    return 0;
}

/* The worker of |stream| is dying from now on, as far as the supervisor can see. */
static pid_t hold(bh_context *context, bh_stream *stream) {
    const pid_t pid = fx_ready(stream);
    bhi_context_lock(context);
    struct bhi_worker *worker = bhi_stream_worker(stream);
    held = worker->pidfd;
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_HANG_UP, bhi_now_ns());
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_SEEN, bhi_now_ns());
    worker->core.life.due_ns = BH_FOREVER; /* its process lives */
    context->wake_reactor = true;
    bhi_context_pump_unlock(context);
    return pid;
}

static void let_go(pid_t pid) {
    held = -1;
    fx_kill(pid, SIGKILL);
}

static bool is_dying(bh_context *context, bh_stream *stream) {
    bhi_context_lock(context);
    const bool dying = stream->core.dying;
    bhi_context_unlock(context);
    return dying;
}

static bh_context *open_context(void) {
    bh_context_options options = fx_options();
    fx_keep_log(&options);
    options.spares = 1;
    return fx_context_with(options, NULL);
}

/* The same buffers as before, and new ones. */
TEST(the_stream_goes_on) {
    bh_context *context = open_context();
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0x40000000u), *y = fx_words(context, 64, 0); /* 2.0 */
    fx_expect(fx_square(stream, square, x, y), BH_OK);
    const pid_t pid = hold(context, stream);
    fx_ready_after(stream, pid);
    fx_expect(fx_square(stream, square, x, y), BH_OK);
    BHT_TRUE(((const float *)fx_mapped(y))[63] == 4.0f);
    fx_expect_healthy(context, stream);
    fx_expect_healthy(context, neighbour);
    BHT_TRUE(is_dying(context, stream));
    BHT_EQ(shots, 1);
    BHT_TRUE(!strchr("ZX", bht_process_state(pid))); /* all that was before it had ended */
    BHT_EQ(fx_logged("died while it was idle"), 0);
    let_go(pid);
    WAIT_UNTIL(!is_dying(context, stream), 20000);
    WAIT_UNTIL(fx_logged("died while it was idle") > 0, 20000);
    BHT_GT(fx_logged("stream one: worker "), 0);
    BHT_GT(fx_logged("was killed by SIGKILL (signal 9)"), 0);
    fx_expect_healthy(context, stream);
}

/* What is to be alone has its worker, and waits for the end of the one before. */
TEST(what_is_alone_waits) {
    bh_context *context = open_context();
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0x40000000u), *y = fx_words(context, 64, 0);
    fx_expect_healthy(context, stream);
    const pid_t pid = hold(context, stream);
    fx_ready_after(stream, pid);
    const bh_binding bindings[] = {
        bh_bind_read(0, x),
        bh_bind_write(1, y),
    };
    const bh_command launch = fx_dispatch(square, bindings, 2);
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &launch, .command_count = 1, .alone = true};
    bh_event *event = fx_submit(stream, &info);
    bhi_context_lock(context);
    const uint64_t published = stream->core.worker->published;
    bhi_context_unlock(context);
    BHT_EQ(published, 0);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    let_go(pid);
    fx_expect(event, BH_OK);
}

/* The context's end waits for it as for every other: it leaves nobody behind (E9). */
TEST(a_context_waits_for_the_dying) {
    bh_context *context = open_context();
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_expect_healthy(context, stream);
    const pid_t pid = hold(context, stream);
    fx_ready_after(stream, pid);
    held = -1; /* the context kills it once more */
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_EQ(bht_process_state(pid), 'X');
}
