#include "cli/run/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/memory.h"
#include "request/content.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/gpu_nodes.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"
#include "tool/session.h"

/* A header on a stream may announce this many bytes before they arrive; for more, the data must
 * come first. */
static const uint64_t trusted_claim = 64u << 20;

/* Puts the argument in front of a complaint about it. Returns false. */
static bool blame(const struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    struct bhi_complaint inner = *complaint;
    return bhi_refuse(complaint, "--%s %.300s: %.600s", binding->option, binding->text, inner.text);
}

/* -- before the run -------------------------------------------------------------------------- */

bool bhi_run_open_stdin(struct bhi_run_request *request, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (!bhi_run_is_stdin(binding)) {
            continue;
        }
        if (!bhi_npy_file_open(binding->in_path, &binding->in, complaint)) {
            return blame(binding, complaint);
        }
        binding->array = binding->in.array;
    }
    return true;
}

static bool refuse_same(struct bhi_run_request *request, uint32_t index,
                        struct bhi_complaint *complaint) {
    struct bhi_run_binding *binding = &request->bindings[index];
    for (uint32_t i = 0; i < index; i++) {
        struct bhi_run_binding *other = &request->bindings[i];
        if (other->out_path && bhi_outfile_same(&other->out, &binding->out)) {
            return bhi_refuse(complaint, "writes the same file as --%s %s", other->option,
                              other->text);
        }
    }
    return true;
}

static bool open_outputs(struct bhi_run_request *request, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (!binding->out_path) {
            continue;
        }
        uint64_t size;
        if (!bhi_binding_make_header(binding, complaint)) {
            return blame(binding, complaint);
        }
        if (__builtin_add_overflow(binding->array.bytes, binding->header_size, &size)) {
            bhi_refuse(complaint, "more than 64 bits can count");
            return blame(binding, complaint);
        }
        if (!bhi_outfile_open(bhi_outfile_is_stdout(binding->out_path) ? "-" : binding->out_path,
                              size, &binding->out, complaint) ||
            !refuse_same(request, i, complaint)) {
            return blame(binding, complaint);
        }
        if (binding->out.is_stdout && request->json) {
            bhi_refuse(complaint, "standard output is already taken by --json");
            return blame(binding, complaint);
        }
    }
    return true;
}

int bhi_run_open_all(struct bhi_run *run) {
    struct bhi_complaint complaint;
    return open_outputs(&run->request, &complaint)
               ? BHI_EXIT_READY
               : bhi_run_refused(run, BH_INVALID_ARGUMENT, &complaint);
}

/* Memory is reserved when a buffer is made: a shape with a few zeros too many must not exhaust the
 * machine. */
static int check_memory(const struct bhi_run_request *request) {
    uint64_t total = 0, available = bhi_memory_unused();
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        /* Existing buffers have their memory already. The device's buffers are refused where they
         * are made. */
        if (!binding->buffer &&
            bhi_memory_for(request->memory, binding->array.bytes) == BH_MEMORY_HOST &&
            __builtin_add_overflow(total, binding->array.bytes, &total)) {
            total = UINT64_MAX;
        }
    }
    if (total <= available) {
        return BHI_EXIT_READY;
    }
    char needed[BHI_QUANTITY], free_now[BHI_QUANTITY];
    bhi_complain(request->command, "the arrays need %s of memory, %s are available",
                 bhi_quantity_bytes(needed, total), bhi_quantity_bytes(free_now, available));
    bhi_ending_blame(BH_NO_MEMORY);
    return BHI_EXIT_ENVIRON;
}

static int fill_buffer(const struct bhi_run_request *request, struct bhi_run_binding *binding,
                       bh_context *context, bh_stream *stream) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    char what[400];

    if (binding->buffer) {
        return BHI_EXIT_READY; /* it was loaded from a file */
    }
    bhi_format(what, sizeof what, "--%s %.300s", binding->option, binding->text);
    if (binding->in_path && !bhi_npy_file_spool(&binding->in, trusted_claim, &complaint)) {
        bhi_complain(request->command, "%s: %s", what, complaint.text);
        bhi_ending_blame(BH_LOAD_FAILED);
        return BHI_EXIT_USAGE;
    }
    bh_buffer_options options = {.struct_size = sizeof options};
    options.memory = bhi_memory_for(request->memory, binding->array.bytes);
    if (options.memory != BH_MEMORY_HOST) {
        options.stream = stream;
    }
    bh_status status =
        bh_buffer_create(context, binding->array.bytes, &options, &binding->buffer, &detail);
    if (status != BH_OK) {
        return bhi_session_fail(request->command, what, status, &detail);
    }
    if (!binding->in_path || bhi_content_fill(binding, &detail, &complaint)) {
        return BHI_EXIT_READY;
    }
    if (detail.status != BH_OK) {
        return bhi_session_fail(request->command, what, detail.status, &detail);
    }
    bhi_complain(request->command, "%s: %s", what, complaint.text);
    bhi_ending_blame(BH_LOAD_FAILED);
    return BHI_EXIT_USAGE;
}

int bhi_run_fill_all(struct bhi_run *run) {
    struct bhi_run_request *request = &run->request;
    int exit_status = check_memory(request);
    for (uint32_t i = 0; i < request->binding_count && exit_status == BHI_EXIT_READY; i++) {
        exit_status = bhi_interrupt_or(
            fill_buffer(request, &request->bindings[i], run->context, run->stream));
    }
    return exit_status;
}

/* -- after it -------------------------------------------------------------------------------- */

static int fail_output(const struct bhi_run_request *request, const struct bhi_run_binding *binding,
                       const struct bhi_complaint *complaint) {
    bhi_complain(request->command, "--%s %s: %s", binding->option, binding->text, complaint->text);
    return bhi_interrupt_or(BHI_EXIT_ENVIRON);
}

static int write_output(const struct bhi_run_request *request, struct bhi_run_binding *binding) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    if (bhi_content_save(binding, &detail, &complaint)) {
        return BHI_EXIT_READY;
    }
    return detail.status != BH_OK
               ? bhi_session_fail(request->command, binding->text, detail.status, &detail)
               : fail_output(request, binding, &complaint);
}

int bhi_run_write_all(struct bhi_run *run) {
    struct bhi_run_request *request = &run->request;
    struct bhi_complaint complaint;
    int exit_status = BHI_EXIT_READY;
    for (uint32_t i = 0; i < request->binding_count && exit_status == BHI_EXIT_READY; i++) {
        if (request->bindings[i].out_path) {
            exit_status = write_output(request, &request->bindings[i]);
        }
    }
    for (uint32_t i = 0; i < request->binding_count && exit_status == BHI_EXIT_READY; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (binding->out_path && !bhi_outfile_commit(&binding->out, &complaint)) {
            exit_status = fail_output(request, binding, &complaint);
        }
    }
    return exit_status;
}
