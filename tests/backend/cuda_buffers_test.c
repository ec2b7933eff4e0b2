/* Buffers of the CUDA backend where they are unusual: empty, staged for want of a feature, pinned beside
 * others, lost. */
#include "rig_cuda.h"

#include <stdlib.h>

enum { ADD = 1, INCREMENT = 2, COPY_BYTES = 65536 };

static struct bhi_cuda_backend *cuda(void) {
    return bhi_cuda_of(rig.backend);
}

static struct bhi_cuda_buffer *buffer(uint64_t id) {
    return bhi_map_get(&cuda()->buffers, id);
}

static struct bhi_cuda_api *api(void) {
    return &cuda()->device.api;
}

/* The size that rig_dispatch() gives a binding is the rest of its buffer. */
static struct bhi_cmd_binding *binding(size_t record, size_t index) {
    struct bhi_cmd_dispatch *dispatch = (void *)(rig.records[record] + 1);
    return (struct bhi_cmd_binding *)(dispatch + 1) + index;
}

TEST(empty_buffers) {
    rig_add_kernel(ADD);
    uint32_t *to = rig_buffer(2, 1024);
    rig_make(3, 0);
    rig_import(4, 3);
    rig_buffer(5, 0);
    BHT_TRUE(buffer(3)->memory.address && buffer(4)->memory.address);
    static const uint32_t push[2] = {7, 0}; /* of no words */
    for (uint64_t from = 3; from <= 5; from++) {
        rig_begin();
        rig_dispatch(ADD, 4, 1, 1, BINDINGS(READ(0, from), WRITE(1, 2)), push, sizeof push);
        rig_begin();
        rig_dispatch(ADD, 4, 1, 1, BINDINGS(READ(0, 2), WRITE(1, from)), push, sizeof push);
        rig_run_ok();
        BHT_EQ(to[0], 0);
    }
}

/* A kernel need not write all that it may, and reads what it likes (D3). */
TEST(d3_a_stage_has_nothing_of_others) {
    rig_add_kernel(ADD);
    rig_buffer(1, 1024);
    uint32_t *to = rig_buffer(2, 1024);
    static const uint32_t push[2] = {7, 1};
    rig_begin();
    rig_dispatch(ADD, 4, 1, 1, BINDINGS(READ(0, 1), WRITE(1, 2)), push, sizeof push);
    rig_run_ok();
    BHT_EQ(to[0], 7);
    BHT_EQ(to[1], 0);
    BHT_EQ(to[255], 0);
}

/* A kernel reaches more than the size that was asked for. */
TEST(d3_all_of_the_memory_is_cleared) {
    rig_make(3, 16);
    const struct bhi_cuda_memory *memory = &buffer(3)->memory;
    uint32_t last = 1;
    BHT_GT(memory->bytes, 16);
    BHT_EQ(api()->cuMemcpyDtoHAsync(&last, memory->address + memory->bytes - sizeof last,
                                    sizeof last, cuda()->device.stream),
           CUDA_SUCCESS);
    BHT_EQ(api()->cuStreamSynchronize(cuda()->device.stream), CUDA_SUCCESS);
    BHT_EQ(last, 0);
}

TEST(ranges_of_bindings) {
    static const struct {
        uint64_t offset, size;
        bh_reason reason;
    } rows[] = {
        {0, 1024, BH_REASON_NONE},          {4, 1020, BH_REASON_NONE},
        {4, 1021, BH_REASON_BINDING_RANGE}, {1028, 0, BH_REASON_BINDING_RANGE},
        {4, 0, BH_REASON_BINDING_EMPTY},
    };
    rig_increment_kernel(INCREMENT);
    rig_make(3, 1024);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_begin();
        rig_increment(INCREMENT, 3);
        binding(0, 0)->offset = rows[i].offset;
        binding(0, 0)->size = rows[i].size;
        if (rows[i].reason == BH_REASON_NONE) {
            rig_run_ok();
        } else {
            rig_run_fails(BH_BINDING_MISMATCH, 0, "parameter 0");
            BHT_EQ(rig.errors[0].told.reason, rows[i].reason);
        }
    }
}

/* What a kernel does not take may be given, if it is optional. */
TEST(optional_bindings_that_a_kernel_does_not_take) {
    static const struct {
        uint32_t set, binding, element;
    } rows[] = {{0, 1, 0}, {0, 7, 0}, {1, 0, 0}, {0, 0, 1}};
    rig_increment_kernel(INCREMENT);
    rig_make(3, 1024);
    rig_make(4, 1024);
    uint32_t *to = rig_buffer(1, 1024);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_begin();
        rig_fill(3, 0, 1024, 0);
        rig_begin();
        rig_dispatch(INCREMENT, 1, 1, 1,
                     BINDINGS(BOTH(0, 3), {.binding = rows[i].binding,
                                           .buffer = 4,
                                           .access = BH_ACCESS_READ_WRITE | BH_ACCESS_OPTIONAL,
                                           .set = rows[i].set,
                                           .element = rows[i].element}),
                     NULL, 0);
        rig_copy(3, 0, 1, 0, 4);
        rig_run_ok();
        BHT_EQ(to[0], 1);
    }
    rig_begin();
    rig_dispatch(INCREMENT, 1, 1, 1, BINDINGS(BOTH(0, 3), {.element = 1, .buffer = 4, .access = 3}),
                 NULL, 0);
    rig_run_fails(BH_BINDING_MISMATCH, 0, "parameter 0 was given, but kernel \"k2\" does not use");
}

static unsigned registered;
static CUresult count_register(void *pointer, size_t bytes, unsigned flags) {
    registered++;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* A kernel could write what is registered, unless that can be for reading only: then inputs are staged. */
TEST(c1_where_nothing_is_registered_for_reading_only) {
    if (!rig_cuda_is_fake()) {
        return;
    }
    setenv("FAKE_CUDA_READ_ONLY", "0", 1);
    rig_open_usual();
    unsetenv("FAKE_CUDA_READ_ONLY");
    api()->cuMemHostRegister = count_register;
    rig_add_kernel(ADD);
    uint32_t *from = rig_buffer(1, COPY_BYTES), *to = rig_buffer(2, COPY_BYTES);
    rig_make(3, COPY_BYTES);
    from[0] = 3;
    from[COPY_BYTES / 4 - 1] = 4;
    rig_begin();
    rig_copy(1, 0, 3, 0, COPY_BYTES);
    rig_add(ADD, 1, 3, 5);
    rig_copy(3, 0, 2, 0, COPY_BYTES);
    rig_run_ok();
    BHT_EQ(to[0], 8);
    BHT_EQ(to[COPY_BYTES / 4 - 1], 4);
    BHT_EQ(registered, 0);
}

static CUresult no_register(void *pointer, size_t bytes, unsigned flags) {
    return CUDA_ERROR_UNKNOWN;
}

/* From which size on host memory is registered for a copy, which then fails if that does. */
TEST(large_copies_register_what_they_read) {
    rig_buffer(1, COPY_BYTES);
    rig_make(3, COPY_BYTES);
    rig_begin();
    rig_copy(1, 0, 3, 0, COPY_BYTES - 4);
    rig_run_ok();
    BHT_EQ(buffer(1)->registered, 0);
    api()->cuMemHostRegister = no_register;
    rig_begin();
    rig_copy(1, 0, 3, 0, COPY_BYTES);
    rig_run_fails(BH_CUDA, 0, "cuMemHostRegister: CUDA_ERROR_UNKNOWN");
}

static void copy_twice(uint64_t to, uint64_t bytes) {
    for (int i = 0; i < 2; i++) {
        rig_begin();
        rig_copy(3, 0, to, 0, bytes);
        rig_run_ok();
    }
}

TEST(what_is_pinned_beside_others) {
    rig_make(3, COPY_BYTES);
    for (uint64_t id = 4; id <= 6; id++) {
        rig_buffer(id, COPY_BYTES);
        copy_twice(id, COPY_BYTES);
        copy_twice(id, COPY_BYTES); /* and not again */
    }
    rig_buffer(7, COPY_BYTES);
    copy_twice(7, COPY_BYTES - 4);
    BHT_TRUE(!buffer(7)->pinned);
    static const uint64_t order[] = {4, 6, 5};
    for (size_t i = 0; i < BHT_COUNT(order); i++) {
        BHT_EQ(cuda()->pinned.count, 3 - i);
        BHT_EQ(rig.markers->pinned, 1);
        rig_detach(order[i]);
        for (size_t k = 0; k < cuda()->pinned.count; k++) {
            const struct bhi_cuda_buffer *left = cuda()->pinned.items[k];
            BHT_TRUE(left->pinned && buffer(left->id) == left);
        }
    }
    BHT_EQ(rig.markers->pinned, 0);
}

static CUresult (*real_pin)(void *, size_t, unsigned);
static uint32_t pinned_before;
static CUresult look_and_pin(void *pointer, size_t bytes, unsigned flags) {
    pinned_before = rig.markers->pinned;
    return real_pin(pointer, bytes, flags);
}

/* The supervisor knows before it is so: a worker may die at any moment. */
TEST(what_gets_pinned_is_said_before) {
    rig_make(3, COPY_BYTES);
    rig_buffer(1, COPY_BYTES);
    real_pin = api()->cuMemHostRegister;
    api()->cuMemHostRegister = look_and_pin;
    copy_twice(1, COPY_BYTES);
    BHT_EQ(pinned_before, 1);
}

static CUresult no_memset(CUdeviceptr a, unsigned char b, size_t c, CUstream d) {
    return CUDA_ERROR_UNKNOWN;
}

/* Memory that could not be cleared: nobody knows what is in it, and what the device still does to it. */
TEST(a_worker_that_cannot_clear_runs_nothing_more) {
    rig_make(3, 1024);
    rig_make(4, 2048);
    rig_buffer(1, 1024);
    BHT_TRUE(bhi_backend_clear(rig.backend, 3));
    BHT_TRUE(!bhi_backend_clear(rig.backend, 1)); /* not of the device */
    BHT_TRUE(!bhi_backend_clear(rig.backend, 9)); /* not there */
    const struct bhi_cuda_api good = *api();
    api()->cuMemsetD8Async = no_memset;
    BHT_TRUE(!bhi_backend_clear(rig.backend, 3));
    BHT_EQ(rig_counts().imported_bytes, 1024 + 2048);
    *api() = good;
    BHT_TRUE(!bhi_backend_clear(rig.backend, 3));
    struct bhi_error error;
    BHT_TRUE(!bhi_backend_learn(rig.backend, ADD, &error));
    BHT_EQ(error.status, BH_DEVICE_LOST);
    rig_begin();
    rig_fill(4, 0, 4, 1);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_NO);
}

/* All of its memory is cleared, and then it is as writable as before. */
TEST(what_a_clear_leaves) {
    uint32_t *to = rig_buffer(1, 1024);
    rig_make(3, 1024);
    for (int writable = 0; writable < 2; writable++) {
        rig_begin();
        rig_fill(3, 0, 1024, 5);
        rig_run_ok();
        if (!writable) { /* another is */
            rig_make(4, 1024);
            rig_begin();
            rig_fill(4, 0, 4, 1);
            rig_run_ok();
            rig_detach(4);
        }
        BHT_EQ(buffer(3)->memory.writable, writable);
        BHT_TRUE(bhi_backend_clear(rig.backend, 3));
        BHT_EQ(buffer(3)->memory.writable, writable);
        rig_begin();
        rig_copy(3, 0, 1, 0, 1024);
        rig_run_ok();
        BHT_TRUE(to[0] == 0 && to[255] == 0);
    }
}

/* What kernels say of themselves: in the order in which they were loaded, without those that have gone. */
TEST(reflections_of_kernels_that_go) {
    for (uint64_t gone = 1; gone <= 4; gone++) {
        rig_open_usual();
        for (uint64_t id = 1; id <= 3; id++) {
            rig_add_kernel(id);
            rig_begin();
            rig_prepare(id);
            rig_run_ok();
        }
        bhi_backend_kernel_destroy(rig.backend, gone);
        rig_add_kernel(5);
        rig_begin();
        rig_prepare(5);
        rig_run_ok();
        for (uint64_t id = 1; id <= 5; id++) {
            if (id != gone && id != 4) {
                BHT_EQ(rig_reflection().kernel, id);
            }
        }
        rig_no_reflection();
        rig_begin();
        rig_prepare(5); /* not twice */
        rig_run_ok();
        rig_no_reflection();
    }
}

TEST(commands_of_loaders) {
    rig_make(3, 1024);
    rig_begin();
    rig_fill(3, 0, 4, 1);
    rig_copy(3, 0, 3, 512, 4);
    struct bhi_cmd_load *second =
        (void *)((char *)(rig.records[0] + 1) + sizeof(struct bhi_cmd_fill));
    _Static_assert(sizeof *second == sizeof(struct bhi_cmd_copy), "in its place");
    second->header.type = BHI_CMD_LOAD;
    second->fortran = 0;
    rig_run_fails(BH_PROTOCOL, 1, "this worker cannot run load");
}
