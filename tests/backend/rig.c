#include "rig.h"

#include "base/memfd.h"
#include "worker/backend/answers.h"
#include "worker/backend/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct rig rig;

static void (*also)(void *user, uint64_t seq, bool over); /* is told of compiles */
static uint64_t compiling;                                /* for this record; 0: for none */

static void note_compiling(void *user, uint64_t seq, bool over) {
    compiling = over ? 0 : seq;
    if (also) {
        also(user, seq, over);
    }
}

void rig_open(const struct rig_options *options) {
    static const struct rig_options none;
    options = options ? options : &none;
    rig_close();
    also = options->compiling;
    compiling = 0;
    rig_layer_reset();
    rig.markers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_NE(rig.markers, MAP_FAILED);
    const struct bhi_backend_config config = {
        .ops = rig_ops,
        .entry = rig_entry(),
        .markers = options->no_markers ? NULL : rig.markers,
        .max_pipelines = options->max_pipelines,
        .calls = {.meanwhile = options->meanwhile, .compiling = note_compiling, .user = &rig},
        .layers = options->no_layer ? NULL : rig_layers,
    };
    struct bhi_error error;
    rig.backend = bhi_backend_create(&config, &error);
    if (!rig.backend) {
        BHT_FAIL("no backend: %s", bhi_error_line(&error));
    }
    if (!bhi_backend_warm_up(rig.backend, &error)) {
        BHT_FAIL("warm-up: %s", bhi_error_line(&error));
    }
}

void rig_open_usual(void) {
    rig_open(NULL);
}

static void assert_layer_silent(void) {
    if (rig_layer_messages() != 0) {
        BHT_FAIL("%u messages of the validation layer, the last: %s", rig_layer_messages(),
                 rig_layer_text());
    }
}

static void forget(const struct rig_buffer *buffer) {
    if (buffer->data) {
        munmap(buffer->data, bhi_page_round(buffer->size));
    }
    if (buffer->fd >= 0) {
        close(buffer->fd);
    }
}

void rig_close(void) {
    if (!rig.backend) {
        return;
    }
    if (!rig.backend->lost) {
        rig_check_state();
    }
    bhi_backend_destroy(rig.backend);
    for (size_t i = 0; i < rig.buffer_count; i++) {
        forget(&rig.buffers[i]);
    }
    for (size_t i = 0; i < RIG_RECORDS; i++) {
        free(rig.records[i]);
    }
    munmap(rig.markers, 4096);
    memset(&rig, 0, sizeof rig);
    assert_layer_silent();
}

BHT_AT_START(bht_end_with(rig_close))

struct bhi_msg_kernel_info rig_reflection(void) {
    struct bhi_msg_kernel_info info;
    BHT_TRUE(bhi_backend_next_reflection(rig.backend, &info, rig.bindings));
    return info;
}

void rig_no_reflection(void) {
    struct bhi_msg_kernel_info info;
    BHT_TRUE(!bhi_backend_next_reflection(rig.backend, &info, rig.bindings));
}

struct bhi_backend_counts rig_counts(void) {
    struct bhi_backend_counts counts;
    bhi_backend_counts(rig.backend, &counts);
    return counts;
}

static struct rig_buffer *find(uint64_t id) {
    for (size_t i = 0; i < rig.buffer_count; i++) {
        if (rig.buffers[i].id == id) {
            return &rig.buffers[i];
        }
    }
    return NULL;
}

static void add(uint64_t id, uint64_t size, void *data, int fd) {
    BHT_LT(rig.buffer_count, RIG_BUFFERS);
    rig.buffers[rig.buffer_count++] = (struct rig_buffer){id, size, data, fd};
}

void *rig_buffer(uint64_t id, uint64_t size) {
    int fd = bhi_memfd_create("test", size, 0);
    BHT_GE(fd, 0);
    void *data = mmap(NULL, bhi_page_round(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_NE(data, MAP_FAILED);
    rig_detach(id);
    add(id, size, data, fd);
    int copy = dup(fd);
    BHT_GE(copy, 0);
    bhi_backend_attach(rig.backend, id, copy, size, BHI_ATTACH_WRITE);
    return data;
}

void rig_make(uint64_t id, uint64_t size) {
    rig_detach(id);
    int fd = bhi_backend_make(rig.backend, id, size);
    BHT_GE(fd, 0);
    add(id, size, NULL, fd);
}

void rig_import(uint64_t id, uint64_t made) {
    const struct rig_buffer buffer = *find(made);
    rig_detach(id);
    bhi_backend_import(rig.backend, id, dup(buffer.fd), buffer.size);
    add(id, buffer.size, NULL, -1);
}

void rig_attach_again(uint64_t id, enum bhi_attach access) {
    const struct rig_buffer *buffer = find(id);
    BHT_NE(buffer, NULL);
    int fd = access == BHI_ATTACH_WRITE ? dup(buffer->fd) : bhi_memfd_read_only(buffer->fd);
    BHT_GE(fd, 0);
    bhi_backend_attach(rig.backend, id, fd, buffer->size, access);
}

void rig_detach(uint64_t id) {
    struct rig_buffer *buffer = find(id);
    if (buffer) {
        bhi_backend_detach(rig.backend, id);
        forget(buffer);
        *buffer = rig.buffers[--rig.buffer_count];
    }
}

void rig_kernel_entry(uint64_t id, const uint32_t *code, size_t bytes, const char *entry,
                      const struct bhi_spec_constant *constants, uint32_t constant_count) {
    struct bhi_msg_kernel_create info = {
        .kernel = id,
        .format = rig.format ? rig.format : rig_format,
        .code_bytes = bytes,
        .trusted = rig.trusted,
    };
    snprintf(info.entry, sizeof info.entry, "%s", entry);
    snprintf(info.name, sizeof info.name, "k%llu", (unsigned long long)id);
    bhi_backend_kernel_create(rig.backend, &info, code, constants, constant_count);
}

void rig_kernel(uint64_t id, const uint32_t *code, size_t bytes) {
    rig_kernel_entry(id, code, bytes, "main", NULL, 0);
}

uint32_t *rig_load(const char *folder, const char *name, size_t *out_bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.spv", folder, name);
    FILE *file = fopen(path, "rb");
    BHT_NE(file, NULL);
    uint32_t *code = bht_own(malloc(1 << 16));
    *out_bytes = fread(code, 1, 1 << 16, file);
    BHT_TRUE(*out_bytes >= 20 && *out_bytes < (1 << 16));
    fclose(file);
    return code;
}

void rig_begin(void) {
    BHT_LT(rig.record_count, RIG_RECORDS);
    struct bhi_lane_record **record = &rig.records[rig.record_count++];
    if (!*record) {
        *record = calloc(1, RIG_RECORD_BYTES);
        BHT_NE(*record, NULL);
    }
    **record = (struct bhi_lane_record){.size = sizeof **record, .seq = ++rig.seq};
}

/* Room for a command of |size| bytes at the end of the newest record. */
static void *append(uint16_t type, size_t size) {
    struct bhi_lane_record *record = rig.records[rig.record_count - 1];
    BHT_LE(record->size + size, RIG_RECORD_BYTES);
    struct bhi_cmd_header *command = (void *)((uint8_t *)record + record->size);
    memset(command, 0, size);
    command->type = type;
    command->size = (uint32_t)size;
    record->size += size;
    record->command_count++;
    return command;
}

void rig_dispatch(uint64_t kernel, uint32_t x, uint32_t y, uint32_t z,
                  const struct rig_binding *bindings, size_t count, const void *push,
                  uint32_t push_size) {
    struct bhi_cmd_dispatch *dispatch =
        append(BHI_CMD_DISPATCH, bhi_cmd_dispatch_size((uint32_t)count, push_size));
    dispatch->kernel = kernel;
    dispatch->groups_x = x;
    dispatch->groups_y = y;
    dispatch->groups_z = z;
    dispatch->block_x = rig_block[0];
    dispatch->block_y = rig_block[1];
    dispatch->block_z = rig_block[2];
    dispatch->shared_bytes = rig.shared_bytes;
    dispatch->binding_count = (uint32_t)count;
    dispatch->push_size = push_size;
    struct bhi_cmd_binding *out = (void *)(dispatch + 1);
    for (size_t i = 0; i < count; i++) {
        const struct rig_buffer *buffer = find(bindings[i].buffer);
        uint64_t size = bindings[i].size;
        if (size == 0 && buffer && buffer->size > bindings[i].offset) {
            size = buffer->size - bindings[i].offset;
        }
        out[i] = (struct bhi_cmd_binding){.buffer = bindings[i].buffer,
                                          .offset = bindings[i].offset,
                                          .size = size,
                                          .set = bindings[i].set,
                                          .binding = bindings[i].binding,
                                          .access = bindings[i].access,
                                          .element = bindings[i].element};
    }
    if (push_size > 0) {
        memcpy(out + count, push, push_size);
    }
}

void rig_one(uint64_t kernel, const struct rig_binding *bindings, size_t count) {
    rig_begin();
    rig_dispatch(kernel, 1, 1, 1, bindings, count, NULL, 0);
}

void rig_copy(uint64_t src, uint64_t src_offset, uint64_t dst, uint64_t dst_offset,
              uint64_t bytes) {
    struct bhi_cmd_copy *copy = append(BHI_CMD_COPY, sizeof *copy);
    copy->src = src;
    copy->dst = dst;
    copy->src_offset = src_offset;
    copy->dst_offset = dst_offset;
    copy->bytes = bytes;
}

void rig_fill(uint64_t dst, uint64_t offset, uint64_t bytes, uint32_t value) {
    struct bhi_cmd_fill *fill = append(BHI_CMD_FILL, sizeof *fill);
    fill->dst = dst;
    fill->dst_offset = offset;
    fill->bytes = bytes;
    fill->value = value;
}

void rig_prepare(uint64_t kernel) {
    struct bhi_cmd_prepare *prepare = append(BHI_CMD_PREPARE, sizeof *prepare);
    prepare->kernel = kernel;
}

bool rig_run(void) {
    for (size_t i = 0; i < rig.record_count; i++) {
        char why[256];
        if (bhi_record_check(rig.records[i], rig.records[i]->size, why, sizeof why) != 0) {
            BHT_FAIL("the test made a malformed record: %s", why);
        }
    }
    bool alive = bhi_backend_run(rig.backend, (const struct bhi_lane_record *const *)rig.records,
                                 rig.record_count, rig.results, rig.errors);
    for (size_t i = 0; i < rig.record_count; i++) {
        BHT_EQ(rig.results[i].seq, rig.records[i]->seq);
        BHT_NE(rig.results[i].started_ns, 0);
        BHT_GE(rig.results[i].ended_ns, rig.results[i].started_ns);
        BHT_EQ(rig.results[i].status, rig.errors[i].status);
        if (rig.results[i].status == BH_OK && bhi_record_has_work(rig.records[i])) {
            BHT_NE(rig.results[i].seq, compiling); /* K5: its deadline would not have begun */
        }
    }
    rig.record_count = 0;
    if (alive) {
        rig_check_state();
    }
    return alive;
}

void rig_run_ok(void) {
    size_t count = rig.record_count;
    BHT_TRUE(rig_run());
    for (size_t i = 0; i < count; i++) {
        if (rig.results[i].status != BH_OK) {
            BHT_FAIL("record %zu: status %u: %s", i, rig.results[i].status,
                     bhi_error_line(&rig.errors[i]));
        }
        BHT_EQ(rig.results[i].executed, BH_EXECUTED_YES);
        BHT_EQ(rig.results[i].command_index, BHI_NO_COMMAND);
    }
}

void rig_run_fails(bh_status status, uint32_t command, const char *text) {
    BHT_EQ(rig.record_count, 1);
    BHT_TRUE(rig_run());
    if (rig.results[0].status != (uint32_t)status ||
        !strstr(bhi_error_line(&rig.errors[0]), text)) {
        BHT_FAIL("expected status %d and \"%s\"; got %u, \"%s\"", (int)status, text,
                 rig.results[0].status, bhi_error_line(&rig.errors[0]));
    }
    BHT_EQ(rig.results[0].command_index, command);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_NO);
}
