#include "worker/spirv/reflect.h"
#include "base/format.h"

#include "base/sort.h"
#include "worker/error.h"
#include "worker/spirv/catching.h"
#include "worker/spirv/module.h"

#include <bulkhead/bulkhead.h>
#include <spirv_cross/spirv_cross_c.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reflector {
    spvc_context context;
    spvc_compiler compiler;
    const struct bhi_module *module;
    const spvc_reflected_resource *active; /* of the kind that is being reflected */
    size_t active_count;
    struct bhi_module_bindings *out;
    struct bhi_error *error;
    const uint32_t *code; /* for SPIRV-Cross */
    size_t words;
    const char *entry;
    bool good;
};

static void set_failure(struct reflector *r, bool starved, const char *text) {
    if (starved) {
        BHI_ERROR(r->error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
    } else {
        BHI_ERROR_SAY(r->error, BH_REASON_KERNEL_RULE, "the module cannot be reflected: %s", text);
    }
}

static bool cross_failed(struct reflector *r) {
    const char *text =
        r->context ? spvc_context_get_last_error_string(r->context) : "out of memory";
    /* SPIRV-Cross returns the text of the C++ exception, and no code for a lack of memory. */
    set_failure(r, !r->context || strstr(text, "bad_alloc"), text);
    return false;
}

/* Refuses a binding for what it is. Returns false. */
__attribute__((format(printf, 3, 4))) static bool
refuse(struct reflector *r, const struct bhi_reflected_binding *one, const char *format, ...) {
    char name[BHI_SUBJECT_NAME], text[BHI_REASON_TEXT];
    va_list args;
    va_start(args, format);
    bhi_vformat(text, sizeof text, format, args);
    va_end(args);
    bhi_format(name, sizeof name, "set %u binding %u (\"%s\")", one->set, one->binding, one->name);
    BHI_ERROR(r->error, BH_REASON_BINDING_KIND, name, .text = text);
    return false;
}

static void copy_name(struct reflector *r, const char *variable, const char *block, char out[64]) {
    (void)r;
    const char *name = variable && variable[0] != '\0' ? variable : block;
    bhi_text_line(out, 64, name ? name : "", name ? strlen(name) : 0);
}

static bool is_active(const struct reflector *r, spvc_variable_id id) {
    for (size_t i = 0; i < r->active_count; i++) {
        if (r->active[i].id == id) {
            return true;
        }
    }
    return bhi_module_uses(r->module, id) != 0;
}

/* Returns the access that the decorations leave: NonWritable removes write, NonReadable removes
 * read. */
static uint32_t decorated_access(struct reflector *r, spvc_variable_id id) {
    uint32_t access = BH_ACCESS_READ_WRITE;
    const SpvDecoration *decorations = NULL;
    size_t count = 0;
    if (spvc_compiler_get_buffer_block_decorations(r->compiler, id, &decorations, &count) ==
        SPVC_SUCCESS) {
        for (size_t i = 0; i < count; i++) {
            if (decorations[i] == SpvDecorationNonWritable) {
                access &= ~(uint32_t)BH_ACCESS_WRITE;
            } else if (decorations[i] == SpvDecorationNonReadable) {
                access &= ~(uint32_t)BH_ACCESS_READ;
            }
        }
    }
    return access;
}

/* Counts the buffers of the variable: an array of blocks is an array of buffers. */
static bool count_buffers(struct reflector *r, const spvc_reflected_resource *resource,
                          struct bhi_reflected_binding *one) {
    spvc_type type = spvc_compiler_get_type_handle(r->compiler, resource->type_id);
    const unsigned dimensions = type ? spvc_type_get_num_array_dimensions(type) : 0;
    uint64_t count = 1;
    const char *why = NULL;
    if (!type || dimensions > 1) {
        why = "of more than one dimension";
    } else if (dimensions == 1) {
        count = spvc_type_get_array_dimension(type, 0);
        if (!spvc_type_array_dimension_is_literal(type, 0) &&
            !bhi_module_constant(r->module, (uint32_t)count, &count)) {
            why = "whose length is not a constant that can be computed here";
        } else if (count == 0) {
            why = "without a length";
        }
    }
    if (why) {
        return refuse(
            r, one,
            "an array of buffers %s: give it one length, a literal or a specialization constant",
            why);
    }
    if (count > BHI_MAX_BINDINGS) {
        BHI_ERROR_SAY(
            r->error, BH_REASON_KERNEL_LIMIT,
            "set %u binding %u (\"%s\") is an array of %llu buffers, a kernel binds %u at most",
            one->set, one->binding, one->name, (unsigned long long)count, BHI_MAX_BINDINGS);
        return false;
    }
    one->count = (uint32_t)count;
    return true;
}

static bool add_buffer(struct reflector *r, const spvc_reflected_resource *resource,
                       uint32_t kind) {
    const uint32_t set =
        spvc_compiler_get_decoration(r->compiler, resource->id, SpvDecorationDescriptorSet);
    const uint32_t binding =
        spvc_compiler_get_decoration(r->compiler, resource->id, SpvDecorationBinding);
    struct bhi_reflected_binding one = {.set = set, .binding = binding, .kind = kind};
    /* Not resource->name: that is made up if the module has no names. */
    copy_name(r, spvc_compiler_get_name(r->compiler, resource->id),
              spvc_compiler_get_name(r->compiler, resource->base_type_id), one.name);
    if (set >= BHI_MAX_SETS || binding > 65535) {
        BHI_ERROR_SAY(r->error, BH_REASON_KERNEL_LIMIT,
                      "set %u binding %u (\"%s\"): sets go up to 31, bindings up to 65535", set,
                      binding, one.name);
        return false;
    }
    if (!count_buffers(r, resource, &one)) {
        return false;
    }
    const uint32_t uses = bhi_module_uses(r->module, resource->id);
    one.access = kind == BH_BINDING_UNIFORM_BUFFER ? BH_ACCESS_READ
                                                   : decorated_access(r, resource->id) & uses;
    one.access = one.access == 0 ? BH_ACCESS_READ : one.access; /* at most its length is read */
    one.stores = one.access & BH_ACCESS_WRITE;
    one.measured = uses & BHI_MODULE_MEASURED;
    size_t bytes = 0;
    spvc_type block = spvc_compiler_get_type_handle(r->compiler, resource->base_type_id);
    if (kind == BH_BINDING_UNIFORM_BUFFER && block &&
        spvc_compiler_get_declared_struct_size(r->compiler, block, &bytes) == SPVC_SUCCESS) {
        one.min_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    }

    for (uint32_t i = 0; i < r->out->binding_count; i++) {
        struct bhi_reflected_binding *other = &r->out->bindings[i];
        if (other->set != set || other->binding != binding) {
            continue;
        }
        if (other->kind != kind) {
            return refuse(r, &one, "declared as one kind of buffer, and as another as \"%s\"",
                          other->name);
        }
        if (other->count != one.count) {
            return refuse(
                r, &one, "declared with %u buffers, and with %u as \"%s\": declare the same number",
                one.count, other->count, other->name);
        }
        other->access |= one.access;
        other->stores |= one.stores;
        other->measured |= one.measured;
        other->min_bytes = other->min_bytes > one.min_bytes ? other->min_bytes : one.min_bytes;
        if (other->name[0] == '\0') {
            memcpy(other->name, one.name, sizeof other->name);
        }
        return true;
    }
    r->out->buffer_count += one.count;
    if (r->out->buffer_count > BHI_MAX_BINDINGS) {
        BHI_ERROR_SAY(r->error, BH_REASON_KERNEL_LIMIT, "the kernel binds more than %u buffers",
                      BHI_MAX_BINDINGS);
        return false;
    }
    r->out->bindings[r->out->binding_count++] = one;
    if (set >= r->out->set_count) {
        r->out->set_count = set + 1;
    }
    return true;
}

static bool list(struct reflector *r, spvc_resources resources, spvc_resource_type kind,
                 const spvc_reflected_resource **out, size_t *out_count) {
    return spvc_resources_get_resource_list_for_type(resources, kind, out, out_count) ==
               SPVC_SUCCESS ||
           cross_failed(r);
}

static bool add_buffers(struct reflector *r, spvc_resources all, spvc_resources active,
                        spvc_resource_type type, uint32_t kind) {
    const spvc_reflected_resource *resources = NULL;
    size_t count = 0;
    if (!list(r, all, type, &resources, &count) ||
        !list(r, active, type, &r->active, &r->active_count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_active(r, resources[i].id) && !add_buffer(r, &resources[i], kind)) {
            return false;
        }
    }
    return true;
}

/* Refuses every other resource that takes a descriptor, used or not. */
static bool refuse_others(struct reflector *r, spvc_resources all) {
    static const struct {
        spvc_resource_type type;
        const char *what;
    } others[] = {
        {SPVC_RESOURCE_TYPE_STORAGE_IMAGE, "a storage image or texel buffer"},
        {SPVC_RESOURCE_TYPE_SAMPLED_IMAGE, "a combined image sampler"},
        {SPVC_RESOURCE_TYPE_SEPARATE_IMAGE, "a sampled image or texel buffer"},
        {SPVC_RESOURCE_TYPE_SEPARATE_SAMPLERS, "a sampler"},
        {SPVC_RESOURCE_TYPE_SUBPASS_INPUT, "an input attachment"},
        {SPVC_RESOURCE_TYPE_ATOMIC_COUNTER, "an atomic counter"},
        {SPVC_RESOURCE_TYPE_ACCELERATION_STRUCTURE, "an acceleration structure"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const spvc_reflected_resource *resources = NULL;
        size_t count = 0;
        if (!list(r, all, others[i].type, &resources, &count)) {
            return false;
        }
        if (count > 0) {
            struct bhi_reflected_binding one = {
                .set = spvc_compiler_get_decoration(r->compiler, resources[0].id,
                                                    SpvDecorationDescriptorSet),
                .binding = spvc_compiler_get_decoration(r->compiler, resources[0].id,
                                                        SpvDecorationBinding)};
            copy_name(r, spvc_compiler_get_name(r->compiler, resources[0].id), resources[0].name,
                      one.name);
            return refuse(r, &one,
                          "%s; storage images and samplers are out of scope: only storage and "
                          "uniform buffers are supported",
                          others[i].what);
        }
    }
    return true;
}

static bool add_push_constants(struct reflector *r, spvc_resources all, spvc_resources active) {
    const spvc_reflected_resource *resources = NULL;
    size_t count = 0;
    if (!list(r, all, SPVC_RESOURCE_TYPE_PUSH_CONSTANT, &resources, &count) ||
        !list(r, active, SPVC_RESOURCE_TYPE_PUSH_CONSTANT, &r->active, &r->active_count)) {
        return false;
    }
    /* Callers may give push constants that the kernel declares and does not use. A module with
     * several entry points can declare several blocks; the one in use counts. */
    bool used = false;
    for (size_t i = 0; i < count; i++) {
        used |= is_active(r, resources[i].id);
    }
    for (size_t i = 0; i < count; i++) {
        spvc_type block = spvc_compiler_get_type_handle(r->compiler, resources[i].base_type_id);
        size_t bytes = 0;
        if ((used && !is_active(r, resources[i].id)) || !block) {
            continue;
        }
        if (spvc_compiler_get_declared_struct_size(r->compiler, block, &bytes) != SPVC_SUCCESS) {
            return cross_failed(r);
        }
        bytes = bytes > UINT32_MAX - 4 ? UINT32_MAX - 4 : bytes;
        r->out->push_bytes = ((uint32_t)bytes + 3) & ~3u;
    }
    return true;
}

BHI_ORDER_2(by_place, struct bhi_reflected_binding, set, binding)

static bool reflect_resources(struct reflector *r) {
    spvc_parsed_ir ir = NULL;
    spvc_resources all = NULL, active = NULL;
    spvc_set set = NULL;
    if (spvc_context_parse_spirv(r->context, r->code, r->words, &ir) != SPVC_SUCCESS ||
        spvc_context_create_compiler(r->context, SPVC_BACKEND_NONE, ir,
                                     SPVC_CAPTURE_MODE_TAKE_OWNERSHIP,
                                     &r->compiler) != SPVC_SUCCESS ||
        spvc_compiler_set_entry_point(r->compiler, r->entry, SpvExecutionModelGLCompute) !=
            SPVC_SUCCESS ||
        spvc_compiler_get_active_interface_variables(r->compiler, &set) != SPVC_SUCCESS ||
        spvc_compiler_create_shader_resources(r->compiler, &all) != SPVC_SUCCESS ||
        spvc_compiler_create_shader_resources_for_active_variables(r->compiler, &active, set) !=
            SPVC_SUCCESS) {
        return cross_failed(r);
    }
    if (!refuse_others(r, all) ||
        !add_buffers(r, all, active, SPVC_RESOURCE_TYPE_STORAGE_BUFFER,
                     BH_BINDING_STORAGE_BUFFER) ||
        !add_buffers(r, all, active, SPVC_RESOURCE_TYPE_UNIFORM_BUFFER,
                     BH_BINDING_UNIFORM_BUFFER) ||
        !add_push_constants(r, all, active)) {
        return false;
    }
    qsort(r->out->bindings, r->out->binding_count, sizeof *r->out->bindings, by_place);
    for (uint32_t i = 0, first = 0; i < r->out->binding_count; i++) {
        r->out->bindings[i].first = first;
        first += r->out->bindings[i].count;
    }
    return true;
}

static void reflect_all(void *data) {
    struct reflector *r = data;
    r->good = reflect_resources(r);
}

static bool is_entry(const uint32_t *at) {
    return (at[0] & SpvOpCodeMask) == SpvOpEntryPoint;
}

/* SPIRV-Cross knows one entry point a function, and throws when it is asked for another. Returns a
 * copy without the other entry points of the function that |entry| has, or NULL if memory runs out.
 * The module is valid. */
static uint32_t *with_one_entry(const uint32_t *code, size_t words, const char *entry,
                                size_t *out_words) {
    uint32_t function = 0, *copy = malloc(words * sizeof *code);
    size_t left = 5;
    for (size_t i = 5; copy && i < words; i += code[i] >> SpvWordCountShift) {
        if (is_entry(&code[i]) && code[i + 1] == SpvExecutionModelGLCompute &&
            !strcmp((const char *)&code[i + 3], entry)) {
            function = code[i + 2];
        }
    }
    if (copy) {
        memcpy(copy, code, left * sizeof *code);
    }
    for (size_t i = 5, length; copy && i < words; i += length) {
        length = code[i] >> SpvWordCountShift;
        if (!is_entry(&code[i]) || code[i + 2] != function ||
            (code[i + 1] == SpvExecutionModelGLCompute &&
             !strcmp((const char *)&code[i + 3], entry))) {
            memcpy(&copy[left], &code[i], length * sizeof *code);
            left += length;
        }
    }
    *out_words = left;
    return copy;
}

/* Has SPIRV-Cross look at the module. */
static bool cross(struct reflector *r) {
    char text[200] = "";
    uint32_t *code = with_one_entry(r->module->code, r->module->words, r->entry, &r->words);
    if (!code || spvc_context_create(&r->context) != SPVC_SUCCESS) {
        free(code);
        BHI_ERROR(r->error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
        return false;
    }
    r->code = code;
    const enum bhi_caught caught = bhi_catching(reflect_all, r, text, sizeof text);
    if (caught != BHI_CAUGHT_NOTHING) {
        r->good = false;
        set_failure(r, caught == BHI_CAUGHT_NO_MEMORY, text);
    }
    spvc_context_destroy(r->context);
    free(code);
    return r->good;
}

bool bhi_reflect(const uint32_t *code, size_t words, const char *entry,
                 const struct bhi_spec_constant *constants, uint32_t constant_count,
                 struct bhi_module_bindings *out, struct bhi_error *error) {
    memset(out, 0, sizeof *out);
    struct bhi_module module;
    if (!bhi_module_init(&module, code, words, entry, constants, constant_count, error)) {
        return false;
    }
    struct reflector r = {.module = &module, .out = out, .error = error, .entry = entry};
    const bool ok = bhi_module_check_constants(&module, error) &&
                    bhi_module_local_size(&module, out->local_size, error) && cross(&r) &&
                    bhi_module_shared_bytes(&module, &out->shared_bytes, error);
    bhi_module_fini(&module);
    return ok;
}
