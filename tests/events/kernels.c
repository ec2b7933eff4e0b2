/* Cases 28 to 30 and 32 to 34: kernels are what they are, not what they are called (K1), and what
 * is kept of them is bounded (K2). Case 31 is in collisions.c. */
#include "stage.h"

#include <pthread.h>
#include <stdio.h>

static bh_kernel *named(bh_context *context, const char *file, const char *name) {
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    return fx_kernel_with(context, file, &options);
}

static bh_kernel *variant(bh_context *context, uint32_t value, const char *name) {
    const bh_specialization constant = {.constant_id = 0, .size = 4, .bits = value};
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = name;
    options.specializations = &constant;
    options.specialization_count = 1;
    return fx_kernel_with(context, "variant", &options);
}

static bh_event *launch_variant(bh_stream *stream, bh_kernel *kernel, bh_buffer *words,
                                uint32_t at) {
    const bh_binding binding = bh_bind_read_write(0, words);
    const uint32_t one[3] = {1, 1, 1};
    bh_event *event = NULL;
    BHT_EQ(bh_launch(stream, kernel, one, &binding, 1, &at, sizeof at, &event, NULL), BH_OK);
    return event;
}

static bh_command unary(bh_kernel *kernel, bh_binding bindings[2], bh_buffer *in, bh_buffer *out) {
    bindings[0] = bh_bind_read(0, in);
    bindings[1] = bh_bind_write(1, out);
    return fx_dispatch(kernel, bindings, 2);
}

TEST(case_28_one_name_for_two_types) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_kernel *half = named(s.context, "half", "square");
    bh_kernel *full = named(s.context, "square", "square");
    BHT_STR_EQ(bh_kernel_name(half), bh_kernel_name(full));
    /* 2.0 and 3.0 as 16-bit floats. */
    bh_buffer *pairs = fx_words(s.context, STAGE_FLOATS, 0x42004000u);
    bh_buffer *squares = fx_words(s.context, STAGE_FLOATS, 0);
    bh_binding bindings[2][2];
    const bh_command batch[] = {unary(half, bindings[0], pairs, squares),
                                unary(full, bindings[1], s.x, s.y)};
    ev_ready(ev_submit(s.a, batch, 2, NULL, 0));
    ev_squares(s.y, 1);
    const uint32_t *words = fx_pointer(squares);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        BHT_EQ(words[i], 0x48804400u); /* 4.0 and 9.0 */
    }
}

TEST(case_29_one_name_for_two_sources) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_kernel *twice = named(s.context, "twice", "square");
    uint8_t one[32], other[32];
    bh_kernel_hash(twice, one);
    bh_kernel_hash(s.square, other);
    BHT_TRUE(memcmp(one, other, sizeof one) != 0);
    bh_binding bindings[4][2];
    /* Each after the other has run, too: nothing of it is found by its name. */
    const bh_command batch[] = {
        unary(twice, bindings[0], s.x, s.z), unary(s.square, bindings[1], s.x, s.y),
        unary(twice, bindings[2], s.z, s.w), unary(s.square, bindings[3], s.y, s.z)};
    ev_ready(ev_submit(s.a, batch, 4, NULL, 0));
    ev_squares(s.y, 1);
    ev_squares(s.z, 2);
    const float *floats = (const float *)(const void *)fx_pointer(s.w);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        BHT_TRUE(floats[i] == 4.0f * (float)i);
    }
}

TEST(case_30_one_source_and_other_constants) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_kernel *plain = named(s.context, "variant", "variant");
    bh_kernel *seven = variant(s.context, 7, "variant"), *nine = variant(s.context, 9, "variant");
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = "variant";
    options.trusted = true;
    bh_kernel *trusted = fx_kernel_with(s.context, "variant", &options);
    bh_kernel *kernels[] = {plain, seven, nine, trusted, seven};
    static const uint32_t values[] = {1, 7, 9, 1, 7};
    uint64_t before = fx_stats(s.context).kernels_introduced;
    bh_buffer *words = fx_words(s.context, BHT_COUNT(kernels), 0);
    bh_event *events[BHT_COUNT(kernels)];
    for (uint32_t i = 0; i < BHT_COUNT(kernels); i++) {
        events[i] = launch_variant(s.a, kernels[i], words, i);
    }
    for (uint32_t i = 0; i < BHT_COUNT(kernels); i++) {
        ev_ready(events[i]);
    }
    const uint32_t *word = fx_pointer(words);
    for (uint32_t i = 0; i < BHT_COUNT(kernels); i++) {
        BHT_EQ(word[i], values[i]);
    }
    BHT_EQ(fx_stats(s.context).kernels_introduced, before + 4);
}

/* The same code guarded in another way: what workgroup memory begins with. */
TEST(case_30_one_source_and_other_noise) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    static const uint32_t noise[] = {0, 1, 2, 0, 1};
    enum { RUNS = BHT_COUNT(noise), LANES = 64 };
    const bh_stats before = fx_stats(s.context);
    uint32_t found[RUNS][LANES];
    uint8_t hashes[RUNS][32];
    for (uint32_t i = 0; i < RUNS; i++) {
        bh_kernel_options options = {.struct_size = sizeof options};
        options.noise = noise[i];
        bh_kernel *kernel = fx_kernel_with(s.context, "unwritten", &options);
        bh_kernel_hash(kernel, hashes[i]);
        bh_buffer *words = fx_words(s.context, LANES, 7);
        const bh_binding binding = bh_bind_read_write(0, words);
        ev_ready(fx_launch(s.a, kernel, 1, &binding, 1, 0));
        memcpy(found[i], fx_pointer(words), sizeof found[i]);
        for (uint32_t k = 0; k < LANES; k++) {
            BHT_EQ(found[i][k] == 0, !noise[i]);
        }
        for (uint32_t k = 0; k < i; k++) {
            const bool alike = noise[k] == noise[i];
            BHT_EQ(!memcmp(found[k], found[i], sizeof found[i]), alike);
            BHT_EQ(!memcmp(hashes[k], hashes[i], sizeof hashes[i]), alike);
        }
    }
    const bh_stats after = fx_stats(s.context);
    BHT_EQ(after.kernels, before.kernels + 3);
    BHT_EQ(after.kernels_shared, before.kernels_shared + 2);
    BHT_EQ(after.kernels_introduced, before.kernels_introduced + 3);
}

#define FEW       8u
#define IN_FLIGHT 48u

/* The lane is full of kernels that wait for the gate before them: none of them may be forgotten,
 * though the worker may know only a few. */
TEST(case_32_eviction_spares_what_is_in_flight) {
    bh_context_options options = fx_options();
    options.kernel_limit = FEW;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    fx_ready(stream);
    bh_buffer *words = fx_words(context, IN_FLIGHT, 0);
    const struct fx_held gate = fx_hold(context, stream);
    bh_kernel *kernels[IN_FLIGHT];
    bh_event *events[IN_FLIGHT];
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        kernels[i] = variant(context, 100 + i, "variant");
        events[i] = launch_variant(stream, kernels[i], words, i);
    }
    BHT_EQ(fx_stats(context).kernels_introduced, IN_FLIGHT + 1);
    BHT_EQ(fx_stats(context).kernels_evicted, 0);
    fx_open(gate.word);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        ev_ready(events[i]);
    }
    ev_ready(gate.event);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        BHT_EQ(fx_pointer(words)[i], 100 + i);
    }
    /* Now that nothing is, the next use makes room. */
    ev_ready(launch_variant(stream, kernels[IN_FLIGHT - 1], words, 0));
    BHT_EQ(fx_pointer(words)[0], 100 + IN_FLIGHT - 1);
    BHT_EQ(fx_stats(context).kernels_evicted, IN_FLIGHT + 1 - FEW);
}

#define BATCH 64u

TEST(case_32_many_variants) {
    const uint32_t count = bht_nightly() ? 100000 : 320;
    bh_context_options options = fx_options();
    options.kernel_limit = FEW;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    pid_t pid = fx_ready(stream);
    bh_kernel **kernels = calloc(count, sizeof *kernels);
    BHT_TRUE(kernels);
    bh_buffer *words = fx_words(context, BATCH, 0);
    size_t descriptors = 0;
    uint64_t resident = 0;
    for (uint32_t first = 0; first < count; first += BATCH) {
        bh_event *events[BATCH];
        uint32_t n = count - first < BATCH ? count - first : BATCH;
        for (uint32_t i = 0; i < n; i++) {
            kernels[first + i] = variant(context, first + i, "variant");
            events[i] = launch_variant(stream, kernels[first + i], words, i);
        }
        for (uint32_t i = 0; i < n; i++) {
            ev_ready(events[i]);
        }
        for (uint32_t i = 0; i < n; i++) {
            BHT_EQ(fx_pointer(words)[i], first + i);
        }
        if (first == 0) {
            descriptors = bht_count_descriptors(getpid());
            resident = bht_resident_bytes(pid);
        }
    }
    bh_stats stats = fx_stats(context);
    BHT_EQ(stats.kernels, count);
    BHT_EQ(stats.kernels_introduced, count);
    BHT_GE(stats.kernels_evicted, count - FEW - BATCH);
    /* All of them are there still, and cost no descriptor; their worker keeps a few. */
    BHT_LE(bht_count_descriptors(getpid()), descriptors + 4);
    /* A worker with lavapipe grows by a little over 1 KiB for each compile; had it kept the
     * kernels, let alone their pipelines, it would be many times that. */
    if (bht_nightly() && !BHT_ASAN) {
        BHT_LE(bht_resident_bytes(pid), resident + (64ull << 20) + (uint64_t)count * 2048);
    }
    /* The first one was forgotten long ago. */
    ev_ready(launch_variant(stream, kernels[0], words, 1));
    BHT_EQ(fx_pointer(words)[1], 0);
    BHT_EQ(fx_stats(context).kernels_introduced, count + 1);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
    for (uint32_t i = 0; i < count; i++) {
        bh_kernel_release(kernels[i]);
    }
    BHT_EQ(fx_stats(context).kernels, 0);
    free(kernels);
}

TEST(case_32_a_respawned_worker_is_told_again) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    pid_t pid = fx_ready(stream);
    bh_kernel *kernel = variant(context, 5, "variant");
    bh_buffer *words = fx_words(context, 1, 0);
    ev_ready(launch_variant(stream, kernel, words, 0));
    fx_kill(pid, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(stream) != pid, 20000);
    fx_pointer(words)[0] = 0;
    ev_ready(launch_variant(stream, kernel, words, 0));
    BHT_EQ(fx_pointer(words)[0], 5);
    BHT_EQ(fx_stats(context).kernels_introduced, 2);
    BHT_EQ(fx_stats(context).kernels, 1);
}

/* The driver's compiler fails for the first kernel of a's worker: once, so that it would succeed if
 * it were asked again. */
TEST(case_33_a_failed_compile_fails_its_own) {
    struct stage s = stage_open_with("1:pipeline:1=fail", FX_SECONDS);
    bh_kernel *bad = named(s.context, "twice", "bad");
    bh_binding bindings[2];
    bh_command command = unary(bad, bindings, s.x, s.w);
    /* What is queued behind it: one needs its output, one does not. */
    bh_event *failed = ev_submit(s.a, &command, 1, NULL, 0);
    bh_event *good = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    bh_event *needs = ev_square(&s, s.a, s.w, s.z, NULL, 0);
    bh_verdict verdict = ev_poisoned(failed, BH_COMPILE_FAILED, failed, 0, BH_EXECUTED_NO);
    BHT_STR_EQ(verdict.kernel_name, "bad");
    BHT_STR_HAS(verdict.message, "vkCreateComputePipelines: VK_ERROR_UNKNOWN");
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_EQ(verdict.signal, 0);
    ev_content_poisoned(s.w, BH_COMPILE_FAILED);
    ev_poisoned(needs, BH_COMPILE_FAILED, failed, 1, BH_EXECUTED_NO);
    ev_ready(good);
    ev_squares(s.y, 1);
    /* Another worker compiles it: the failure is not the kernel's for ever. */
    ev_ready(ev_submit(s.b, &command, 1, NULL, 0));
    BHT_EQ(((float *)(void *)fx_pointer(s.w))[3], 6);
    /* Its own worker does not remember it as a success, although it would be one now, and not under
     * another handle. Nothing has died. */
    bh_kernel *same = named(s.context, "twice", "bad");
    command.dispatch.kernel = same;
    failed = ev_submit(s.a, &command, 1, NULL, 0);
    good = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    verdict = ev_poisoned(failed, BH_COMPILE_FAILED, failed, 0, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "vkCreateComputePipelines: VK_ERROR_UNKNOWN");
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_EQ(verdict.signal, 0);
    ev_ready(good);
    BHT_EQ(bh_stream_worker_pid(s.a), s.pid);
    /* It had run another kernel before it said so again: it could have been a lie, so the next
     * worker is asked (T2). */
    ev_ready(ev_submit(s.a, &command, 1, NULL, 0));
    BHT_NE(bh_stream_worker_pid(s.a), s.pid);
    ev_well(&s);
}

TEST(case_33_a_refused_module_fails_its_own) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    /* The magic number, a version, and nothing that makes sense. */
    static const uint32_t garbage[] = {0x07230203, 0x00010000, 0, 8, 0, 0x12345678};
    bh_kernel_options options = {.struct_size = sizeof options};
    options.name = "square";
    bh_kernel *bad = NULL;
    BHT_EQ(bh_kernel_create_spirv(s.context, garbage, sizeof garbage, &options, &bad, NULL), BH_OK);
    bh_binding bindings[2];
    const bh_command command = unary(bad, bindings, s.x, s.w);
    for (int i = 0; i < 3; i++) { /* the second and third use are not its first */
        bh_event *refused = ev_submit(s.a, &command, 1, NULL, 0);
        bh_event *good = ev_square(&s, s.a, s.x, s.y, NULL, 0);
        bh_verdict verdict = ev_poisoned(refused, BH_INVALID_KERNEL, refused, 0, BH_EXECUTED_NO);
        BHT_STR_EQ(verdict.kernel_name, "square");
        ev_ready(good);
        ev_squares(s.y, 1);
    }
    /* The second refusal came from a worker that had run square: it could have been a lie, and the
     * third came from another one (T2). */
    BHT_TRUE(bh_stream_worker_pid(s.a) != s.pid);
    /* Another worker finds out for itself, and says the same. */
    bh_event *elsewhere = ev_submit(s.b, &command, 1, NULL, 0);
    ev_poisoned(elsewhere, BH_INVALID_KERNEL, elsewhere, 0, BH_EXECUTED_NO);
    bh_kernel_release(bad);
    /* Made anew, it is no success either. */
    BHT_EQ(bh_kernel_create_spirv(s.context, garbage, sizeof garbage, &options, &bad, NULL), BH_OK);
    const bh_command again = unary(bad, bindings, s.x, s.w);
    bh_event *anew = ev_submit(s.b, &again, 1, NULL, 0);
    ev_poisoned(anew, BH_INVALID_KERNEL, anew, 0, BH_EXECUTED_NO);
    ev_well(&s);
}

#define THREADS 16u

struct user {
    pthread_barrier_t *barrier;
    bh_context *context;
    bh_stream *stream;
    bh_buffer *words;
    bh_kernel *kernel;
    uint32_t index;
};

static void *use_first(void *argument) {
    struct user *user = argument;
    char name[16];
    snprintf(name, sizeof name, "user-%u", user->index);
    pthread_barrier_wait(user->barrier);
    user->kernel = variant(user->context, 77, name);
    bh_event *event = launch_variant(user->stream, user->kernel, user->words, user->index);
    bh_verdict verdict = fx_expect(event, BH_OK);
    BHT_STR_EQ(verdict.kernel_name, name);
    return NULL;
}

static void use_at_once(struct user users[THREADS], bh_context *context, bh_stream *stream,
                        bh_buffer *words) {
    pthread_barrier_t barrier;
    BHT_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){&barrier, context, stream, words, NULL, i};
        bht_start(use_first, &users[i]);
    }
    bht_join();
    pthread_barrier_destroy(&barrier);
}

/* A worker that compiled a second time would die of it; the next kernel's compile shows that. */
TEST(case_34_one_compile_serves_all) {
    bh_context *context = fx_context("1:compile:2=segv");
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_ready(stream);
    bh_buffer *words = fx_words(context, THREADS, 0);
    struct user users[THREADS];
    use_at_once(users, context, stream, words);
    for (uint32_t i = 0; i < THREADS; i++) {
        BHT_EQ(fx_pointer(words)[i], 77);
    }
    bh_kernel *second = variant(context, 78, "second");
    fx_expect(launch_variant(stream, second, words, 0), BH_COMPILE_FAILED);
}

TEST(case_34_first_use_by_many_threads) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_ready(stream);
    bh_buffer *words = fx_words(context, THREADS, 0);
    struct user users[THREADS];
    use_at_once(users, context, stream, words);
    bh_stats stats = fx_stats(context);
    BHT_EQ(stats.kernels, 1);
    BHT_EQ(stats.kernels_shared, THREADS - 1);
    BHT_EQ(stats.kernels_introduced, 1);
    uint8_t one[32], other[32];
    bh_kernel_hash(users[0].kernel, one);
    for (uint32_t i = 0; i < THREADS; i++) {
        BHT_EQ(fx_pointer(words)[i], 77);
        bh_kernel_hash(users[i].kernel, other);
        BHT_MEM_EQ(one, other, sizeof one);
    }
    /* It stays until the last of them is released, and is made anew after that. */
    for (uint32_t i = 0; i < THREADS; i++) {
        BHT_EQ(fx_stats(context).kernels, 1);
        bh_kernel_release(users[i].kernel);
    }
    BHT_EQ(fx_stats(context).kernels, 0);
    bh_kernel *again = variant(context, 77, "again");
    ev_ready(launch_variant(stream, again, words, 0));
    BHT_EQ(fx_stats(context).kernels_introduced, 2);
}

TEST(bytes_of_kernels_are_limited) {
    /* Each of these is over the limit, and stays as long as it is in use. */
    bh_context_options options = fx_options();
    options.kernel_limit_bytes = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_kernel *one = variant(context, 1, "one"), *two = variant(context, 2, "two");
    bh_buffer *words = fx_words(context, 2, 0);
    for (uint32_t i = 0; i < 4; i++) {
        ev_ready(launch_variant(stream, i % 2 ? two : one, words, i % 2));
        BHT_EQ(fx_stats(context).kernels_introduced, i + 1);
        BHT_EQ(fx_stats(context).kernels_evicted, i);
    }
    BHT_EQ(fx_pointer(words)[0], 1);
    BHT_EQ(fx_pointer(words)[1], 2);
    BHT_GT(fx_stats(context).kernel_bytes, 2 * 20);
}
