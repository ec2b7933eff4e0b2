/* The one place where sentences are made: of each reason, and what else a message has. */
#include "base/detail.h"
#include "base/status.h"
#include "harness.h"

#include <errno.h>
#include <string.h>

/* NAME, 7, 5000000 and TEXT stand for what a call would give. */
static const char *const sentences[] = {
    [BH_REASON_NONE] = "TEXT",
    [BH_REASON_ENTRY_POINT] = "there is no entry point \"NAME\"; the module has TEXT",
    [BH_REASON_WORKGROUPS] = "7 workgroups in NAME, the device allows 5000000 (TEXT)",
    [BH_REASON_COMPILE_DEADLINE] = "the compile deadline of 5 ms passed before the compiler ended",
    [BH_REASON_MEMORY_LIMIT] = "the compiler ran out of its memory of 4 MiB",
    [BH_REASON_ADDRESS_SPACE] =
        "the worker reached the host's limit on the address space (ulimit -v)",
    [BH_REASON_DEVICE_TIME] = "the worker claimed more time on the device than had passed",
    [BH_REASON_NO_WORKER] = "no worker was ready in time; the last start failed: TEXT",
    [BH_REASON_NOT_REGULAR] = "NAME: TEXT",
    [BH_REASON_NOT_SPIRV] = "not SPIR-V, but text that begins \"TEXT\" (7 bytes)",
    [BH_REASON_SELECTOR] = "no device matches 'NAME'; the devices are:TEXT",
    [BH_REASON_NULL] = "NAME is NULL",
    [BH_REASON_RELEASED] = "NAME is NULL or was released",
    [BH_REASON_OTHER_CONTEXT] = "NAME belongs to another context",
    [BH_REASON_FORKED] = "the NAME belongs to the parent process",
    [BH_REASON_DESTROYED] = "the context was destroyed",
    [BH_REASON_CALLBACK] = "a callback must not block",
    [BH_REASON_MEMORY] = "out of memory (Cannot allocate memory)",
    [BH_REASON_SYSTEM_CALL] = "NAME",
    [BH_REASON_OVER] = "NAME is 7, over 5000000",
    [BH_REASON_ZERO] = "NAME is 0",
    [BH_REASON_UNKNOWN_BIT] = "NAME 0x7 has an unknown bit",
    [BH_REASON_UNKNOWN_VALUE] = "NAME 7 is not a TEXT",
    [BH_REASON_CUT_SHORT] = "not a whole SPIR-V module: it has 7 bytes, and a module has "
                            "at least 5000000, a multiple of 4; it was probably cut short",
    [BH_REASON_COMPILER_KILLED] = "the compiler was killed from outside (TEXT)",
    [BH_REASON_COMPILER_CRASHED] = "the compiler crashed (TEXT)",
    [BH_REASON_FILE] = "NAME: TEXT",
    [BH_REASON_HEADER_LATE] = "its header was not parsed in time",
    [BH_REASON_REFUSED] = "NAME (Success): TEXT",
    [BH_REASON_SELECTOR_SEVERAL] = "'NAME' matches more than one device:TEXT",
    [BH_REASON_DRIVER_ABSENT] = "driver not present: TEXT",
    [BH_REASON_NO_DRIVER] = "no known Vulkan driver is present (TEXT)",
    [BH_REASON_DRIVER_BROKEN] = "cannot load driver NAME: TEXT",
    [BH_REASON_NO_PROGRAM] = "TEXTNAME cannot be run",
    [BH_REASON_START] = "NAME cannot be started",
    [BH_REASON_MUTE] = "the worker executable NAME was started 7 times and ended each time without "
                       "a message; it is limited: TEXT",
    [BH_REASON_PROCESS_DIED] = "NAME died while it started",
    [BH_REASON_OPENER] = "the process that opens files (NAME) TEXT",
    [BH_REASON_OPEN_LATE] = "NAME: it could not be opened in time",
    [BH_REASON_DESCRIPTORS] = "TEXT needs 7 free file descriptors, but only 5000000 are free",
    [BH_REASON_HARD_LIMIT] = "a worker needs 7 file descriptors, but the hard limit is 5000000",
    [BH_REASON_SHARED_FILES] = "a worker and the host share 7 bytes",
    [BH_REASON_TOO_LONG] = "NAME is longer than 5000000 bytes",
    [BH_REASON_NOT_TEXT] = "NAME is not UTF-8, or has control characters",
    [BH_REASON_EMPTY] = "NAME is empty",
    [BH_REASON_CANCELLED] = "cancelled",
    [BH_REASON_ARGUMENT] = "NAME TEXT",
    [BH_REASON_OUTSIDE] = "NAME 7 is outside the TEXT of 5000000 bytes",
    [BH_REASON_PAST_END] = "offset 7 and size reach past the end of the TEXT of 5000000 bytes",
    [BH_REASON_TOO_LARGE] = "NAME is 7, over the limit of 5000000",
    [BH_REASON_NO_ROOM] =
        "7 bytes are more than the machine, or this process's cgroup, has available",
    [BH_REASON_BYTES] = "7 bytes",
    [BH_REASON_PENDING] = "TEXT 7 has not ended",
    [BH_REASON_IMPOSSIBLE] = "NAME: TEXT gave an impossible answer",
    [BH_REASON_NOT_FROM_FILE] = "the buffer is not from a file",
    [BH_REASON_LATE] = "NAME was not ready in time: TEXT",
    [BH_REASON_DIED] = "NAME has died",
    [BH_REASON_UNREACHABLE] = "NAME TEXT",
    [BH_REASON_FOLDER] = "the runtime folder NAME TEXT",
    [BH_REASON_NO_SELECTOR] =
        "NAME is not DRIVER, DRIVER:INDEX, INDEX (bulkhead devices lists them) or 'any'",
    [BH_REASON_DEVICE_MEMORY] = "7 bytes of device memory were asked for; TEXT",
    [BH_REASON_REMOTE] = "the buffer is in device memory, which has no host pointer",
    [BH_REASON_UNSHARED] = "memory of the device NAME cannot be shared between processes",
    [BH_REASON_BUSY] = "TEXT",
    [BH_REASON_COMPILING] = "NAME is being compiled",
    [BH_REASON_HOST_MEMORY] = "out of memory for TEXT",
    [BH_REASON_STEP] = "cannot NAME: TEXT",
    [BH_REASON_SYSTEM_STEP] = "cannot NAME: TEXT",
    [BH_REASON_WORKER_ID] = "BULKHEAD_WORKER_ID is 'NAME': give a user and group of this user "
                            "namespace (/proc/self/uid_map, gid_map), from 1 to 5000000",
    [BH_REASON_DRIVER_NAME] = "no driver is called 'NAME' (known: TEXT)",
    [BH_REASON_DRIVER_USE] = "driver NAME: TEXT",
    [BH_REASON_ZYGOTE_DIED] = "the driver's process (zygote) TEXT (driver library NAME)",
    [BH_REASON_DEVICE_LACKS] = "NAME has no TEXT",
    [BH_REASON_DEVICE_GONE] = "the driver has no device TEXT",
    [BH_REASON_DEVICE_LIMIT] = "NAME: 7, the device allows 5000000 (TEXT)",
    [BH_REASON_GUARD_LIMIT] = "NAME: 7, the guard allows 5000000TEXT",
    [BH_REASON_BINDING_RANGE] =
        "NAME of kernel \"TEXT\": the range ends at byte 7 of a buffer of 5000000 bytes",
    [BH_REASON_BINDING_EMPTY] = "NAME of kernel \"TEXT\": the range is empty",
    [BH_REASON_BINDING_OFFSET] = "NAME: offset 7 is not a multiple of 5000000 (TEXT)",
    [BH_REASON_BINDING_SHORT] =
        "NAME of kernel \"TEXT\": the uniform block has 5000000 bytes, 7 were given",
    [BH_REASON_BINDING_UNKNOWN] = "NAME was given, but kernel \"TEXT\" does not use it",
    [BH_REASON_BINDING_MISSING] = "NAME of kernel \"TEXT\" was not given",
    [BH_REASON_BINDING_TWICE] = "NAME of kernel \"TEXT\" was given twice",
    [BH_REASON_PARAMETER_BYTES] =
        "NAME of kernel \"TEXT\" has 7 bytes, so it is no pointer to a buffer",
    [BH_REASON_BINDING_WRITTEN] =
        "NAME of kernel \"TEXT\" is bound for reading, but the kernel writes to it: bind it for "
        "writing, or declare it readonly in the kernel",
    [BH_REASON_BINDING_READONLY] =
        "NAME of kernel \"TEXT\" is bound for overwriting, but the kernel declares it readonly",
    [BH_REASON_BUFFER_ACCESS] = "buffer 7 is TEXT",
    [BH_REASON_PUSH_BYTES] = "kernel \"NAME\" takes 5000000 bytes of push constants, 7 were given",
    [BH_REASON_BINDING_KIND] = "NAME is TEXT",
    [BH_REASON_NOT_VALID] = "not valid SPIR-V: TEXT",
    [BH_REASON_CAPABILITY] = "capability NAME (7) is not supported by this device, or not allowed: "
                             "compile the kernel without it",
    [BH_REASON_EXTENSION] = "extension NAME is not supported by this device, or not allowed "
                            "(OpExtension): compile the kernel without it",
    [BH_REASON_INSTRUCTION_SET] =
        "the instruction set NAME is not allowed (OpExtInstImport), only GLSL.std.450 and "
        "NonSemantic.* are: compile the kernel for Vulkan",
    [BH_REASON_NOT_COMPUTE] = "entry point \"NAME\" is not for compute (execution model TEXT)",
    [BH_REASON_SPECIALIZATION] =
        "specialization constant NAME has 5000000 bytes in the module; 7 were given",
    [BH_REASON_KERNEL_RULE] = "TEXT",
    [BH_REASON_FILE_CHANGED] = "TEXT",
    [BH_REASON_FILE_READ] = "TEXT",
    [BH_REASON_FILE_FORMAT] = "TEXT",
    [BH_REASON_KERNEL_LIMIT] = "TEXT",
    [BH_REASON_DEVICE_HEAP] = "7 bytes of device memory were asked for; the device has 5000000 "
                              "bytes, of which TEXT are free",
    [BH_REASON_BINDING_ELEMENT] = "NAME was given, but kernel \"TEXT\" has 5000000 there",
    [BH_REASON_TRACE] = "TEXT",
    [BH_REASON_NOT_AGAIN] = "TEXT",
    [BH_REASON_COMMAND] = "TEXT",
    [BH_REASON_TASK] = "TEXT",
    [BH_REASON_BASELINE] = "the baseline NAME is TEXT",
    [BH_REASON_OUTPUT] = "TEXT",
    [BH_REASON_NO_HOST_CUDA] = "this process has no CUDA: TEXT",
    [BH_REASON_NOT_ON_CUDA] = "NAME is not in the memory of a CUDA device",
    [BH_REASON_GPU_HIDDEN] = "this process does not see the GPU NAME",
    [BH_REASON_HOST_CUDA] = "NAME failed in this process: TEXT",
    [BH_REASON_INJECTED] = "chaos has injected this fault: TEXT",
    [BH_REASON_REFERENCE] = "the reference of NAME cannot judge: TEXT",
    [BH_REASON_COMPILER] = "the compiler could not TEXT",
    [BH_REASON_SOURCE] = "TEXT",
    [BH_REASON_DEVICE_STEP] = "the device cannot NAME: TEXT",
    [BH_REASON_LOST] = "the device was lost TEXT",
    [BH_REASON_WORKER_LACKS] = "this worker cannot TEXT",
    [BH_REASON_STOPPED] = "its kernels were stopped",
    [BH_REASON_LOOP_CUT] = "the driver ends every loop after 5000000 iterations; a loop of this "
                           "kernel ran as many, or nearly: the result may be wrongTEXT",
    [BH_REASON_STRUCT_SIZE] = "NAME: struct_size is 7, which is not the size of a TEXT",
    [BH_REASON_NEWER_FIELD] =
        "NAME: the program sets a field that this library does not know (byte "
        "7 of TEXT knows 5000000)",
    [BH_REASON_TEMPLATE] = "TEXT",
    [BH_REASON_MODULE_BYTES] = "NAME: the module takes 7 bytes, over 5000000",
    [BH_REASON_LATE_ENDS] =
        "stream NAME: too many workers of its tenant \"TEXT\" died and left a kernel that kept the "
        "device busy; the last did so for 5 ms",
    [BH_REASON_START_SYSTEM_CALL] =
        "worker 7 was killed by SIGSYS while starting (step NAME): TEXT",
    [BH_REASON_START_REFUSED] = "TEXT",
    [BH_REASON_IDLE_DEATH] = "worker 7 died while it was idle: TEXT",
    [BH_REASON_LESSON_DEATH] =
        "worker 7 died while it compiled kernel \"NAME\" before it is needed: TEXT",
    [BH_REASON_NEEDS_VULKAN] = "kernel \"NAME\" is SPIR-V, which a CUDA device cannot run",
    [BH_REASON_NEEDS_CUDA] = "kernel \"NAME\" is a CUDA image, which a Vulkan device cannot run",
    [BH_REASON_BLOCK] = "kernel \"NAME\" TEXT",
    [BH_REASON_NOT_IMAGE] = "no image for CUDA: neither PTX, a cubin nor a fatbin, but text that "
                            "begins \"TEXT\" (7 bytes)",
    [BH_REASON_ACCESS_UNKNOWN] =
        "NAME: kernel \"TEXT\" is a CUDA kernel, which does not say what it writes",
    [BH_REASON_WORKER_PROGRAM] = "the worker program cannot be run",
    [BH_REASON_COMPILER_LATE] =
        "the compile deadline of 5 ms passed before a compiler was ready: TEXT",
    [BH_REASON_NO_NVRTC] = "CUDA C++ cannot be compiled here: NVRTC does not load (TEXT)",
};
#define REASONS BHT_COUNT(sentences)

static const char *const names[] = {
#define BH_REASON(NAME, value, STATUS, FROM, SUBJECT, sentence, advice) [value] = #NAME,
#include "base/reason.def"
#undef BH_REASON
};

TEST(each_reason_has_its_sentence) {
    BHT_EQ(BHT_COUNT(names), REASONS);
    for (uint32_t i = 0; i < REASONS; i++) {
        BHT_EQ(!names[i], !sentences[i]);
        if (!names[i]) {
            continue; /* a number that no reason has */
        }
        bh_detail detail;
        const bh_reason reason = (bh_reason)i;
        const bh_status status = BHI_FAIL(&detail, "bh_call", reason, "NAME", .value = 7,
                                          .limit = 5000000, .text = "TEXT");
        BHT_STR_EQ(bh_reason_name(reason), names[i]);
        BHT_EQ(strncmp(detail.message, "bh_call: ", 9), 0);
        BHT_EQ(detail.sentence, 9);
        detail.message[detail.sentence + detail.sentence_length] = '\0';
        BHT_STR_EQ(detail.message + detail.sentence, sentences[i]);
        BHT_EQ(detail.advice != 0, bh_reason_advice(reason)[0] != '\0');
        if (detail.advice) {
            BHT_STR_EQ(detail.message + detail.advice, bh_reason_advice(reason));
        }
        BHT_EQ(detail.status, status);
        BHT_EQ(detail.reason, reason);
        BHT_STR_EQ(detail.subject_name, "NAME");
        BHT_TRUE(detail.value == 7 && detail.limit == 5000000);
        BHT_EQ(detail.sys_errno, reason == BH_REASON_MEMORY ? ENOMEM : 0);
        BHT_TRUE(reason == BH_REASON_NONE || status != BH_OK);
        BHT_EQ(BHI_FAIL(NULL, "bh_call", reason), status);
    }
}

TEST(an_unknown_reason_is_named_so) {
    const bh_reason beyond = (bh_reason)REASONS;
    BHT_STR_EQ(bh_reason_name(beyond), "UNKNOWN");
    BHT_STR_HAS(bh_reason_text(beyond), "unknown reason");
    BHT_STR_EQ(bh_reason_advice(beyond), "");
    BHT_STR_EQ(bh_subject_name((bh_subject)999), "UNKNOWN");
    BHT_STR_EQ(bh_subject_name(BH_SUBJECT_FILE), "FILE");
}

/* A worker gives those reasons that the table lets it give, each with its status alone. */
TEST(a_worker_gives_few_reasons) {
    uint32_t of_worker[REASONS + 2];
    memset(of_worker, 0xff, sizeof of_worker);
#define HOST(value, STATUS)
#define WORKER(value, STATUS)                                           of_worker[value] = BH_##STATUS;
#define BH_REASON(NAME, value, STATUS, FROM, SUBJECT, sentence, advice) FROM(value, STATUS)
#include "base/reason.def"
#undef BH_REASON
    of_worker[BH_REASON_NONE] = UINT32_MAX;
    for (uint32_t i = 0; i < REASONS + 2; i++) {
        for (uint32_t status = 0; status < 300; status++) {
            const bool may = bhi_reason_from_worker(i, status);
            BHT_EQ(may && i != BH_REASON_NONE, status == of_worker[i]);
            BHT_TRUE(i != BH_REASON_NONE || may);
        }
    }
    BHT_TRUE(!bhi_reason_from_worker(BH_REASON_DEVICE_TIME, BH_PROTOCOL)); /* the host's own */
    BHT_TRUE(bhi_reason_from_worker(BH_REASON_ENTRY_POINT, BH_INVALID_KERNEL));
}

TEST(a_call_says_more) {
    bh_detail detail;
    BHI_FAIL(&detail, "bh_call", BH_REASON_RELEASED, "waits", .indexed = true, .index = 3);
    BHT_STR_EQ(detail.message, "bh_call: waits[3] is NULL or was released");
    BHT_STR_EQ(detail.subject_name, "waits[3]");
    BHT_EQ(detail.subject, BH_SUBJECT_ARGUMENT);
    BHI_FAIL(&detail, "", BH_REASON_DESTROYED, .sys_errno = ENOENT);
    BHT_STR_EQ(detail.message, "the context was destroyed: No such file or directory");
    BHI_FAIL(&detail, "", BH_REASON_MEMORY);
    BHT_EQ(detail.sys_errno, ENOMEM);
    BHT_EQ(detail.subject, BH_SUBJECT_NONE);
    BHT_EQ(BHI_FAIL(&detail, "c", BH_REASON_FILE, "f\x1b", .subject = BH_SUBJECT_KERNEL,
                    .status = BH_SYSTEM, .place = "p"),
           BH_SYSTEM);
    BHT_STR_EQ(detail.message, "c: p: f?");
    BHT_EQ(detail.subject, BH_SUBJECT_KERNEL);
    BHI_FAIL(&detail, "c", BH_REASON_NO_WORKER, .said = "what it said", .vk_result = -4);
    BHT_STR_EQ(detail.message, "c: what it said");
    BHT_EQ(detail.vk_result, -4);
}

/* A message is cut so that what to do stays whole. */
TEST(advice_is_not_cut) {
    bh_detail detail;
    char long_text[600];
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text + 400, "\xc3\xa4\xc3\xa4", 4);
    long_text[sizeof long_text - 1] = '\0';
    for (int length = 1; length < 150; length++) {
        char advice[200];
        memset(advice, 'a', (size_t)length);
        advice[length] = '\0';
        BHI_FAIL(&detail, "bh_call", BH_REASON_FILE, "f", .text = long_text, .advice = advice);
        BHT_STR_EQ(detail.message + detail.advice, advice);
        BHT_LE(strlen(detail.message), sizeof detail.message - 1);
        BHT_EQ(detail.message[detail.sentence + detail.sentence_length], ';');
        BHT_EQ(strcspn(detail.message, "?"), strlen(detail.message)); /* whole characters */
    }
}

/* What is behind a failure is its text; the advice stays data. */
TEST(a_failure_follows_from_another) {
    bh_detail detail;
    BHI_FAIL(&detail, "bh_inner", BH_REASON_REFUSED, "clone", .text = "it is forbidden",
             .advice = "allow it", .sys_errno = EPERM);
    BHT_STR_EQ(detail.message,
               "bh_inner: clone (Operation not permitted): it is forbidden; to allow it: allow it");
    BHT_EQ(BHI_FAIL(&detail, "bh_outer", BH_REASON_NO_WORKER, .after = &detail), BH_TIMEOUT);
    BHT_STR_EQ(detail.message,
               "bh_outer: no worker was ready in time; the last start failed: "
               "clone (Operation not permitted): it is forbidden; to allow it: allow it");
    BHT_STR_EQ(detail.message + detail.advice, "allow it");
    BHT_EQ(detail.reason, BH_REASON_NO_WORKER);
    BHT_EQ(detail.sys_errno, EPERM);
    BHI_FAIL(&detail, "bh_outer", BH_REASON_NO_WORKER, .sys_errno = EIO, .after = &detail);
    BHT_EQ(detail.sys_errno, EIO);
    const bh_detail none = {0};
    BHI_FAIL(&detail, "bh_outer", BH_REASON_NO_WORKER, .after = &none);
    BHT_STR_EQ(detail.message, "bh_outer: no worker was ready in time");
    BHT_EQ(detail.advice, 0);
}
