#include "request/fill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "request/names.h"

bool bhi_run_set_entry(struct bhi_run_request *request, const char *text,
                       struct bhi_complaint *complaint) {
    request->entry = text;
    return *text ? true : bhi_refuse(complaint, "the name is empty");
}

bool bhi_run_set_language(struct bhi_run_request *request, const char *text,
                          struct bhi_complaint *complaint) {
    return bhi_language_parse(text, &request->language, complaint);
}

bool bhi_run_set_compile_options(struct bhi_run_request *request, const char *text,
                                 struct bhi_complaint *complaint) {
    request->source.options = text;
    return *text ? true : bhi_refuse(complaint, "there are none");
}

bool bhi_run_set_groups(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    return bhi_parse_groups(text, "group", request->groups, complaint);
}

bool bhi_run_set_block(struct bhi_run_request *request, const char *text,
                       struct bhi_complaint *complaint) {
    return bhi_parse_groups(text, "thread", request->block, complaint);
}

bool bhi_run_set_shared(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    uint64_t bytes;
    request->has_shared = true;
    if (!bhi_parse_count(text, 0, UINT32_MAX, &bytes, complaint)) {
        return false;
    }
    request->shared_bytes = (uint32_t)bytes;
    return true;
}

bool bhi_run_set_deadline(struct bhi_run_request *request, const char *text,
                          struct bhi_complaint *complaint) {
    return bhi_parse_duration(text, &request->deadline_ns, complaint);
}

bool bhi_run_set_compile_deadline(struct bhi_run_request *request, const char *text,
                                  struct bhi_complaint *complaint) {
    return bhi_parse_duration(text, &request->compile_deadline_ns, complaint);
}

bool bhi_run_set_grace(struct bhi_run_request *request, const char *text,
                       struct bhi_complaint *complaint) {
    request->limits_grace = true;
    return bhi_parse_grace(text, &request->grace_ns, complaint);
}

bool bhi_run_set_tenant(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    request->tenant = text;
    return bhi_parse_tenant(text, complaint);
}

bool bhi_run_set_repeat(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    return bhi_parse_count(text, 1, BHI_MAX_REPEAT, &request->repeat, complaint);
}

bool bhi_run_set_memory_limit(struct bhi_run_request *request, const char *text,
                              struct bhi_complaint *complaint) {
    request->limits_memory = true;
    return bhi_parse_memory_limit(text, &request->memory_limit, complaint);
}

bool bhi_run_set_memory(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    return bhi_parse_memory(text, &request->memory, complaint);
}

bool bhi_run_set_device(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    request->device = text;
    return *text ? true : bhi_refuse(complaint, "the selector is empty");
}

bool bhi_run_set_cache_dir(struct bhi_run_request *request, const char *text,
                           struct bhi_complaint *complaint) {
    request->cache_dir = text;
    return bhi_parse_cache_dir(text, complaint);
}

bool bhi_run_add_push(struct bhi_run_request *request, const char *text,
                      struct bhi_complaint *complaint) {
    if (strchr(text, '=')) {
        if (request->push.size > 0) {
            return bhi_refuse(complaint,
                              "push constants are given both in order and by name: use one way");
        }
        return bhi_run_parse_push_names(request, text, complaint);
    }
    if (request->push_text_count > 0) {
        return bhi_refuse(complaint,
                          "push constants are given both in order and by name: use one way");
    }
    if (request->push.size > 0) {
        return bhi_refuse(complaint, "given twice: only push constants by name may be split");
    }
    request->push_order = text;
    return bhi_parse_push(text, &request->push, complaint);
}

bool bhi_run_add_constant(struct bhi_run_request *request, const char *name, size_t length,
                          const char *value, struct bhi_complaint *complaint) {
    if (request->spec_count == BHI_MAX_SPECS) {
        return bhi_refuse(complaint, "more than %d constants", BHI_MAX_SPECS);
    }
    bh_specialization *spec = &request->specs[request->spec_count];
    if (!bhi_parse_constant(name, length, value, spec, complaint)) {
        return false;
    }
    for (uint32_t i = 0; i < request->spec_count; i++) {
        if (request->specs[i].constant_id == spec->constant_id) {
            return bhi_refuse(complaint, "constant %u is given twice", spec->constant_id);
        }
    }
    request->spec_count++;
    return true;
}

/* -- sources ------------------------------------------------------------------------------------
 */

bool bhi_run_add_define(struct bhi_run_request *request, const char *name, size_t length,
                        const char *value, struct bhi_complaint *complaint) {
    const bool good = bhi_source_define(&request->source, name, length, value, complaint);
    request->error = request->source.error;
    return good;
}

bool bhi_run_add_include(struct bhi_run_request *request, const char *text,
                         struct bhi_complaint *complaint) {
    const bool good = bhi_source_include(&request->source, text, complaint);
    request->error = request->source.error;
    return good;
}

/* -- bindings -----------------------------------------------------------------------------------
 */

struct bhi_run_binding *bhi_run_add_binding(struct bhi_run_request *request, const char *option,
                                            const char *name, size_t length, const char *files,
                                            struct bhi_complaint *complaint) {
    if (request->binding_count == BHI_MAX_BINDINGS) {
        bhi_refuse(complaint, "more than %d bindings", BHI_MAX_BINDINGS);
        return NULL;
    }
    struct bhi_run_binding *binding = &request->bindings[request->binding_count];
    *binding = (struct bhi_run_binding){
        .option = option, .in.fd = -1, .out = (struct bhi_outfile)BHI_OUTFILE_CLOSED};
    if (asprintf(&binding->text, "%.*s=%s", (int)length, name, files) < 0) {
        request->error = ENOMEM;
        bhi_refuse_memory(complaint);
        return NULL;
    }
    request->binding_count++;
    return binding;
}

bool bhi_run_end_binding(struct bhi_run_request *request, const struct bhi_run_binding *binding,
                         bool good) {
    request->error = binding->error;
    return good;
}

/* Refuses a place that was given before. Two names may still turn out to be one binding. */
static bool check_given(const struct bhi_run_request *request,
                        const struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    for (const struct bhi_run_binding *other = request->bindings; other < binding; other++) {
        if (bhi_slot_is(other->slot, binding->slot) && !strcmp(other->name, binding->name)) {
            return bhi_refuse(complaint, "binding %s is given twice",
                              binding->name[0] ? binding->name
                                               : bhi_slot_describe(binding->slot, false).text);
        }
    }
    return true;
}

static bool add(struct bhi_run_request *request, const char *option, const char *name,
                size_t length, const char *files,
                bool (*parse)(struct bhi_run_binding *binding, const char *files,
                              struct bhi_complaint *complaint),
                struct bhi_complaint *complaint) {
    struct bhi_run_binding *binding =
        bhi_run_add_binding(request, option, name, length, files, complaint);
    return binding &&
           bhi_run_end_binding(request, binding,
                               bhi_binding_parse_place(binding, name, length, complaint) &&
                                   check_given(request, binding, complaint) &&
                                   parse(binding, files, complaint));
}

bool bhi_run_add_in(struct bhi_run_request *request, const char *name, size_t length,
                    const char *value, struct bhi_complaint *complaint) {
    return add(request, "in", name, length, value, bhi_binding_parse_input, complaint);
}

bool bhi_run_add_out(struct bhi_run_request *request, const char *name, size_t length,
                     const char *value, struct bhi_complaint *complaint) {
    return add(request, "out", name, length, value, bhi_binding_parse_output, complaint);
}

bool bhi_run_add_inout(struct bhi_run_request *request, const char *name, size_t length,
                       const char *value, struct bhi_complaint *complaint) {
    return add(request, "inout", name, length, value, bhi_binding_parse_inout, complaint);
}
