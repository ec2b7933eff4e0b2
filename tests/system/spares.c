/* Spares that know the kernels of a tenant: what a death costs then, and whom they serve. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What workers have compiled for a submission that waited for it, by their lines in the log. */
static unsigned needed_compiles(void) {
    return fx_logged_but(": compiled in ", "before it is needed");
}

/* The log comes later than results. */
static void await_compiles(unsigned count) {
    WAIT_UNTIL(needed_compiles() >= count, 20000);
    BHT_EQ(needed_compiles(), count);
}

struct scene {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square, *add;
    bh_buffer *x, *y, *z;
};

static bh_stream *stream_of(bh_context *context, const char *tenant, bh_isolation isolation) {
    bh_stream_options options = {.struct_size = sizeof options};
    options.tenant = tenant;
    options.isolation = isolation;
    options.deadline_ns = FX_SECONDS;
    options.compile_deadline_ns = FX_SECONDS;
    return fx_stream_with(context, options);
}

static struct scene open_scene(uint32_t spares, const char *faults, const char *cache_dir) {
    bh_context_options options = fx_options();
    options.spares = spares;
    options.spare_kernels = 16;
    fx_keep_log(&options);
    options.cache_dir = cache_dir;
    struct scene s = {.context = fx_context_with(options, faults)};
    s.stream = stream_of(s.context, NULL, BH_ISOLATION_STREAM);
    s.square = fx_kernel(s.context, "square");
    s.add = fx_kernel(s.context, "add");
    s.x = fx_words(s.context, 64, 0x40000000u); /* 2.0 */
    s.y = fx_words(s.context, 64, 0);
    s.z = fx_words(s.context, 64, 0);
    return s;
}

/* Returns the verdict of one launch of square, whose result is right if it is READY. */
static bh_verdict square(struct scene *s, bh_stream *stream) {
    bh_verdict verdict = fx_verdict(fx_square(stream, s->square, s->x, s->y));
    if (verdict.status == BH_OK) {
        const float *out = fx_mapped(s->y);
        BHT_TRUE(out[0] == 4.0f && out[63] == 4.0f);
    }
    return verdict;
}

static void square_ok(struct scene *s, bh_stream *stream) {
    const bh_verdict verdict = square(s, stream);
    if (verdict.status != BH_OK) {
        BHT_FAIL("%s", verdict.message);
    }
}

static void add_ok(struct scene *s, bh_stream *stream) {
    const bh_binding bindings[] = {bh_bind_read(0, s->x), bh_bind_read(1, s->x),
                                   bh_bind_write(2, s->z)};
    fx_expect(fx_launch(stream, s->add, 1, bindings, 3, 0), BH_OK);
    const uint32_t *out = fx_mapped(s->z);
    BHT_EQ(out[0], 0x80000000u);
}

/* The pid of a spare whose line has |what|, and not |lacks|; 0: there is none. */
static pid_t find_spare(bh_context *context, const char *what, const char *lacks) {
    static char text[1 << 14];
    bh_context_describe(context, text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int pid = 0;
        if (sscanf(line, "spare worker %d", &pid) == 1 && strstr(line, what) &&
            !(lacks && strstr(line, lacks))) {
            return pid;
        }
    }
    return 0;
}

static pid_t await_spare(bh_context *context, const char *what) {
    WAIT_UNTIL(find_spare(context, what, NULL), 20000);
    return find_spare(context, what, NULL);
}

/* Two launches of the square: the spare learns it. Returns the spare. */
static pid_t teach_square(struct scene *s) {
    square_ok(s, s->stream);
    square_ok(s, s->stream);
    return await_spare(s->context, ", 1 known kernel");
}

/* The stream's worker dies, and the stream goes on with |spare|. */
static void hand_over(bh_stream *stream, pid_t spare) {
    fx_kill(fx_ready(stream), SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(stream) == spare, 20000);
}

/* -- a death -------------------------------------------------------------------------------------
 */

/* K2. The next worker is the spare. It is sent no kernel and compiles none, and each result is
 * right. */
TEST(recovery_compiles_nothing) {
    struct scene s = open_scene(1, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        square_ok(&s, s.stream);
        add_ok(&s, s.stream);
    }
    await_compiles(2);
    for (int round = 0; round < 2; round++) {
        const pid_t spare = await_spare(s.context, "for tenant \"\", 2 known kernels");
        hand_over(s.stream, spare);
        square_ok(&s, s.stream);
        add_ok(&s, s.stream);
        await_compiles(2);
        BHT_EQ(fx_stats(s.context).kernels_introduced, 2); /* both to the first worker */
        BHT_EQ(bh_stream_worker_pid(s.stream), spare);
    }
}

/* What was in the queue when the worker died runs there, too. */
TEST(what_waits_runs_on_the_spare) {
    struct scene s = open_scene(1, NULL, NULL);
    const pid_t spare = teach_square(&s);
    bh_event *running = fx_hold(s.context, s.stream).event;
    bh_event *behind = fx_square(s.stream, s.square, s.x, s.y);
    await_compiles(2);
    fx_kill(fx_ready(s.stream), SIGKILL);
    fx_expect(running, BH_WORKER_SIGNAL);
    const bh_verdict verdict = fx_expect(behind, BH_OK);
    BHT_EQ(verdict.worker_pid, spare);
    await_compiles(2);
}

TEST(a_kernel_that_is_not_known_is_introduced) {
    struct scene s = open_scene(1, NULL, NULL);
    const pid_t spare = teach_square(&s);
    hand_over(s.stream, spare);
    add_ok(&s, s.stream);
    square_ok(&s, s.stream);
    BHT_EQ(bh_stream_worker_pid(s.stream), spare);
}

/* A spare that learns loads no pipeline cache: what it knows it has compiled itself. */
TEST(with_a_pipeline_cache) {
    char folder[] = "/tmp/bulkhead-spares-XXXXXX";
    BHT_TRUE(mkdtemp(folder));
    struct scene s = open_scene(0, NULL, folder);
    square_ok(&s, s.stream);
    await_compiles(1); /* a context that closes reads no more messages */
    fx_release_all();  /* writes the file */
    s = open_scene(1, NULL, folder);
    const pid_t spare = teach_square(&s);
    await_compiles(2);
    hand_over(s.stream, spare);
    square_ok(&s, s.stream);
    await_compiles(2);
    BHT_EQ(fx_logged(" bytes read"), 1); /* for the stream's first worker */
    fx_release_all();
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    BHT_EQ(system(command), 0);
}

/* -- tenants -----------------------------------------------------------------------------------
 */

/* T1. A tenant's spare serves nobody else, and there is one for the others. */
TEST(tenants_are_kept_apart) {
    struct scene s = open_scene(2, NULL, NULL);
    bh_stream *bob = stream_of(s.context, "bob", BH_ISOLATION_STREAM);
    for (int i = 0; i < 4; i++) {
        square_ok(&s, bob);
    }
    const pid_t bobs = await_spare(s.context, "for tenant \"bob\", 1 known kernel");
    WAIT_UNTIL(find_spare(s.context, ", ready", "for tenant"), 20000);
    for (int i = 0; i < 3; i++) {
        square_ok(&s, s.stream);
        fx_kill(fx_ready(s.stream), SIGKILL);
        fx_ready_after(s.stream, bobs);
        square_ok(&s, s.stream);
        BHT_TRUE(bh_stream_worker_pid(s.stream) != bobs);
    }
    hand_over(bob, bobs);
    square_ok(&s, bob);
}

/* T2. Blame is certain as long as the spare knew nothing else: what it compiled is its past. */
TEST(what_a_spare_knows_is_its_past) {
    struct scene s = open_scene(1, NULL, NULL);
    const pid_t spare = teach_square(&s);
    hand_over(s.stream, spare);
    bh_event *event = fx_hold(s.context, s.stream).event;
    fx_kill(spare, SIGSEGV);
    const bh_verdict verdict = fx_expect(event, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.worker_pid, spare);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
}

/* T3. A stream that keeps its kernels apart has no use for such a spare. */
TEST(isolated_streams_have_untold_spares) {
    struct scene s = open_scene(1, NULL, NULL);
    bh_stream *apart = stream_of(s.context, NULL, BH_ISOLATION_KERNEL);
    for (int i = 0; i < 3; i++) {
        square_ok(&s, s.stream);
        square_ok(&s, apart);
    }
    await_spare(s.context, ", ready");
    fx_expect(fx_square(apart, s.square, s.x, s.y), BH_OK);
    BHT_EQ(fx_stats(s.context).kernels_told, 0);
    BHT_TRUE(!fx_describes(s.context, "known kernel"));
}

/* -- kernels that spares do not survive ---------------------------------------------------------
 */

/* K5. One spare dies of it, and no other. The kernel is refused as if a launch had killed its
 * compiler; another one is learned. */
TEST(a_kernel_that_kills_its_compiler_kills_one_spare) {
    struct scene s = open_scene(1, "*:learn:1=segv,?*:learn:2=segv", NULL);
    square_ok(&s, s.stream);
    const pid_t pid = bh_stream_worker_pid(s.stream);
    bh_verdict verdict = {.struct_size = sizeof verdict};
    do {
        verdict = square(&s, s.stream);
    } while (verdict.status == BH_OK);
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "did not survive it in a spare worker");
    bh_quarantined entry = {.struct_size = sizeof entry};
    size_t count = 0;
    BHT_EQ(bh_quarantine_list(s.context, &entry, 1, &count, NULL), BH_OK);
    BHT_EQ(count, 1);
    BHT_EQ(entry.status, BH_COMPILE_FAILED);
    BHT_EQ(entry.signal, SIGSEGV);
    BHT_STR_EQ(entry.kernel_name, "square");
    await_spare(s.context, ", ready");
    /* It may run again, and spares still stay away from it. */
    BHT_EQ(bh_quarantine_release(s.context, NULL, NULL, NULL), BH_OK);
    for (int i = 0; i < 10; i++) {
        square_ok(&s, s.stream);
    }
    BHT_EQ(fx_stats(s.context).kernels_told, 1);
    BHT_EQ(bh_stream_worker_pid(s.stream), pid);
}

/* A worker that says what is not so is killed, and nobody misses it. */
TEST(lies_are_seen) {
    static const char *const lies[] = {"*:lie_learned:1=fail,?*:lie_learned:2=fail",
                                       "*:lie_learned_twice:1=fail,?*:lie_learned_twice:2=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        struct scene s = open_scene(1, lies[i], NULL);
        const pid_t pid = fx_ready(s.stream);
        const pid_t first = await_spare(s.context, ", ready");
        square_ok(&s, s.stream);
        square_ok(&s, s.stream);
        WAIT_UNTIL(strchr("ZX", bht_process_state(first)), 20000);
        square_ok(&s, s.stream);
        BHT_EQ(bh_stream_worker_pid(s.stream), pid);
        BHT_EQ(fx_quarantined(s.context), 0); /* it proves nothing about the kernel */
        fx_release_all();
    }
}

/* A spare without memory for it says so: it lives, and a launch introduces the kernel there. */
TEST(what_could_not_be_learned_is_introduced) {
    struct scene s = open_scene(1, "*:learned:1=fail", NULL);
    square_ok(&s, s.stream);
    const pid_t spare = await_spare(s.context, ", ready");
    square_ok(&s, s.stream);
    WAIT_UNTIL(find_spare(s.context, ", for tenant \"\", 0 known kernels", "compiles"), 20000);
    hand_over(s.stream, spare);
    square_ok(&s, s.stream);
    BHT_EQ(bh_stream_worker_pid(s.stream), spare);
}

TEST(more_kernels_than_a_spare_can_learn) {
    bh_context_options options = fx_options();
    bh_context *context = NULL;
    bh_detail detail;
    BHT_EQ(options.spare_kernels, 0); /* blame stays certain unless the host asks for this */
    options.spare_kernels = 33;
    BHT_EQ(bh_context_create(&options, &context, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_OVER);
    BHT_STR_EQ(detail.subject_name, "options.spare_kernels");
}
