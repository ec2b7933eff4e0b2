/* The CUDA driver for the tests, and their kernels as PTX. The fake driver reads no body: it knows the
 * entry points by their names (tests/fake_cuda/ptx.c). */
#include "rig_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct bhi_backend_ops *const rig_ops = &bhi_cuda;
const uint32_t rig_block[3] = {64, 1, 1};
const uint32_t rig_format = BHI_KERNEL_IMAGE;
const char *const rig_layers[] = {NULL};

void rig_layer_reset(void) {}

unsigned rig_layer_messages(void) {
    return 0;
}

const char *rig_layer_text(void) {
    return "";
}

bool rig_cuda_is_fake(void) {
    return !getenv("BHT_REAL_CUDA");
}

static void allow_what_a_driver_keeps(void) {
    if (!rig_cuda_is_fake()) {
        bht_default_flags(BHT_ALLOW_DESCRIPTORS | BHT_ALLOW_MAPPINGS | BHT_ALLOW_THREADS);
    }
}
BHT_AT_START(allow_what_a_driver_keeps())

bhi_entry rig_entry(void) {
    void *library =
        dlopen(rig_cuda_is_fake() ? BHT_FAKE_CUDA : "libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
    if (!library) {
        BHT_FAIL("no CUDA driver: %s", dlerror());
    }
    return (bhi_entry)dlsym(library, "cuGetProcAddress_v2");
}

#define INDEX                                                                                      \
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"                          \
    "mad.lo.u32 %r1, %r1, %r2, %r3;\n"

static const struct {
    const char *name, *parameters, *body;
} kernels[] = {
    {"add", ".param .u64 x, .param .u64 y, .param .u32 c, .param .u32 count",
     INDEX "ld.param.u32 %r2, [count]; setp.ge.u32 %p1, %r1, %r2; @%p1 ret;\n"
           "ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u32 %r3, [c];\n"
           "mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
           "ld.u32 %r2, [%d1]; add.u32 %r2, %r2, %r3; st.u32 [%d2], %r2;\n"},
    {"increment", ".param .u64 word",
     INDEX "setp.ne.u32 %p1, %r1, 0; @%p1 ret;\n"
           "ld.param.u64 %d1, [word]; ld.u32 %r2, [%d1]; add.u32 %r2, %r2, 1;\n"
           "st.u32 [%d1], %r2;\n"},
    {"null_read", ".param .u64 y",
     "mov.u64 %d1, 0; ld.volatile.u32 %r1, [%d1]; ld.param.u64 %d2, [y]; st.u32 [%d2], %r1;\n"},
    {"trap", "", "trap;\n"},
    {"wild_write", ".param .u64 address, .param .u32 value",
     "ld.param.u64 %d1, [address]; ld.param.u32 %r1, [value]; st.volatile.u32 [%d1], %r1;\n"},
    {"shared_sum", ".param .u64 x, .param .u64 sums",
     INDEX "ld.param.u64 %d1, [x]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
           "ld.u32 %r4, [%d1]; mov.u32 %r5, words; shl.b32 %r1, %r3, 2; add.u32 %r5, %r5, %r1;\n"
           "st.shared.u32 [%r5], %r4; bar.sync 0;\n"
           "add.u32 %r1, %r3, 1; setp.ne.u32 %p1, %r1, %r2; @%p1 ret;\n"
           "mov.u32 %r4, 0; mov.u32 %r5, words; mov.u32 %r6, 0;\n"
           "LOOP: ld.shared.u32 %r1, [%r5]; add.u32 %r4, %r4, %r1; add.u32 %r5, %r5, 4;\n"
           "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r2; @%p1 bra LOOP;\n"
           "ld.param.u64 %d1, [sums]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4;\n"
           "add.u64 %d1, %d1, %d2; st.u32 [%d1], %r4;\n"},
};

const char *rig_ptx(const char *name) {
    for (size_t i = 0; i < BHT_COUNT(kernels); i++) {
        char *text;
        if (strcmp(kernels[i].name, name) == 0 &&
            asprintf(&text,
                     ".version 6.0\n.target sm_60\n.address_size 64\n"
                     ".extern .shared .align 4 .b8 words[];\n"
                     ".visible .entry %s(%s)\n{\n"
                     ".reg .pred %%p<2>; .reg .u32 %%r<7>; .reg .u64 %%d<4>;\n%sret;\n}\n",
                     name, kernels[i].parameters, kernels[i].body) > 0) {
            return bht_own(text);
        }
    }
    BHT_FAIL("the tests have no kernel %s", name);
}

void rig_ptx_kernel(uint64_t id, const char *name) {
    const char *text = rig_ptx(name);
    rig_kernel_entry(id, (const uint32_t *)(const void *)text, strlen(text) + 1, name, NULL, 0);
}

void rig_add_kernel(uint64_t id) {
    rig_ptx_kernel(id, "add");
}

void rig_add(uint64_t kernel, uint64_t from, uint64_t to, uint32_t c) {
    const uint32_t push[2] = {c, 256};
    rig_dispatch(kernel, 4, 1, 1, BINDINGS(READ(0, from), WRITE(1, to)), push, sizeof push);
}

void rig_increment_kernel(uint64_t id) {
    rig_ptx_kernel(id, "increment");
}

void rig_increment(uint64_t kernel, uint64_t buffer) {
    rig_dispatch(kernel, 1, 1, 1, BINDINGS(BOTH(0, buffer)), NULL, 0);
}

/* What is mapped for writing is listed, each once (C1); nothing of a record is left. */
void rig_check_state(void) {
    const struct bhi_cuda_backend *b = bhi_cuda_const(rig.backend);
    uint64_t bytes = 0;
    size_t writable = 0;
    for (size_t i = 0; i < b->buffers.capacity; i++) {
        const struct bhi_cuda_buffer *buffer = b->buffers.entries[i].value;
        if (buffer) {
            bytes += buffer->error.status == BH_OK ? buffer->size : 0;
            writable += buffer->memory.writable;
        }
    }
    for (size_t i = 0; i < b->writable.count; i++) {
        BHT_TRUE(b->writable.items[i]->memory.writable);
        BHT_EQ(bhi_map_get(&b->buffers, b->writable.items[i]->id), b->writable.items[i]);
    }
    BHT_EQ(b->writable.count, writable);
    BHT_EQ(b->imported_bytes, bytes);
}
