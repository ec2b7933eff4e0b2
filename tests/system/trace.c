/* A driver that makes a system call which its table does not know: the verdict and the doctor name
 * the call, the driver, its version (E9, E14), and bh_trace_driver lists what a driver calls. */
#include "fake_driver.h"
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

static bool installed;

static void install(void) {
    fake_driver_install(BHT_FAKE_TRANSFER);
    installed = true;
}

static void remove_driver(void) {
    if (installed) {
    }
}

static bh_traced_call calls[1500] = {{.struct_size = sizeof calls[0]}};

static bh_trace trace(bh_context *context, size_t *out_count) {
    bh_trace seen = {.struct_size = sizeof seen};
    bh_detail detail = {0};
    if (bh_trace_driver(context, NULL, &seen, calls, 1500, out_count, &detail) != BH_OK) {
        BHT_FAIL("bh_trace_driver: %s", detail.message);
    }
    BHT_LE(*out_count, 1500);
    return seen;
}

static const bh_traced_call *find(size_t count, const char *phase, const char *name,
                                  const char *part) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(calls[i].phase, phase) == 0 && strcmp(calls[i].call, name) == 0 &&
            strstr(calls[i].arguments, part)) {
            return &calls[i];
        }
    }
    return NULL;
}

static void expect_call(size_t count, const char *phase, const char *name, const char *part,
                        bh_call_judgement judgement) {
    const bh_traced_call *call = find(count, phase, name, part);
    if (!call) {
        BHT_FAIL("phase %s has no %s %s", phase, name, part);
    }
    BHT_EQ(call->judgement, judgement);
    BHT_EQ(call->error != 0, judgement == BH_CALL_ANSWERED);
    BHT_GE(call->count, 1);
}

/* Of the whole course the table knows everything, and what it needs is in the list. */
TEST(what_a_driver_calls) {
    bh_context *context = fx_context(NULL);
    size_t count;
    bh_trace seen = trace(context, &count);
    for (size_t i = 0; i < count; i++) {
        if (calls[i].judgement == BH_CALL_UNKNOWN) {
            printf("  unknown: %s %s in %s\n", calls[i].call, calls[i].arguments, calls[i].phase);
        }
    }
    BHT_STR_EQ(seen.failure, "");
    BHT_EQ(seen.unknown, 0);
    BHT_EQ(seen.dropped, 0);
    BHT_STR_EQ(seen.first_unknown, "");
    BHT_TRUE(seen.complete);
    BHT_TRUE(seen.known);
    BHT_TRUE(seen.tried);
    BHT_STR_EQ(seen.driver, "lavapipe");
    BHT_STR_HAS(seen.version, "Mesa ");
    BHT_STR_HAS(seen.made_for, "Mesa ");
    expect_call(count, "device", "clone", "CLONE_THREAD", BH_CALL_ALLOWED);
    expect_call(count, "device", "clone3", "", BH_CALL_ANSWERED);
    expect_call(count, "device", "openat", "/proc/stat (not there)", BH_CALL_ANSWERED);
    expect_call(count, "warm-up", "mprotect", "PROT_READ|PROT_EXEC", BH_CALL_ALLOWED);
    expect_call(count, "running", "mprotect", "PROT_READ|PROT_EXEC", BH_CALL_ALLOWED);
    expect_call(count, "running", "mmap", "MAP_SHARED|MAP_POPULATE", BH_CALL_ALLOWED);
    /* What stands for device memory there is attached and copied; the rest is left out. */
    expect_call(count, "memory", "mmap", "MAP_SHARED|MAP_POPULATE", BH_CALL_ALLOWED);
    BHT_STR_HAS(seen.left_out, "importing device memory: the device exports none");
    BHT_STR_HAS(seen.left_out, "a sentinel: the device has no queue for transfers alone");
    BHT_TRUE(!find(count, "sentinel", "", ""));
    /* Another one, and fewer calls than there are. */
    bh_detail detail;
    size_t again = 0;
    BHT_EQ(bh_trace_driver(context, "lavapipe:0", &seen, calls, 1, &again, &detail), BH_OK);
    BHT_GT(again, 1);
    BHT_TRUE(seen.complete);
}

/* A device that shares its memory and has a queue for transfers (fake_transfer.c): one process
 * makes and exports memory, another imports it, a sentinel imports abort words and sets them. What
 * they all call is in its phase, and is put to the same table. */
TEST(memory_and_a_sentinel) {
    install();
    bh_context *context = fx_context("*:poses_as_gpu:*=fail");
    size_t count;
    bh_trace seen = trace(context, &count);
    BHT_STR_EQ(seen.failure, "");
    BHT_STR_EQ(seen.first_unknown, "");
    BHT_STR_EQ(seen.left_out, "");
    BHT_TRUE(seen.complete);
    expect_call(count, "device", "memfd_create", "", BH_CALL_ALLOWED); /* abort words */
    expect_call(count, "memory", "memfd_create", "", BH_CALL_ALLOWED);
    expect_call(count, "sentinel", "clone", "CLONE_THREAD", BH_CALL_ALLOWED);
    expect_call(count, "words", "mmap", "PROT_READ|PROT_WRITE MAP_SHARED", BH_CALL_ALLOWED);
}

/* Lavapipe's own table: filter B makes no memory that other processes can have. */
TEST(memory_is_judged_by_filter_b) {
    install();
    bh_context *context = fx_context(NULL);
    size_t count;
    bh_trace seen = trace(context, &count);
    BHT_STR_HAS(seen.first_unknown, "memfd_create");
    BHT_STR_HAS(seen.first_unknown, "in phase memory");
}

/* A call that no table knows, in |phase|, made at |point| of the course. */
static void named_late(const char *point, const char *phase) {
    char faults[96], call[128];
    snprintf(faults, sizeof faults, "*:poses_as_gpu:*=fail,*:%s:*=unlisted", point);
    snprintf(call, sizeof call, "ioctl SIOCGIFNAME (0x8910) in phase %s", phase);
    install();
    bh_context *context = fx_context(faults);
    size_t count;
    bh_trace seen = trace(context, &count);
    BHT_EQ(seen.unknown, 1);
    BHT_STR_EQ(seen.first_unknown, call);
}

TEST(unknown_while_memory_is_made) {
    named_late("make", "memory");
}
TEST(unknown_while_words_are_set) {
    named_late("set", "words");
}

/* Memory that cannot be imported, and a sentinel that dies: the trace says whose fault it was. */
TEST(the_others_fail) {
    install();
    static const struct {
        const char *faults, *failure;
    } cases[] = {
        {"*:poses_as_gpu:*=fail,*:import:*=fail", "importing device memory: vkAllocateMemory"},
        {"*:poses_as_gpu:*=fail,*:set:*=segv", "the sentinel: it was killed by SIGSEGV"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        bh_context *context = fx_context(cases[i].faults);
        size_t count = 0;
        bh_trace seen = trace(context, &count);
        BHT_TRUE(!seen.complete);
        BHT_STR_HAS(seen.failure, cases[i].failure);
        fx_release_all();
    }
}

/* |faults| has each worker make a call that no table knows, in |phase|. */
static void named(const char *faults, const char *phase, bool doctor) {
    char call[128];
    snprintf(call, sizeof call, "ioctl SIOCGIFNAME (0x8910) in phase %s", phase);
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "new", FX_SECONDS);
    bh_detail why = {0};
    BHT_EQ(bh_stream_wait_ready(stream, 3 * FX_SECONDS, &why), BH_UNSUPPORTED);
    BHT_EQ(why.reason, BH_REASON_START_SYSTEM_CALL);
    BHT_TRUE(strncmp(why.message, "worker ", 7) == 0 && atoi(why.message + 7) > 0);
    BHT_STR_HAS(why.message, call);
    BHT_STR_HAS(why.message, "driver lavapipe (Mesa ");
    BHT_STR_HAS(why.message, "table made for Mesa ");
    BHT_STR_HAS(why.message, "report this line");
    /* E14: what was to run there says the same, and never ran. */
    bh_buffer *data = fx_words(context, 64, 1);
    const bh_verdict verdict = fx_expect(fx_fill(stream, data, 0), BH_UNSUPPORTED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, call);
    size_t count;
    bh_trace seen = trace(context, &count);
    BHT_EQ(seen.unknown, 1);
    BHT_STR_EQ(seen.first_unknown, call);
    expect_call(count, phase, "ioctl", "SIOCGIFNAME", BH_CALL_UNKNOWN);
    if (doctor) {
        const bh_check *check = fx_doctor_says(context, "system-calls");
        BHT_EQ(check->result, BH_CHECK_BROKEN);
        BHT_STR_HAS(check->text, call);
        BHT_STR_HAS(check->advice, "--trace-driver");
    }
}

TEST(unknown_while_a_device_is_made) {
    named("*:device:*=unlisted", "device", false);
}
TEST(unknown_while_it_warms_up) {
    named("*:warm_up:*=unlisted", "warm-up", true);
}
TEST(unknown_behind_filter_b) {
    named("*:ready:*=unlisted", "running", false);
}

/* Once it runs, its kernels may be to blame: nothing of theirs is traced, and the verdict says how
 * the driver can be (E9, E14). */
TEST(unknown_while_it_runs) {
    bh_context *context = fx_context("1:started:1=unlisted");
    bh_stream *stream = fx_stream(context, "running", FX_SECONDS);
    fx_ready(stream);
    bh_buffer *data = fx_words(context, 64, 1);
    bh_verdict verdict = fx_expect(fx_fill(stream, data, 0), BH_SECCOMP);
    BHT_EQ(verdict.signal, SIGSYS);
    BHT_STR_HAS(verdict.message, "bulkhead doctor --trace-driver");
}

/* A driver that dies in its trace is told of, too. */
TEST(a_death_in_the_trace) {
    bh_context *context = fx_context("*:warm_up:*=segv");
    size_t count;
    bh_trace seen = trace(context, &count);
    BHT_TRUE(!seen.complete);
    BHT_STR_HAS(seen.failure, "SIGSEGV");
    BHT_EQ(seen.unknown, 0);
    BHT_TRUE(find(count, "device", "clone", "CLONE_THREAD"));
    BHT_TRUE(!find(count, "running", "mmap", ""));
}

TEST(arguments) {
    bh_context *context = fx_context(NULL);
    bh_trace seen = {.struct_size = sizeof seen};
    bh_detail detail;
    size_t count;
    BHT_EQ(bh_trace_driver(context, NULL, NULL, NULL, 0, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(detail.subject_name, "out_trace");
    BHT_EQ(bh_trace_driver(context, NULL, &seen, NULL, 1, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(detail.subject_name, "out_calls");
    BHT_EQ(bh_trace_driver(NULL, NULL, &seen, NULL, 0, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_trace_driver(context, "a b:c", &seen, NULL, 0, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_trace_driver(context, "absent", &seen, NULL, 0, &count, &detail), BH_NO_DEVICE);
}

int main(int argc, char **argv) {
    bht_around(NULL, remove_driver);
    return bht_main(argc, argv, NULL, 0);
}
