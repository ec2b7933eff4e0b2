/* A backend in this process, with the validation layer between it and the driver: any message of
 * the layer's is a failed test. Buffers and records as the supervisor would make them. There is one
 * rig at a time, which is closed after the test. */
#ifndef BACKEND_RIG_H
#define BACKEND_RIG_H

#include "harness.h"

#include "ipc/commands.h"
#include "kernels/all.h" /* kernel_NAME, of each in kernels/ (CMakeLists.txt) */
#include "worker/backend.h"

#include <bulkhead/bulkhead.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define RIG_RECORDS      80u
#define RIG_BUFFERS      1200u
#define RIG_RECORD_BYTES (512u << 10)

struct rig_options {
    bool no_markers;
    bool no_layer; /* for kernels that the layer itself does not survive */
    uint32_t max_pipelines;
    void (*meanwhile)(void *user); /* as bhi_backend_config.meanwhile */
    void (*compiling)(void *user, uint64_t seq, bool over);
};

extern struct rig {
    struct bhi_backend *backend; /* NULL: it is not open */
    struct bhi_markers *markers;
    struct rig_buffer {
        uint64_t id, size;
        void *data;
        int fd;
    } buffers[RIG_BUFFERS];
    size_t buffer_count;
    /* Records of the next rig_run(). */
    struct bhi_lane_record *records[RIG_RECORDS];
    size_t record_count;
    uint64_t seq;
    bool trusted;          /* kernels that are made from now on */
    uint32_t shared_bytes; /* of dispatches from now on */
    uint32_t format;       /* of kernels from now on; 0: |rig_format| */
    struct bhi_result results[RIG_RECORDS];
    struct bhi_error errors[RIG_RECORDS];
    struct bhi_msg_kernel_binding bindings[256]; /* of the last rig_reflection() */
} rig;

/* rig_vulkan.c or rig_cuda.c: which backend, and the kernels that tests for each of them use. */
extern const struct bhi_backend_ops *const rig_ops;
extern const uint32_t rig_block[3]; /* of each dispatch */
extern const uint32_t rig_format;   /* of each kernel */
bhi_entry rig_entry(void);
extern const char *const rig_layers[];
/* Adds |c| to 256 words of |from|, into |to|. */
void rig_add_kernel(uint64_t id);
void rig_add(uint64_t kernel, uint64_t from, uint64_t to, uint32_t c);
/* Adds 1 to the first word. */
void rig_increment_kernel(uint64_t id);
void rig_increment(uint64_t kernel, uint64_t buffer);
/* rig_vulkan.c */
/* For code that does not ask for layers itself. */
void rig_force_layer(void);
/* Messages of the layer since the last reset; the text of the last one. */
void rig_layer_reset(void);
unsigned rig_layer_messages(void);
const char *rig_layer_text(void);

/* rig_calls.c: the |which|-th call of |name| (without vk) from now on fails with |result|. NULL: none. */
extern struct rig_failing {
    const char *name;
    unsigned which, seen;
    VkResult result;
    bool lost; /* it has failed, and was about a fence: nothing may be submitted any more */
} rig_failing;
void rig_fail_call(const char *name, unsigned which, VkResult result);
const char *rig_call_name(size_t index); /* of all that can fail; NULL: no more */
PFN_vkVoidFunction rig_call(const char *name, PFN_vkVoidFunction real);
/* rig_pools.c: how many descriptor sets there are. */
size_t rig_live_sets(void);
PFN_vkVoidFunction rig_pools_call(const char *name, PFN_vkVoidFunction real);

/* Is the driver lavapipe? Others run these tests, too (tests/swiftshader.cmake). */
bool rig_is_lavapipe(void);

/* Another one, in place of one that is open. */
void rig_open(const struct rig_options *options);
/* The usual one, for BHT_AT_START(bht_around(rig_open_usual, NULL)). */
void rig_open_usual(void);
void rig_close(void); /* fails the test if the layer has said anything */
/* What must hold whenever nothing runs (rig_state.c). After each rig_run(), and before it is closed. */
void rig_check_state(void);
/* What the backend says next of a kernel; and it says no more. */
struct bhi_msg_kernel_info rig_reflection(void);
void rig_no_reflection(void);
struct bhi_backend_counts rig_counts(void);

/* Makes a sealed memfd, attaches it, and returns our own mapping of it. */
void *rig_buffer(uint64_t id, uint64_t size);
/* Device memory, made here, or imported as another worker does. */
void rig_make(uint64_t id, uint64_t size);
void rig_import(uint64_t id, uint64_t made);
/* Attaches its memory once more: as something that is only read, or not any more. */
void rig_attach_again(uint64_t id, enum bhi_attach access);
void rig_detach(uint64_t id);
void rig_kernel(uint64_t id, const uint32_t *code, size_t bytes);
void rig_kernel_entry(uint64_t id, const uint32_t *code, size_t bytes, const char *entry,
                      const struct bhi_spec_constant *constants, uint32_t constant_count);

/* Reads an assembled kernel, which is freed after the test. */
uint32_t *rig_load(const char *folder, const char *name, size_t *out_bytes);
#define READ(at, id)  {.binding = at, .buffer = id, .access = BH_ACCESS_READ}
#define WRITE(at, id) {.binding = at, .buffer = id, .access = BH_ACCESS_WRITE}
#define BOTH(at, id)  {.binding = at, .buffer = id, .access = BH_ACCESS_READ_WRITE}
/* Building records: begin, then commands, then begin the next or run. */
void rig_begin(void);
struct rig_binding {
    uint32_t binding;
    uint64_t buffer;
    uint32_t access;
    uint64_t offset, size; /* size 0: the rest of the buffer */
    uint32_t set, element;
};
void rig_dispatch(uint64_t kernel, uint32_t x, uint32_t y, uint32_t z,
                  const struct rig_binding *bindings, size_t count, const void *push,
                  uint32_t push_size);
/* A record of one workgroup, without push constants. */
void rig_one(uint64_t kernel, const struct rig_binding *bindings, size_t count);
void rig_copy(uint64_t src, uint64_t src_offset, uint64_t dst, uint64_t dst_offset, uint64_t bytes);
void rig_fill(uint64_t dst, uint64_t offset, uint64_t bytes, uint32_t value);
void rig_prepare(uint64_t kernel);
/* Runs what was built; results and errors are in |rig|. Returns bhi_backend_run()'s answer. */
bool rig_run(void);
/* Runs it, and each record must be good. */
void rig_run_ok(void);
/* Runs it, and the only record must fail with |status|, command |command|, and a text that
 * contains |text|. */
void rig_run_fails(bh_status status, uint32_t command, const char *text);

#define BINDINGS(...)                                                                              \
    (const struct rig_binding[]){__VA_ARGS__},                                                     \
        sizeof((const struct rig_binding[]){__VA_ARGS__}) / sizeof(struct rig_binding)
#define CODE(name) kernel_##name, sizeof kernel_##name

#endif
