/* bh_submit and bh_launch. The structs of a host that was built with an older or newer header are
 * copied into the library's layout and then submitted as usual. Errors that bhi_submit finds before
 * it reads an array's elements are left to bhi_submit. */
#include "base/detail.h"
#include "supervisor/context/layout.h"
#include "supervisor/submit/encode.h"
#include "supervisor/submit/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the bindings of each command; |copies| has one entry for each command. */
static bh_status take_bindings(bh_command *commands, uint32_t count, size_t binding_size,
                               void **copies, bh_detail *detail) {
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < count && status == BH_OK; i++) {
        bh_command *command = &commands[i];
        if (command->type != BH_COMMAND_DISPATCH || command->binding_count > BHI_MAX_BINDINGS) {
            continue;
        }
        char what[48];
        const void *bindings;
        snprintf(what, sizeof what, "command %u: bindings", i);
        status = bhi_layout_take_array(BHI_OURS(bh_binding), command->bindings, binding_size,
                                       command->binding_count, "bh_submit", what, &bindings,
                                       &copies[i], detail);
        command->bindings = bindings;
    }
    return status;
}

/* Replaces ours->commands by commands in the library's layout. *out_copies: what must be freed. */
static bh_status take_commands(bh_submit_info *ours, size_t command_size, size_t binding_size,
                               void ***out_copies, bh_detail *detail) {
    const uint32_t count = ours->command_count;
    const void *commands;
    void **copies = calloc(count + 1u, sizeof *copies); /* the last entry is for the commands */
    if (!copies) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_submit");
    }
    *out_copies = copies;
    bh_status status =
        bhi_layout_take_array(BHI_OURS(bh_command), ours->commands, command_size, count,
                              "bh_submit", "commands", &commands, &copies[count], detail);
    if (status != BH_OK) {
        return status;
    }
    if (binding_size == sizeof(bh_binding)) {
        ours->commands = commands;
        return BH_OK;
    }
    if (!copies[count]) { /* the caller's struct must not be changed */
        copies[count] = malloc(count * sizeof(bh_command));
        if (!copies[count]) {
            return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_submit");
        }
        memcpy(copies[count], commands, count * sizeof(bh_command));
    }
    ours->commands = copies[count];
    return take_bindings(copies[count], count, binding_size, copies, detail);
}

static bh_status submit_foreign(bh_stream *stream, const bh_submit_info *info, size_t info_size,
                                size_t command_size, size_t binding_size, bh_event **out_event,
                                bh_detail *detail) {
    bh_submit_info ours = {0};
    void **copies = NULL;
    uint32_t count = 0;
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_command), command_size, "bh_submit", "commands", detail);
    if (status == BH_OK) {
        status =
            bhi_layout_check(BHI_OURS(bh_binding), binding_size, "bh_submit", "bindings", detail);
    }
    if (status == BH_OK && info) {
        status = bhi_layout_take(BHI_OURS(bh_submit_info), &ours, info, info_size, "bh_submit",
                                 "info", detail);
    }
    if (status == BH_OK && ours.commands && ours.command_count &&
        ours.command_count <= BHI_MAX_COMMANDS) {
        count = ours.command_count;
        status = take_commands(&ours, command_size, binding_size, &copies, detail);
    }
    if (status == BH_OK) {
        status = bhi_submit(stream, info ? &ours : NULL, out_event, detail);
    } else if (out_event) {
        *out_event = NULL;
    }
    for (uint32_t i = 0; copies && i <= count; i++) {
        free(copies[i]);
    }
    free(copies);
    return status;
}

static bh_status launch_foreign(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                                const bh_binding *bindings, uint32_t binding_count,
                                size_t binding_size, const void *push, uint32_t push_size,
                                bh_event **out_event, bh_detail *detail) {
    const void *ours = bindings;
    void *copy = NULL;
    if (out_event) {
        *out_event = NULL;
    }
    bh_status status = bhi_layout_take_array(BHI_OURS(bh_binding), bindings, binding_size,
                                             binding_count <= BHI_MAX_BINDINGS ? binding_count : 0,
                                             "bh_launch", "bindings", &ours, &copy, detail);
    if (status == BH_OK) {
        status = bhi_launch(stream, kernel, groups, ours, binding_count, push, push_size, out_event,
                            detail);
    }
    free(copy);
    return status;
}

BH_API bh_status bh_submit_sized(bh_stream *stream, const bh_submit_info *info, size_t info_size,
                                 size_t command_size, size_t binding_size, bh_event **out_event,
                                 bh_detail *detail) {
    if (info_size != sizeof *info || command_size != sizeof *info->commands ||
        binding_size != sizeof *info->commands->bindings) {
        return submit_foreign(stream, info, info_size, command_size, binding_size, out_event,
                              detail);
    }
    return bhi_submit(stream, info, out_event, detail);
}

BH_API bh_status bh_launch_sized(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                                 const bh_binding *bindings, uint32_t binding_count,
                                 size_t binding_size, const void *push, uint32_t push_size,
                                 bh_event **out_event, bh_detail *detail) {
    if (binding_size != sizeof *bindings) {
        return launch_foreign(stream, kernel, groups, bindings, binding_count, binding_size, push,
                              push_size, out_event, detail);
    }
    return bhi_launch(stream, kernel, groups, bindings, binding_count, push, push_size, out_event,
                      detail);
}
