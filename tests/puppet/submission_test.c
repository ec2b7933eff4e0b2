/* What becomes of what a caller asks for: the fields of a submission, its place in a lane, who is named
 * in its verdict, and who is asked before it runs. */
#include "ipc/commands.h"
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/event/harvest.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/submit/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- kernels ---------------------------------------------------------------------------------- */

enum { U, U2, V, T, KERNELS }; /* guarded; the same by another name; another one; trusted */
static bh_kernel *kernels[KERNELS];

static void set_up(void) {
    for (uint32_t i = 0; i < KERNELS; i++) {
        const uint32_t code[] = {0x07230203, i == U2 ? U : i, 0, 0, 0};
        const char name[] = {(char)('a' + i), 0};
        const bh_kernel_options options = {
            .struct_size = sizeof options, .name = name, .trusted = i == T};
        BHT_EQ(
            bh_kernel_create_spirv(puppet.context, code, sizeof code, &options, &kernels[i], NULL),
            BH_OK);
    }
}

BHT_AT_START(puppet_around(set_up, NULL))

#define MOST 3

/* The kernels, by the letters of their names, in as many commands. */
static uint32_t commands_of(const char *names, bh_command commands[MOST]) {
    uint32_t count = 0;
    for (; names[count]; count++) {
        commands[count] = fx_dispatch(kernels[names[count] - 'a'], NULL, 0);
    }
    return count;
}

TEST(what_a_submission_is) {
    static const struct {
        const char *kernels; /* a, b: the same code; d is trusted */
        bh_submit_info asked;
        bool prepares, abortable, trusted;
        uint32_t kernel_count;
        uint64_t deadline_ns, flags;
        int code; /* whose; KERNELS: its own, -1: none */
    } rows[] = {
        {"", {.flags = BH_SUBMIT_TIMED}, .deadline_ns = 5, .flags = BHI_RECORD_TIMED, .code = -1},
        {"a", {.deadline_ns = 7}, .abortable = true, .kernel_count = 1, .deadline_ns = 7},
        {"a", {.alone = true}, .abortable = true, .kernel_count = 1, .deadline_ns = 5},
        {"aba", {0}, .abortable = true, .kernel_count = 2, .deadline_ns = 5},
        {"ac", {0}, .abortable = true, .kernel_count = 2, .deadline_ns = 5, .code = KERNELS},
        {"d", {0}, .trusted = true, .kernel_count = 1, .deadline_ns = 5, .code = T},
        {"da", {0}, .trusted = true, .kernel_count = 2, .deadline_ns = 5, .code = KERNELS},
        {"ad", {0}, .trusted = true, .kernel_count = 2, .deadline_ns = 5, .code = KERNELS},
        {"a", {0}, .prepares = true, .abortable = true, .kernel_count = 1, .deadline_ns = 5},
        {"d",
         {0},
         .prepares = true,
         .trusted = true,
         .kernel_count = 1,
         .deadline_ns = 5,
         .code = T},
    };
    puppet.stream->deadline_ns = 5;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_command commands[MOST];
        bh_submit_info info = rows[i].asked;
        info.struct_size = sizeof info;
        info.commands = commands;
        info.command_count = commands_of(rows[i].kernels, commands);
        bh_event *event = NULL;
        const uint64_t before_ns = bhi_now_ns();
        if (rows[i].prepares) {
            BHT_EQ(
                bh_kernel_prepare(kernels[rows[i].kernels[0] - 'a'], puppet.stream, &event, NULL),
                BH_OK);
        } else {
            event = fx_submit(puppet.stream, &info);
        }
        const struct bhi_submission *is = event->submission;
        const struct bhi_payload *payload = bhi_payload_of(is);
        const bool several = rows[i].code == KERNELS; /* drawn from all of theirs */
        const uint64_t code = rows[i].code < 0 ? 0
                              : several        ? is->code
                                               : bhi_kernel_body_code(kernels[rows[i].code]->body);
        BHT_EQ(is->abortable, rows[i].abortable);
        BHT_EQ(is->trusted, rows[i].trusted);
        BHT_EQ(is->runs_kernel, !rows[i].prepares);
        BHT_EQ(is->repeat, rows[i].prepares ? BHI_REPEAT_VICTIM : BHI_REPEAT_NEVER);
        BHT_EQ(is->apart, info.alone ? BHI_APART_ALL : BHI_APART_NOT);
        BHT_EQ(is->reports_device_time, rows[i].flags != 0);
        BHT_EQ(is->deadline_ns, rows[i].deadline_ns);
        BHT_EQ(is->code, code);
        BHT_TRUE(!several || (is->code && is->code != bhi_kernel_body_code(kernels[0]->body)));
        BHT_EQ(payload->kernel_count, rows[i].kernel_count);
        BHT_EQ(payload->record->flags, rows[i].flags);
        BHT_EQ(payload->record->command_count,
               info.command_count + rows[i].prepares - (rows[i].prepares ? info.command_count : 0));
        BHT_TRUE(!payload->remote && !payload->borrows && !event->library);
        BHT_GE(event->verdict.submitted_ns, before_ns);
        BHT_LE(event->verdict.submitted_ns, bhi_now_ns());
        BHT_EQ(bh_event_cancel(event), BH_OK);
    }
}

/* -- images ----------------------------------------------------------------------------------- */

static bh_kernel *image_with(const uint32_t block[3], uint32_t shared_bytes) {
    static const char ptx[] = ".version 8.0";
    bh_kernel_options options = {
        .struct_size = sizeof options, .entry = "k", .shared_bytes = shared_bytes};
    memcpy(options.block, block, sizeof options.block);
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_image(puppet.context, ptx, sizeof ptx, &options, &kernel, NULL), BH_OK);
    return kernel;
}

/* A stream's driver is known by its selector, or once a worker has told. */
TEST(a_stream_runs_the_kernels_of_its_driver) {
    static const struct {
        const char *selector, *told; /* NULL: nothing */
        bool runs_spirv, runs_images;
    } rows[] = {
        {NULL, NULL, true, true},
        {NULL, "cuda:1", false, true},
        {NULL, "lavapipe:0", true, false},
        {"1", NULL, true, true},
        {"cuda", NULL, false, true},
        {"cuda:0", "cuda:0", false, true},
        {"cuda2:0", NULL, true, false},
        {"nvidia:1", NULL, true, false},
        {"nvidia", "nvidia:0", true, false},
        {"any", NULL, true, true},
        {"any", "cuda:0", false, true},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_stream *stream = fx_stream_on(puppet.context, rows[i].selector);
        stream->runs_on.known = rows[i].told;
        snprintf(stream->runs_on.selector, sizeof stream->runs_on.selector, "%s",
                 rows[i].told ? rows[i].told : "");
        for (int image = 0; image < 2; image++) {
            bh_kernel *kernel = image ? image_with((const uint32_t[]){1, 1, 1}, 0) : kernels[U];
            const bool runs = image ? rows[i].runs_images : rows[i].runs_spirv;
            const bh_command command = fx_dispatch(kernel, NULL, 0);
            const bh_submit_info info = {
                .struct_size = sizeof info, .commands = &command, .command_count = 1};
            bh_detail why[2] = {0};
            const bh_status status[] = {bh_submit(stream, &info, NULL, &why[0]),
                                        bh_kernel_prepare(kernel, stream, NULL, &why[1])};
            for (int prepare = 0; prepare < 2; prepare++) {
                BHT_EQ(status[prepare], runs ? BH_OK : BH_INVALID_ARGUMENT);
                BHT_EQ(why[prepare].reason, runs    ? BH_REASON_NONE
                                            : image ? BH_REASON_NEEDS_CUDA
                                                    : BH_REASON_NEEDS_VULKAN);
                if (!runs) {
                    BHT_STR_EQ(why[prepare].subject_name, image ? "k" : "a");
                }
            }
            if (!runs && image) {
                BHT_STR_EQ(why[0].message,
                           "bh_submit: command 0: kernel \"k\" is a CUDA image, which a Vulkan "
                           "device cannot run; use a stream on a CUDA device (\"cuda:0\"), or make "
                           "the kernel of SPIR-V");
            } else if (!runs) {
                BHT_STR_EQ(
                    why[1].message,
                    "bh_kernel_prepare: kernel \"a\" is SPIR-V, which a CUDA device cannot "
                    "run; use a stream on a Vulkan device, as templates and expressions need "
                    "it, or make the kernel of an image or of CUDA C++");
            }
        }
    }
}

/* The block of the launch, or of the kernel's options. The worker is told the kernel's format. */
TEST(a_launch_of_an_image_has_a_block) {
    static const struct {
        bool image;
        uint32_t usual[3], usual_shared, block[3], shared;
        uint32_t told[3], told_shared;
        const char *why; /* NULL: it is launched */
    } rows[] = {
        {true, {0}, 0, {1, 2, 3}, 4, {1, 2, 3}, 4, NULL},
        {true, {5, 6, 7}, 8, {0}, 0, {5, 6, 7}, 8, NULL},
        {true, {5, 6, 7}, 8, {1, 2, 3}, 0, {1, 2, 3}, 8, NULL},
        {true, {5, 6, 7}, 8, {0}, 4, {5, 6, 7}, 4, NULL},
        {true,
         {0},
         8,
         {0},
         0,
         {0},
         0,
         "kernel \"k\" is a CUDA kernel: a launch says how many threads "
         "a block has, and this one has 0 in x"},
        {true, {5, 6, 7}, 8, {1, 0, 3}, 0, {0}, 0, "this one has 0 in y"},
        {true, {5, 6, 7}, 8, {1, 2, 0}, 0, {0}, 0, "this one has 0 in z"},
        {false, {0}, 0, {0}, 0, {0}, 0, NULL},
        {false,
         {0},
         0,
         {0, 0, 1},
         0,
         {0},
         0,
         "kernel \"a\" is SPIR-V, whose module says how large a "
         "workgroup is"},
        {false, {0}, 0, {0}, 4, {0}, 0, "kernel \"a\" is SPIR-V, whose module says"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_kernel *kernel =
            rows[i].image ? image_with(rows[i].usual, rows[i].usual_shared) : kernels[U];
        bh_command command = fx_dispatch(kernel, NULL, 0);
        memcpy(command.dispatch.block, rows[i].block, sizeof rows[i].block);
        command.dispatch.shared_bytes = rows[i].shared;
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = &command, .command_count = 1};
        bh_event *event = NULL;
        bh_detail detail = {0};
        const bh_status status = bh_submit(puppet.stream, &info, &event, &detail);
        if (rows[i].why) {
            BHT_EQ(status, BH_INVALID_ARGUMENT);
            BHT_EQ(detail.reason, BH_REASON_BLOCK);
            BHT_STR_HAS(detail.message, rows[i].why);
            BHT_STR_HAS(detail.message, "command 0: ");
            continue;
        }
        BHT_EQ(status, BH_OK);
        const struct bhi_submission *is = event->submission;
        const struct bhi_cmd_dispatch *told = (const void *)(bhi_payload_of(is)->record + 1);
        BHT_EQ(told->block_x, rows[i].told[0]);
        BHT_EQ(told->block_y, rows[i].told[1]);
        BHT_EQ(told->block_z, rows[i].told[2]);
        BHT_EQ(told->shared_bytes, rows[i].told_shared);
        BHT_TRUE(is->abortable && !is->trusted);
        uint32_t format = 0;
        BHI_LIST_EACH(node, &worker->outbox) {
            const struct bhi_message *sent =
                &BHI_CONTAINER(node, struct bhi_outgoing, link)->message;
            format = sent->type == BHI_MSG_KERNEL_CREATE ? sent->kernel_create.format : format;
        }
        BHT_EQ(format, rows[i].image ? BHI_KERNEL_IMAGE : BHI_KERNEL_SPIRV);
        const struct bhi_worker_kernel *known = bhi_map_get(&worker->kernels.map, kernel->body->id);
        BHT_EQ(known->image, rows[i].image);
    }
}

/* A parameter is bound by its position alone, and the caller says what is done with it (B5), whatever
 * a worker has said. */
TEST(parameters_are_bound_by_position) {
    static const struct {
        bh_binding binding;
        bh_reason reason;
        const char *why;
    } rows[] = {
        {{.set = 1, .access = BH_ACCESS_READ}, BH_REASON_COMMAND, "set 0, element 0"},
        {{.element = 1, .access = BH_ACCESS_WRITE | BH_ACCESS_OPTIONAL},
         BH_REASON_COMMAND,
         "set 0 binding 0 element 1: the parameters of an image are bindings of set 0, element 0"},
        {{.binding = 3},
         BH_REASON_ACCESS_UNKNOWN,
         "bh_launch: set 0 binding 3: kernel \"k\" is a CUDA kernel, which does not say what it "
         "writes; give BH_ACCESS_READ, BH_ACCESS_WRITE or BH_ACCESS_READ_WRITE"},
        {{.access = BH_ACCESS_OPTIONAL}, BH_REASON_ACCESS_UNKNOWN, "set 0 binding 0: "},
        {{.binding = 3, .access = BH_ACCESS_READ_WRITE}, BH_REASON_NONE, ""},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        for (int told = 0; told < 2; told++) {
            bh_kernel *kernel = image_with((const uint32_t[]){1, 1, 1}, 0);
            bh_kernel_info info = {.binding_count = 1, .bindings = {{.access = 3, .count = 8}}};
            kernel->declared = told ? malloc(sizeof info) : NULL;
            BHT_TRUE(!told || kernel->declared);
            if (told) {
                *kernel->declared = info;
            }
            bh_binding binding = rows[i].binding;
            bh_detail detail = {0};
            binding.buffer = puppet.buffer;
            binding.size = BH_WHOLE_SIZE;
            BHT_EQ(bh_launch(puppet.stream, kernel, (const uint32_t[]){1, 1, 1}, &binding, 1, NULL,
                             0, NULL, &detail),
                   rows[i].reason ? BH_INVALID_ARGUMENT : BH_OK);
            BHT_EQ(detail.reason, rows[i].reason);
            BHT_STR_HAS(detail.message, rows[i].why);
        }
    }
}

enum {
    HEADER = sizeof(struct bhi_lane_record),
    FILL = sizeof(struct bhi_cmd_fill),
    COPY = sizeof(struct bhi_cmd_copy),
};

/* -- what a worker is told of it -------------------------------------------------------------- */

/* A kernel whose binding 2 is read in set 0, and written in set 1. */
static void declare(bh_kernel *kernel) {
    bh_kernel_info *info = calloc(1, sizeof *info); /* released with it */
    BHT_TRUE(info);
    info->binding_count = 2;
    info->bindings[0] = (bh_kernel_binding){.binding = 2, .access = BH_ACCESS_READ, .count = 1};
    info->bindings[1] =
        (bh_kernel_binding){.set = 1, .binding = 2, .access = BH_ACCESS_WRITE, .count = 2};
    kernel->declared = info;
}

/* B5. What is written whole is overwritten, if it is sure that it is. */
TEST(b5_what_a_binding_does) {
    enum { R = BH_ACCESS_READ, W = BH_ACCESS_WRITE, RW = R | W, OPTIONAL = BH_ACCESS_OPTIONAL };
    const uint64_t whole = BH_WHOLE_SIZE;
    const struct {
        bh_binding is;
        uint32_t access;
        bool undeclared, reads, writes, overwrites;
        uint64_t size;
    } rows[] = {
        {{.access = R, .size = whole}, R, .reads = true, .size = 4096},
        {{.access = W, .size = whole}, W, .writes = true, .overwrites = true, .size = 4096},
        {{.access = W, .size = 4096}, W, .writes = true, .overwrites = true, .size = 4096},
        {{.access = W, .size = whole, .offset = 4}, W, .writes = true, .size = 4092},
        {{.access = W, .size = 4092}, W, .writes = true, .size = 4092},
        {{.access = RW, .size = 8, .offset = 16}, RW, .reads = true, .writes = true, .size = 8},
        {{.binding = 2, .size = whole}, R, .reads = true, .size = 4096},
        {{.binding = 2, .set = 1, .size = whole}, W, .writes = true, .size = 4096},
        {{.access = W | OPTIONAL, .binding = 2, .set = 1, .element = 1, .size = whole},
         W | OPTIONAL,
         .writes = true,
         .overwrites = true,
         .size = 4096},
        {{.access = W | OPTIONAL, .binding = 2, .set = 1, .element = 2, .size = whole},
         W | OPTIONAL,
         .writes = true,
         .size = 4096},
        {{.access = W | OPTIONAL, .binding = 3, .size = whole},
         W | OPTIONAL,
         .writes = true,
         .size = 4096},
        {{.access = OPTIONAL, .binding = 3, .size = whole},
         R | OPTIONAL,
         .reads = true,
         .size = 4096},
        {{.access = W | OPTIONAL, .binding = 2, .set = 1, .size = whole},
         W | OPTIONAL,
         .undeclared = true,
         .writes = true,
         .size = 4096},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        if (!rows[i].undeclared) {
            declare(kernels[V]);
        }
        bh_binding binding = rows[i].is;
        binding.buffer = puppet.buffer;
        static const uint32_t push[] = {11, 12};
        bh_command command = fx_dispatch(kernels[V], &binding, 1);
        for (uint32_t axis = 0; axis < 3; axis++) {
            command.dispatch.groups[axis] = 2 + axis;
        }
        command.dispatch.push = push;
        command.dispatch.push_size = sizeof push;
        const bh_event *event = fx_command(puppet.stream, command, NULL, 0);
        const struct bhi_submission *is = event->submission;
        BHT_EQ(is->use_count, 1);
        BHT_EQ(is->uses[0].reads, rows[i].reads);
        BHT_EQ(is->uses[0].writes, rows[i].writes);
        BHT_EQ(is->uses[0].overwrites, rows[i].overwrites);
        const struct {
            struct bhi_cmd_dispatch dispatch;
            struct bhi_cmd_binding binding;
            uint32_t push[2];
        } wanted = {.dispatch = {.header = {.type = BHI_CMD_DISPATCH, .size = sizeof wanted},
                                 .kernel = kernels[V]->body->id,
                                 .groups_x = 2,
                                 .groups_y = 3,
                                 .groups_z = 4,
                                 .binding_count = 1,
                                 .push_size = sizeof push},
                    .binding = {.buffer = puppet.buffer->id,
                                .offset = binding.offset,
                                .size = rows[i].size,
                                .set = binding.set,
                                .binding = binding.binding,
                                .access = rows[i].access,
                                .element = binding.element},
                    .push = {11, 12}};
        const struct bhi_lane_record *record = bhi_payload_of(is)->record;
        BHT_EQ(record->size, HEADER + sizeof wanted);
        BHT_TRUE(memcmp(bhi_record_first(record), &wanted, sizeof wanted) == 0);
    }
}

/* All of a kernel, once; and if it is to be compiled only, that. */
TEST(what_a_worker_is_told_of_a_kernel) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = NULL;
    BHT_EQ(bh_kernel_prepare(kernels[T], puppet.stream, &event, NULL), BH_OK);
    const struct bhi_cmd_prepare wanted = {
        .header = {.type = BHI_CMD_PREPARE, .size = sizeof wanted}, .kernel = kernels[T]->body->id};
    const struct bhi_lane_record *record = bhi_payload_of(event->submission)->record;
    BHT_EQ(record->size, HEADER + sizeof wanted);
    BHT_TRUE(memcmp(bhi_record_first(record), &wanted, sizeof wanted) == 0);
    struct bhi_msg_kernel_create create = {.kernel = wanted.kernel,
                                           .format = BHI_KERNEL_SPIRV,
                                           .code_bytes = 20,
                                           .trusted = 1,
                                           .entry = "main",
                                           .name = "d"};
    memcpy(create.hash, kernels[T]->body->hash, sizeof create.hash);
    unsigned told = 0;
    BHI_LIST_FOR(const struct bhi_outgoing, outgoing, &worker->outbox, link) {
        if (outgoing->message.type == BHI_MSG_KERNEL_CREATE) {
            BHT_TRUE(memcmp(&outgoing->message.kernel_create, &create, sizeof create) == 0);
            BHT_GE(outgoing->fd, 0);
            told++;
        }
    }
    BHT_EQ(told, 1);
    BHT_EQ(puppet.context->kernels->introduced, 1);
    (void)fx_command(puppet.stream, fx_dispatch(kernels[T], NULL, 0), NULL, 0);
    BHT_EQ(puppet.context->kernels->introduced, 1);
}

/* -- lanes ------------------------------------------------------------------------------------ */

/* A submission whose record has |bytes|, more or less. Returns NULL if it is refused. */
static bh_event *submit_record(uint64_t bytes, bh_detail *detail) {
    static bh_command commands[BHI_LANE_MAX_RECORD / FILL + 2];
    static const bh_buffer *from;
    const uint64_t rest = bytes - HEADER;
    uint64_t copies = 0;
    while ((rest - copies * COPY) % FILL) {
        copies++;
    }
    from = fx_buffer(puppet.context, 4);
    bh_submit_info info = {.struct_size = sizeof info, .commands = commands};
    for (uint64_t at = 0; at < rest; info.command_count++) {
        const bool copy = info.command_count < copies;
        commands[info.command_count] =
            copy ? (bh_command){.type = BH_COMMAND_COPY,
                                .copy = {.src = (bh_buffer *)(uintptr_t)from,
                                         .dst = puppet.buffer,
                                         .size = 4}}
                 : (bh_command){.type = BH_COMMAND_FILL, .fill = {.dst = puppet.buffer, .size = 4}};
        at += copy ? COPY : FILL;
    }
    bh_event *event = NULL;
    const bh_status status = bh_submit(puppet.stream, &info, &event, detail);
    BHT_EQ(status == BH_OK, !!event);
    return event;
}

/* Two of the largest records fill a lane to the last byte. */
TEST(the_largest_records) {
    const struct bhi_worker *worker = puppet_serving();
    bh_detail detail = {0};
    for (int i = 0; i < 3; i++) {
        BHT_TRUE(submit_record(BHI_LANE_MAX_RECORD, &detail));
    }
    BHT_EQ(worker->core.published, 2);
    BHT_EQ(bhi_lane_space(&worker->lane, 0), 0);
    BHT_TRUE(!submit_record(BHI_LANE_MAX_RECORD + 8, &detail));
    BHT_STR_HAS(detail.message, "split it");
}

/* The reactor wakes for the first deadline, whichever stream came first; not for a later one. */
TEST(e9_the_first_deadline_wakes) {
    static const uint64_t deadlines_ns[] = {60000 * FX_MS, 600 * FX_MS, 6000 * FX_MS};
    uint64_t first_ns = BH_FOREVER;
    for (size_t i = 0; i < BHT_COUNT(deadlines_ns); i++) {
        bh_stream *stream = puppet_stream(NULL, NULL);
        stream->deadline_ns = deadlines_ns[i];
        puppet_bind(puppet_worker(BHI_RUNNING), stream);
        const uint64_t before_ns = puppet.context->poller.armed_ns;
        (void)fx_fill(stream, fx_buffer(puppet.context, 64), 7);
        const uint64_t now_ns = puppet.context->poller.armed_ns;
        BHT_TRUE(now_ns <= before_ns && now_ns <= bhi_now_ns() + deadlines_ns[i]);
        first_ns = first_ns < now_ns ? first_ns : now_ns;
        BHT_EQ(now_ns, first_ns);
    }
}

/* Each buffer is noted once, with all that is done to it: b is read here, and written later. */
TEST(b5_what_it_does_to_each_buffer) {
    bh_buffer *const buffers[] = {puppet.buffer, fx_buffer(puppet.context, 64),
                                  fx_buffer(puppet.context, 64)};
    static const int from_to[][2] = {{0, 2}, {1, 2}, {0, 1}};
    static const bool reads[] = {true, true, false}, writes[] = {false, true, true};
    bh_command commands[BHT_COUNT(from_to)];
    for (size_t i = 0; i < BHT_COUNT(from_to); i++) {
        commands[i] = (bh_command){
            .type = BH_COMMAND_COPY,
            .copy = {.src = buffers[from_to[i][0]], .dst = buffers[from_to[i][1]], .size = 64}};
    }
    const bh_event *event = fx_commands(puppet.stream, commands, BHT_COUNT(from_to));
    const struct bhi_submission *submission = event->submission;
    BHT_EQ(submission->use_count, BHT_COUNT(buffers));
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bhi_use *use = &submission->uses[i];
        const int which = use->content == &buffers[0]->content   ? 0
                          : use->content == &buffers[1]->content ? 1
                                                                 : 2;
        BHT_TRUE(use->content == &buffers[which]->content);
        BHT_EQ(use->reads, reads[which]);
        BHT_EQ(use->writes, writes[which]);
    }
}

/* What the host is told that wants a buffer: what is poisoned can be overwritten, and is good again at
 * once, or when submissions have done it; nothing can be done with what is in use. */
TEST(b5_what_the_host_may_do_with_content) {
    enum { CLEAN, POISONED, USED, LOADED, STATES };
    enum { ACCESSES = BHI_HOST_REPLACE + 1 };
    for (int i = 0; i < STATES * ACCESSES; i++) {
        const int state = i / ACCESSES;
        const enum bhi_host_access access = (enum bhi_host_access)(i % ACCESSES);
        puppet_again();
        bh_event *event = puppet_submit();
        struct bhi_load load = {.event = event};
        if (state == CLEAN) {
            puppet_complete(puppet_serving(), 1);
            fx_expect(event, BH_OK);
        } else if (state == POISONED) {
            struct bhi_worker *worker = puppet_serving();
            puppet_begins(worker, 1);
            puppet_killed(worker, SIGSEGV);
        } else if (state == LOADED) {
            puppet.buffer->load = &load;
        }
        const bool pending = state == USED || state == LOADED;
        const bool bad = state == POISONED && (access == BHI_HOST_READ || access == BHI_HOST_WRITE);
        bh_detail detail = {0};
        puppet.buffer->changeable = false;
        const uint32_t refs = atomic_load(&event->refs);
        BHT_EQ(bhi_buffer_acquire(puppet.buffer, access, 0, "test", &detail), pending ? BH_TIMEOUT
                                                                              : bad
                                                                                  ? BH_WORKER_SIGNAL
                                                                                  : BH_OK);
        BHT_TRUE(!pending || atomic_load(&event->refs) == refs);
        BHT_EQ(detail.reason == BH_REASON_PENDING, pending);
        if (pending || bad) {
            BHT_STR_HAS(detail.message, bad               ? "the content is poisoned by event"
                                        : state == LOADED ? "is still being loaded: event"
                                                          : "is still in use: event");
        }
        BHT_EQ(puppet.buffer->changeable, !pending && access != BHI_HOST_READ);
        if (state == POISONED) {
            BHT_EQ(bhi_buffer_acquire(puppet.buffer, BHI_HOST_READ, 0, "test", NULL),
                   access == BHI_HOST_DISCARD ? BH_OK : BH_WORKER_SIGNAL);
        }
        puppet.buffer->load = NULL;
    }
}

/* A map to discard is one. */
TEST(b5_a_map_says_what_it_is_for) {
    struct bhi_worker *worker = puppet_serving();
    void *pointer = &pointer;
    (void)puppet_submit();
    puppet_begins(worker, 1);
    puppet_killed(worker, SIGSEGV);
    BHT_EQ(bh_buffer_map(puppet.buffer, BH_MAP_READ_WRITE, 0, &pointer, NULL), BH_WORKER_SIGNAL);
    BHT_TRUE(!pointer);
    BHT_EQ(bh_buffer_map(puppet.buffer, BH_MAP_DISCARD, 0, &pointer, NULL), BH_OK);
    BHT_TRUE(pointer == puppet.buffer->pointer);
    BHT_EQ(bh_buffer_map(puppet.buffer, BH_MAP_READ, 0, &pointer, NULL), BH_OK);
}

/* T6. No worker can fail to compile what it has run; what it has only prepared, it can: another
 * launch may need another pipeline. */
TEST(t6_it_compiles_what_it_has_run) {
    static const bh_status claims[] = {BH_INVALID_KERNEL, BH_COMPILE_FAILED};
    enum { NOTHING, PREPARED, RUN, BEFORE };
    for (size_t i = 0; i < BEFORE * BHT_COUNT(claims); i++) {
        const uint64_t before = i % BEFORE, earlier = before != NOTHING;
        bh_command commands[MOST];
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        if (before == PREPARED) {
            BHT_EQ(bh_kernel_prepare(kernels[U], puppet.stream, NULL, NULL), BH_OK);
        } else if (before == RUN) {
            (void)fx_commands(puppet.stream, commands, commands_of("a", commands));
        }
        if (earlier) {
            puppet_complete(worker, 1);
        }
        bh_event *event = fx_commands(puppet.stream, commands, commands_of("a", commands));
        const struct bhi_result result = {.seq = 1 + earlier, .status = claims[i / BEFORE]};
        puppet_begins(worker, result.seq);
        bhi_progress_result(puppet_side(worker), &result, &(struct bhi_why){.text = "so"});
        bhi_progress_publish(puppet_side(worker), result.seq, worker->lane.head);
        (void)bh_event_query(event);
        BHT_EQ(worker->core.life.violated, before == RUN);
    }
}

/* T6. Nor does it compile that again; that it has done so is no lie. */
TEST(t6_it_does_not_compile_what_it_has_run) {
    for (uint64_t ended = 0; ended < 2; ended++) {
        puppet_again();
        bh_command commands[MOST];
        struct bhi_worker *worker = puppet_serving();
        (void)fx_commands(puppet.stream, commands, commands_of("a", commands));
        (void)fx_commands(puppet.stream, commands, commands_of("a", commands));
        puppet_complete(worker, 1);
        puppet_begins(worker, 2);
        atomic_store(&puppet_side(worker)->header->compile_seq, 2);
        atomic_store(&puppet_side(worker)->header->run_seq, 1 + ended);
        bhi_context_lock(puppet.context);
        (void)bhi_worker_check_deadline(worker, bhi_now_ns());
        bhi_context_pump_unlock(puppet.context);
        BHT_EQ(worker->core.life.violated, !ended);
    }
}

/* -- verdicts --------------------------------------------------------------------------------- */

/* The worker dies in it, or fails at a command: the kernel is named if there is no other that it could
 * be. */
TEST(e14_whose_kernel_it_was) {
    static const struct {
        const char *kernels;
        uint32_t command; /* that failed; BH_NO_COMMAND: it died */
        const char *named;
        uint32_t index;
    } rows[] = {
        {"a", BH_NO_COMMAND, "a", 0},
        {"aa", BH_NO_COMMAND, "a", BH_NO_COMMAND},
        {"ab", BH_NO_COMMAND, "a", BH_NO_COMMAND},
        {"ac", BH_NO_COMMAND, "", BH_NO_COMMAND},
        {"aca", BH_NO_COMMAND, "", BH_NO_COMMAND},
        {"ac", 0, "a", 0},
        {"ac", 1, "c", 1},
        {"aca", 2, "a", 2},
        {"", BH_NO_COMMAND, "", BH_NO_COMMAND},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_command commands[MOST];
        bh_event *event =
            fx_commands(puppet.stream, commands, commands_of(rows[i].kernels, commands));
        puppet_begins(worker, 1);
        if (rows[i].command == BH_NO_COMMAND) {
            puppet_killed(worker, SIGSEGV);
        } else {
            const struct bhi_result result = {.seq = 1,
                                              .status = BH_VULKAN,
                                              .command_index = rows[i].command,
                                              .executed = BH_EXECUTED_UNKNOWN};
            const struct bhi_why why = {
                .subject = rows[i].command ? BH_SUBJECT_FILE : BH_SUBJECT_KERNEL, .text = "so"};
            bhi_progress_result(puppet_side(worker), &result, &why);
            bhi_progress_publish(puppet_side(worker), 1, worker->lane.head);
        }
        const bh_verdict verdict = fx_verdict(event);
        BHT_STR_EQ(verdict.kernel_name, rows[i].named);
        BHT_EQ(verdict.command_index, rows[i].index);
        /* A subject that the worker did not name has the host's name, if there is one. */
        const bool of_kernel = rows[i].command == 0;
        BHT_EQ(verdict.subject, of_kernel ? BH_SUBJECT_KERNEL : BH_SUBJECT_NONE);
        BHT_STR_EQ(verdict.subject_name, of_kernel ? rows[i].named : "");
        const uint8_t *hash =
            rows[i].named[0] ? kernels[rows[i].named[0] - 'a']->body->hash : (const uint8_t[32]){0};
        BHT_TRUE(memcmp(verdict.kernel_hash, hash, 32) == 0);
    }
}

/* E7. Who waits for a failure is a victim; what it is told names the kernel, if there is one, as its
 * origin's. */
TEST(e7_a_dependent_is_a_victim) {
    for (int has_kernel = 0; has_kernel < 2; has_kernel++) {
        puppet_again();
        bh_stream *others = puppet_stream("others", NULL);
        struct bhi_worker *worker = puppet_serving();
        const bh_command command = fx_dispatch(kernels[U], NULL, 0);
        bh_event *cause = has_kernel ? fx_commands(puppet.stream, &command, 1) : puppet_submit();
        const bh_submit_info info = {.struct_size = sizeof info, .waits = &cause, .wait_count = 1};
        bh_event *dependent = fx_submit(others, &info);
        puppet_begins(worker, 1);
        puppet_killed(worker, SIGSEGV);
        const bh_verdict verdicts[] = {fx_verdict(cause), fx_verdict(dependent)};
        for (uint32_t hops = 0; hops < 2; hops++) {
            bh_detail detail;
            BHT_EQ(verdicts[hops].hops, hops);
            BHT_EQ(bh_verdict_classify(&verdicts[hops]) == BH_STATUS_CLASS_VICTIM, hops == 1);
            BHT_EQ(bhi_event_report(hops ? dependent : cause, &detail, "test", "event"),
                   verdicts[hops].status);
            char said[1000], wanted[1000];
            snprintf(said, sizeof said, "%.*s", detail.sentence_length,
                     detail.message + detail.sentence);
            snprintf(wanted, sizeof wanted, "event %llu of stream %s%s: %s%s",
                     (unsigned long long)bh_event_id(hops ? dependent : cause),
                     verdicts[hops].stream_name, has_kernel && !hops ? ", kernel a" : "",
                     verdicts[hops].message, has_kernel && hops ? " (kernel a)" : "");
            BHT_STR_EQ(said, wanted);
        }
    }
}

/* Whoever has killed a worker from outside, its submission is a victim, and so is what depends on another;
 * otherwise the status says whose fault it is. */
TEST(whose_fault_a_verdict_says_it_is) {
    static const struct {
        bh_status status;
        int signal;
        bh_blame blame;
        uint32_t hops;
        bh_status_class of;
    } rows[] = {
        {BH_WORKER_SIGNAL, SIGKILL, BH_BLAME_NONE, 0, BH_STATUS_CLASS_VICTIM},
        {BH_WORKER_SIGNAL, SIGSEGV, BH_BLAME_CERTAIN, 0, BH_STATUS_CLASS_GUILTY},
        {BH_LIMIT_EXCEEDED, 0, BH_BLAME_NONE, 0, BH_STATUS_CLASS_INPUT},
        {BH_WORKER_SIGNAL, SIGSEGV, BH_BLAME_CERTAIN, 1, BH_STATUS_CLASS_VICTIM},
        {BH_OK, 0, BH_BLAME_NONE, 0, BH_STATUS_CLASS_NONE},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const bh_verdict verdict = {.status = rows[i].status,
                                    .signal = rows[i].signal,
                                    .blame = rows[i].blame,
                                    .hops = rows[i].hops};
        BHT_EQ(bh_verdict_classify(&verdict), rows[i].of);
    }
    BHT_EQ(bh_verdict_classify(NULL), BH_STATUS_CLASS_NONE);
}

/* -- who is asked ----------------------------------------------------------------------------- */

/* A tenant whose workers have ended late too often gets nothing run; what the library copies for others
 * is not its doing, unless it sees the event itself. */
TEST(a_charged_tenant_gets_nothing_run) {
    bh_stream *other = puppet_stream("other", "another");
    struct bhi_worker *workers[2] = {puppet_serving(), puppet_worker(BHI_RUNNING)};
    puppet_bind(workers[1], other);
    bhi_context_lock(puppet.context);
    while (!bhi_tenant_trouble(puppet.stream->owner, NULL)) {
        bhi_tenant_lost_late(puppet.stream->owner, "one", 4000 * FX_MS);
    }
    bhi_context_unlock(puppet.context);
    struct bhi_internal_copy copy = {.call = "test",
                                     .src = puppet.buffer,
                                     .dst = fx_buffer(puppet.context, 4096),
                                     .bytes = 4096};
    for (int visible = 0; visible < 2; visible++) {
        bh_event *event = NULL;
        copy.visible = visible;
        BHT_EQ(bhi_internal_submit_copy(puppet.stream, &copy, &event, NULL), BH_OK);
        BHT_EQ(bhi_event_state(event), visible ? BH_EVENT_POISONED : BH_EVENT_PENDING);
        bhi_event_unref(event);
    }
    const bh_verdict verdict = fx_expect(puppet_submit(), BH_UNAVAILABLE);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "4000 ms");
    BHT_EQ(bh_event_query(fx_fill(other, fx_buffer(puppet.context, 64), 7)), BH_EVENT_PENDING);
    BHT_EQ(workers[0]->core.published, 1);
    BHT_EQ(workers[1]->core.published, 1);
    BHT_EQ(bh_stream_reset(puppet.stream, NULL), BH_OK);
    BHT_EQ(bh_event_query(puppet_submit()), BH_EVENT_PENDING);
    BHT_EQ(workers[0]->core.published, 2);
}

/* A loader drops a buffer when it has filled it: it is given it each time. */
TEST(a_loader_is_given_a_buffer_each_time) {
    for (int loads = 0; loads < 2; loads++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        worker->kind = loads ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
        for (uint32_t i = 0; i < 3; i++) {
            (void)puppet_submit();
            BHT_EQ(worker->control_sent, loads ? i + 1 : 1);
        }
        worker->kind = BHI_WORKER_DEVICE;
    }
}

/* -- the library's own ------------------------------------------------------------------------ */

/* It is tried again when somebody else has killed its worker. One whose failure its caller reports is no
 * failure of the stream's. What it reads of a file is counted until it has ended. */
TEST(what_the_library_submits_for_itself) {
    const struct bhi_cmd_fill command = {.header = {.type = BHI_CMD_FILL, .size = sizeof command},
                                         .dst = puppet.buffer->id,
                                         .bytes = 4096};
    for (unsigned i = 0; i < 4; i++) {
        struct bhi_internal_submission is = {.call = "test",
                                             .command = &command,
                                             .size = sizeof command,
                                             .load_bytes = 7,
                                             .fills = puppet.buffer,
                                             .deadline_ns = 9,
                                             .hidden = i % 2,
                                             .failure_uncounted = i / 2};
        bh_event *event = NULL;
        BHT_EQ(bhi_internal_submit(puppet.stream, &is, &event, NULL), BH_OK);
        BHT_EQ(puppet.context->counts.load_bytes, 7);
        const struct bhi_submission *submission = event->submission;
        BHT_EQ(submission->repeat, BHI_REPEAT_VICTIM);
        BHT_EQ(submission->failure_reported, is.failure_uncounted);
        BHT_EQ(event->library, is.hidden);
        BHT_EQ(submission->deadline_ns, 9);
        BHT_EQ(submission->use_count, 1);
        BHT_TRUE(submission->uses[0].writes && submission->uses[0].overwrites &&
                 !submission->uses[0].reads);
        BHT_TRUE(puppet.buffer->changeable); /* it is no load */
        const struct bhi_lane_record *record = bhi_payload_of(submission)->record;
        BHT_EQ(record->size, HEADER + FILL);
        BHT_EQ(record->command_count, 1);
        BHT_TRUE(memcmp(bhi_record_first(record), &command, sizeof command) == 0);
        bhi_context_lock(puppet.context);
        bhi_stream_end_queued(&puppet.stream->core, BH_CANCELLED, "");
        bhi_context_pump_unlock(puppet.context);
        BHT_EQ(puppet.context->counts.load_bytes, 0);
        BHT_EQ(bh_stream_synchronize(puppet.stream, 0, NULL),
               is.failure_uncounted ? BH_OK : BH_CANCELLED);
        BHT_EQ(bh_stream_reset(puppet.stream, NULL), BH_OK);
        bhi_event_unref(event);
    }
}

/* -- streams ---------------------------------------------------------------------------------- */

/* One that has nothing to do wants a worker as long as a thread waits for one, and no longer. */
TEST(a_stream_rests_again_when_nobody_waits) {
    puppet.context->settings.worker_idle_ns = 1;
    BHT_TRUE(bhi_stream_rests(puppet.stream));
    BHT_EQ(bh_stream_wait_ready(puppet.stream, 0, NULL), BH_TIMEOUT);
    BHT_EQ(puppet.stream->awaited, 0);
    BHT_TRUE(bhi_stream_rests(puppet.stream));
    bh_event *event = puppet_submit();
    BHT_TRUE(!bhi_stream_rests(puppet.stream));
    BHT_EQ(bh_event_cancel(event), BH_OK);
    BHT_TRUE(bhi_stream_rests(puppet.stream));
}

static unsigned woken; /* the reactor, which has ended */

BHT_WRAP(void, bhi_poller_wake, struct bhi_poller *poller) {
    if (puppet.context && poller == &puppet.context->poller && poller->wake < 0) {
        woken++;
    } else {
        __real_bhi_poller_wake(poller);
    }
}

/* The reactor gives it a worker at once when it wants one again: because a thread waits, or because it
 * has something to do; and when it is new. */
TEST(a_stream_that_rests_no_longer_wakes_the_reactor) {
    enum { WAIT, SUBMIT, MAKE, WAYS };
    for (int way = 0; way < WAYS; way++) {
        puppet_again();
        puppet.context->settings.worker_idle_ns = 1;
        puppet.context->poller.stopped = false;
        woken = 0;
        if (way == WAIT) {
            BHT_EQ(bh_stream_wait_ready(puppet.stream, 0, NULL), BH_TIMEOUT);
        } else if (way == SUBMIT) {
            (void)puppet_submit();
        } else {
            (void)puppet_stream(NULL, NULL);
        }
        puppet.context->poller.stopped = true;
        BHT_EQ(woken, 1);
    }
}

/* Nothing else may happen until a deadline that counts the wait for a worker: the driver's process may
 * load for ever. */
TEST(a_deadline_that_counts_the_wait_wakes_the_reactor) {
    for (int counts = 0; counts < 2; counts++) {
        puppet_again();
        const struct bhi_cmd_fill command = {
            .header = {.type = BHI_CMD_FILL, .size = sizeof command}, .dst = 1, .bytes = 4096};
        const struct bhi_internal_submission is = {.call = "test",
                                                   .command = &command,
                                                   .size = sizeof command,
                                                   .deadline_ns = FX_SECONDS,
                                                   .wait_counts = counts};
        bh_event *event = NULL;
        puppet.context->poller.stopped = false;
        woken = 0;
        BHT_EQ(bhi_internal_submit(puppet.stream, &is, &event, NULL), BH_OK);
        puppet.context->poller.stopped = true;
        BHT_EQ(woken, counts);
        bhi_event_unref(event);
    }
}

/* Spares are for the tenants that there are. */
TEST(a_stream_that_comes_or_goes_changes_the_spares) {
    puppet.context->spares_due = false;
    bh_stream *stream = puppet_stream(NULL, "red");
    BHT_TRUE(puppet.context->spares_due);
    puppet.context->spares_due = false;
    bh_stream_release(stream);
    BHT_TRUE(puppet.context->spares_due);
}
