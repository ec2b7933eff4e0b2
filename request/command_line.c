#include "request/command_line.h"

#include <stddef.h>
#include <string.h>

#include "request/eval.h"
#include "request/fill.h"
#include "request/like.h"

/* What an option fills in; one of these is set. */
struct filler {
    const char *option;
    bhi_run_text *text;
    bhi_run_pair *pair;
    bool alone;  /* a NAME without a VALUE is allowed */
    size_t flag; /* offset of a bool in the request */
};

static const struct filler of_kernel[] = {
    {"entry", .text = bhi_run_set_entry},
    {"language", .text = bhi_run_set_language},
    {"D", .pair = bhi_run_add_define, .alone = true},
    {"I", .text = bhi_run_add_include},
    {"groups", .text = bhi_run_set_groups},
    {"block", .text = bhi_run_set_block},
    {"shared", .text = bhi_run_set_shared},
    {"in", .pair = bhi_run_add_in},
    {"out", .pair = bhi_run_add_out},
    {"inout", .pair = bhi_run_add_inout},
    {"compile-options", .text = bhi_run_set_compile_options},
    {"push", .text = bhi_run_add_push},
    {"spec", .pair = bhi_run_add_constant, .alone = true},
    {"reinterpret", .flag = offsetof(struct bhi_run_request, reinterpret)},
    {"trusted", .flag = offsetof(struct bhi_run_request, trusted)},
    {.option = NULL},
};

static const struct filler of_expression[] = {
    {"in", .pair = bhi_eval_add_input},
    {"out", .pair = bhi_eval_add_output},
    {"set", .pair = bhi_eval_add_number},
    {"piece", .text = bhi_eval_set_piece},
    {.option = NULL},
};

static const struct filler of_both[] = {
    {"deadline", .text = bhi_run_set_deadline},
    {"compile-deadline", .text = bhi_run_set_compile_deadline},
    {"grace", .text = bhi_run_set_grace},
    {"tenant", .text = bhi_run_set_tenant},
    {"repeat", .text = bhi_run_set_repeat},
    {"device", .text = bhi_run_set_device},
    {"memory-limit", .text = bhi_run_set_memory_limit},
    {"memory", .text = bhi_run_set_memory},
    {"cache-dir", .text = bhi_run_set_cache_dir},
    {"time", .flag = offsetof(struct bhi_run_request, time)},
    {"json", .flag = offsetof(struct bhi_run_request, json)},
    {"verbose", .flag = offsetof(struct bhi_run_request, verbose)},
    {.option = NULL},
};

static const struct filler *find(const struct filler *fillers, const char *option) {
    while (fillers->option && strcmp(fillers->option, option) != 0) {
        fillers++;
    }
    return fillers->option ? fillers : NULL;
}

static bool fill(struct bhi_run_request *request, const struct bhi_option *option,
                 const char *value, struct bhi_complaint *complaint) {
    const struct filler *filler = find(request->eval ? of_expression : of_kernel, option->name);
    if (!filler) {
        filler = find(of_both, option->name);
    }
    if (filler->flag) {
        return *(bool *)(void *)((char *)request + filler->flag) = true;
    }
    if (filler->text) {
        return filler->text(request, value, complaint);
    }
    const char *end = strchr(value, '=');
    if (!end && !filler->alone) {
        return bhi_refuse(complaint, "no '=': write --%s %s", option->name, option->value);
    }
    return filler->pair(request, value, end ? (size_t)(end - value) : strlen(value),
                        end ? end + 1 : NULL, complaint);
}

bool bhi_run_parse_option(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint) {
    const struct bhi_option *option = &bhi_options[item->option];
    const char *dashes = bhi_option_dashes(option);
    struct bhi_complaint inner;
    if (fill(request, option, item->value, &inner)) {
        return true;
    }
    return bhi_refuse(complaint, "%s%s %.200s: %.700s", dashes, option->name, item->value,
                      inner.text);
}

bool bhi_run_check_streams(const struct bhi_run_request *request, struct bhi_complaint *complaint) {
    const char *reader = strcmp(request->kernel_path, "-") ? NULL : "KERNEL";
    const char *writer = request->json ? "--json" : NULL;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        if (bhi_run_is_stdin(binding)) {
            if (reader) {
                return bhi_refuse(complaint, "--%s %s: standard input is already taken by %s",
                                  binding->option, binding->text, reader);
            }
            reader = binding->text;
        }
        if (binding->out_path && !strcmp(binding->out_path, "-")) {
            if (writer) {
                return bhi_refuse(complaint, "--%s %s: standard output is already taken by %s",
                                  binding->option, binding->text, writer);
            }
            writer = binding->text;
        }
    }
    return true;
}

bool bhi_run_request_parse(const struct bhi_args *args, struct bhi_run_request *out_request,
                           struct bhi_complaint *complaint) {
    struct bhi_run_request *request = out_request;
    bool good = bhi_run_request_init(request, args->operands[0], args->item_count, complaint);
    for (size_t i = 0; good && i < args->item_count; i++) {
        good = bhi_run_parse_option(request, &args->items[i], complaint);
    }
    good = good && bhi_run_find_likes(request, "--", complaint) &&
           bhi_run_check_streams(request, complaint);
    if (!good) {
        bhi_run_request_free(request);
    }
    return good;
}
