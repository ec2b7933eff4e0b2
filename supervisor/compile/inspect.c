/* bh_kernel_inspect: has a compiler read what a module declares. */
#include "base/copy_once.h"
#include "base/detail.h"
#include "base/owner.h"
#include "base/text.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/compile/compiler.h"
#include "supervisor/compile/inspection_take.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/kernel.h"

#include <stdlib.h>
#include <string.h>

#define CALL        "bh_kernel_inspect"
#define DEADLINE_NS (60ull * 1000000000)
#define FIRST_TEXT  (256u << 10) /* room for a disassembly at the first attempt */

/* |given| may be NULL: the defaults. */
static bh_status take_options(const bh_inspect_options *given, bh_inspect_options *options,
                              bh_detail *detail) {
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_inspect_options), options, given, CALL, "options", detail));
    options->deadline_ns = options->deadline_ns ? options->deadline_ns : DEADLINE_NS;
    if (options->text && !options->guarded) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "options.text",
                        .text = "needs options.guarded");
    }
    if (options->text && !options->text_size) {
        return BHI_FAIL(detail, CALL, BH_REASON_ARGUMENT, "options.text_size",
                        .text = "is 0: an empty text needs 1 byte");
    }
    return BH_OK;
}

static bh_status make_request(const struct bh_kernel *kernel, bool guarded, struct bh_buffer **out,
                              bh_detail *detail) {
    const struct bhi_kernel_body *body = kernel->body;
    struct bhi_inspection_call request = {
        .code_bytes = body->code_size,
        .constants = body->specialization_count,
        .guarded = guarded,
    };
    memcpy(request.entry, body->entry, sizeof request.entry);
    _Static_assert(sizeof request.entry == sizeof body->entry, "one entry point's name");
    uint64_t constants = body->specialization_count * sizeof(struct bhi_inspection_constant);
    BHI_TRY(bhi_buffer_make(kernel->context, sizeof request + constants + body->code_size, CALL,
                            out, detail));
    uint8_t *at = (*out)->pointer;
    memcpy(at, &request, sizeof request);
    at += sizeof request;
    for (uint32_t i = 0; i < body->specialization_count; i++) {
        const struct bhi_inspection_constant one = {
            .constant_id = body->specializations[i].constant_id,
            .size = body->specializations[i].size,
            .bits = body->specializations[i].bits,
        };
        memcpy(at, &one, sizeof one);
        at += sizeof one;
    }
    memcpy(at, body->code, body->code_size);
    return BH_OK;
}

/* -- the answer ------------------------------------------------------------------------------- */

static bh_status makes_no_sense(const struct bh_kernel *kernel, bh_detail *detail) {
    return BHI_FAIL(detail, CALL, BH_REASON_IMPOSSIBLE, kernel->name, .subject = BH_SUBJECT_KERNEL,
                    .text = "the compiler");
}

static bh_status take_text(const struct bh_buffer *answer, uint64_t bytes,
                           const bh_inspect_options *options, bh_detail *detail) {
    if (bytes >= options->text_size) {
        bytes = options->text_size - 1;
    }
    BHI_AUTO_FREE char *copy = malloc(bytes + 1);
    if (!copy) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    bhi_copy_once(copy, (const uint8_t *)answer->pointer + sizeof(struct bhi_inspection), bytes);
    bhi_text_sanitise(options->text, options->text_size, copy, bytes);
    return BH_OK;
}

/* *out_room: the size of the text, if it did not fit into the answer. */
static bh_status take_answer(const struct bh_kernel *kernel, const struct bh_buffer *answer,
                             const bh_inspect_options *options, uint64_t *out_room,
                             bh_inspection *out, bh_detail *detail) {
    BHI_AUTO_FREE struct bhi_inspection *copy = malloc(sizeof *copy);
    if (!copy) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    bhi_copy_once(copy, answer->pointer, sizeof *copy);
    bh_status status = BH_OK;
    uint64_t room = answer->size - sizeof *copy;
    if (copy->refused == BH_INVALID_KERNEL || copy->refused == BH_LIMIT_EXCEEDED) {
        char reason[BHI_INSPECT_REASON];
        bhi_text_line(reason, sizeof reason, copy->reason, sizeof copy->reason);
        status =
            BHI_FAIL(detail, CALL, BH_REASON_KERNEL_RULE, kernel->name,
                     .status = (bh_status)copy->refused, .place = kernel->name, .text = reason);
    } else if (copy->refused || !bhi_inspection_take(copy, out)) {
        status = makes_no_sense(kernel, detail);
    } else if (options->text && out->text_bytes > room) {
        *out_room = out->text_bytes;
    } else if (options->text) {
        status = take_text(answer, out->text_bytes, options, detail);
    }
    return status;
}

/* Inspects with room for |room| bytes of text. *out_room: as above. */
static bh_status inspect(struct bh_kernel *kernel, const bh_inspect_options *options,
                         struct bh_buffer *request, uint64_t room, uint64_t *out_room,
                         bh_inspection *out, bh_detail *detail) {
    struct bh_buffer *answer;
    BHI_TRY(bhi_buffer_make(kernel->context, sizeof(struct bhi_inspection) + room, CALL, &answer,
                            detail));
    const struct bhi_cmd_reflect command = {
        .header = {.type = BHI_CMD_REFLECT, .size = sizeof command},
        .source = request->id,
        .answer = answer->id,
    };
    const struct bhi_compiler_request asked = {
        .subject = kernel->name,
        .memory = BHI_COMPILER_MEMORY,
        .internal = {.call = CALL,
                     .command = &command,
                     .size = sizeof command,
                     .reads = request,
                     .fills = answer,
                     .deadline_ns = options->deadline_ns,
                     .failure_uncounted = true},
    };
    bh_status status = bhi_compiler_ask(kernel->context, &asked, detail);
    if (status == BH_OK) {
        status = take_answer(kernel, answer, options, out_room, out, detail);
    }
    bh_buffer_release(answer);
    return status;
}

static bh_status run(struct bh_kernel *kernel, const bh_inspect_options *options,
                     bh_inspection *out, bh_detail *detail) {
    struct bh_buffer *request;
    BHI_TRY(make_request(kernel, options->guarded, &request, detail));
    uint64_t room = options->text ? FIRST_TEXT : 0, more = 0;
    bh_status status = inspect(kernel, options, request, room, &more, out, detail);
    if (status == BH_OK && more) {
        room = more;
        more = 0;
        status = inspect(kernel, options, request, room, &more, out, detail);
        if (status == BH_OK && more) {
            status = makes_no_sense(kernel, detail);
        }
    }
    bh_buffer_release(request);
    return status;
}

/* |out| has the library's layout. */
static bh_status inspect_kernel(bh_kernel *kernel, const bh_inspect_options *options,
                                bh_inspection *out, bh_detail *detail) {
    bhi_kernel_ref(kernel); /* the caller may release the kernel in another thread meanwhile */
    bh_status status = run(kernel, options, out, detail);
    bhi_kernel_unref(kernel);
    return status;
}

BH_API bh_status bh_kernel_inspect(bh_kernel *kernel, const bh_inspect_options *given,
                                   bh_inspection *out_inspection, bh_detail *detail) {
    BHI_NEED_LIVE(kernel, CALL, detail);
    bh_inspect_options options;
    BHI_TRY(bhi_context_check(kernel->context, CALL, detail));
    BHI_TRY(take_options(given, &options, detail));
    BHI_TRY(
        bhi_layout_check(BHI_OURS(bh_inspection), out_inspection, CALL, "out_inspection", detail));
    BHI_TRY(bhi_callback_check(CALL, detail));
    BHI_AUTO_FREE bh_inspection *ours = calloc(1, sizeof *ours);
    if (!ours) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    bh_status status = inspect_kernel(kernel, &options, ours, detail);
    if (status == BH_OK) {
        bhi_layout_give(out_inspection, ours, sizeof *ours);
    }
    return status;
}
