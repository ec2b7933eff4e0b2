#include "request/run.h"
#include "request/kernel_file.h"
#include "request/like.h"
#include "request/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool bhi_run_blame(const struct bhi_arg *item, struct bhi_complaint *complaint) {
    const struct bhi_option *option = &bhi_options[item->option];
    const char *dashes = bhi_option_dashes(option);
    struct bhi_complaint inner = *complaint;
    if (item->value)
        return bhi_refuse(complaint, "%s%s %.200s: %.700s", dashes, option->name, item->value,
                          inner.text);
    return bhi_refuse(complaint, "%s%s: %.900s", dashes, option->name, inner.text);
}

/* FILE of "FILE:REST", split at the last colon; without one *out_rest is NULL. */
static char *split_path(const char *text, const char **out_rest) {
    const char *colon = strrchr(text, ':');
    *out_rest = colon ? colon + 1 : NULL;
    return colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
}

bool bhi_run_parse_input(struct bhi_run_binding *binding, const char *files,
                         struct bhi_complaint *complaint) {
    static const char suffix[] = ".safetensors";
    const size_t length = strlen(suffix);
    const char *dot = strstr(files, ".safetensors:");
    const size_t path = dot ? (size_t)(dot - files) + length : strlen(files);
    if (!dot && path >= length && !strcmp(files + path - length, suffix))
        return bhi_refuse(complaint, "no tensor: write %.200s:NAME", files);
    if (dot && !files[path + 1])
        return bhi_refuse(complaint, "the tensor's name is empty");
    binding->tensor = dot ? files + path + 1 : NULL;
    binding->access = BH_READ;
    binding->in_path = strndup(files, path);
    if (!binding->in_path)
        return bhi_refuse(complaint, "out of memory");
    return *binding->in_path ? true : bhi_refuse(complaint, "the file name is empty");
}

bool bhi_run_check_format(const char *path, struct bhi_complaint *complaint) {
    static const char *const others[] = {
        ".safetensors", ".npz", ".csv", ".tsv", ".txt", ".json", ".bin",  ".raw",  ".dat",
        ".pt",          ".pth", ".pkl", ".pb",  ".h5",  ".hdf5", ".gguf", ".onnx", ".parquet",
        ".png",         ".jpg", ".ppm", ".pgm", ".exr", ".tif",  ".tiff", ".wav",  ".mat",
        ".gz",          ".zst", ".xz",  ".bz2", ".zip", ".tar"};
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof others[0]; i++) {
        if (!strcasecmp(dot, others[i]))
            return bhi_refuse(complaint, "a %s file cannot be written; outputs are .npy files",
                              others[i]);
    }
    return true;
}

/* FILE of "FILE:DTYPE:SHAPE", which has a colon more: the shape then is what is behind the last
 * one, the type is before it. */
static char *split_array(const char *text, const char **out_rest) {
    char *path = split_path(text, out_rest);
    enum bhi_dtype dtype;
    char *colon = path ? strrchr(path, ':') : NULL;
    if (!colon || strspn(*out_rest, "0123456789x,") != strlen(*out_rest) ||
        !bhi_dtype_find(colon + 1, strlen(colon + 1), &dtype))
        return path;
    *out_rest = text + (colon + 1 - path);
    *colon = 0;
    return path;
}

/* The paths and, for --out, the array of one binding. */
static bool parse_files(struct bhi_run_binding *binding, enum bhi_option_id option,
                        const char *files, struct bhi_complaint *complaint) {
    const char *rest = NULL;
    size_t length;
    bool allocated;

    if (option == BHI_RUN_IN) {
        return bhi_run_parse_input(binding, files, complaint);
    } else if (option == BHI_RUN_OUT && bhi_run_split_like(files, &length, &binding->like)) {
        binding->access = BH_WRITE;
        allocated = (binding->out_path = strndup(files, length)) != NULL;
    } else if (option == BHI_RUN_OUT) {
        binding->access = BH_WRITE;
        allocated = (binding->out_path = split_array(files, &rest)) != NULL;
        if (allocated && !rest)
            return bhi_refuse(complaint, "no dtype and shape: write %.200s:f32:N, for example",
                              files);
        if (allocated && !bhi_parse_array(rest, &binding->array, complaint))
            return false;
    } else {
        binding->access = BH_READ_WRITE;
        allocated = (binding->in_path = split_path(files, &rest)) != NULL &&
                    (binding->out_path = strdup(rest ? rest : binding->in_path)) != NULL;
    }
    if (!allocated)
        return bhi_refuse(complaint, "out of memory");
    if ((binding->in_path && !*binding->in_path) || (binding->out_path && !*binding->out_path))
        return bhi_refuse(complaint, "the file name is empty");
    return !binding->out_path || bhi_run_check_format(binding->out_path, complaint);
}

bool bhi_run_parse_place(struct bhi_run_binding *binding, const char *text, size_t length,
                         struct bhi_complaint *complaint) {
    return length > 0 && isdigit((unsigned char)*text)
               ? bhi_parse_slot(text, length, &binding->slot, complaint)
               : bhi_run_parse_name(binding, text, length, complaint);
}

/* Two names may yet stand for one binding. */
static const struct bhi_run_binding *find_given(const struct bhi_run_request *request,
                                                const struct bhi_run_binding *binding) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *other = &request->bindings[i];
        if (bhi_slot_is(other->slot, binding->slot) && !strcmp(other->name, binding->name))
            return other;
    }
    return NULL;
}

static bool parse_push(struct bhi_run_request *request, const char *value,
                       struct bhi_complaint *complaint) {
    if (strchr(value, '=')) {
        if (request->push.size > 0)
            return bhi_refuse(complaint, "push constants are given in order, and by name: do one");
        return bhi_run_parse_push_names(request, value, complaint);
    }
    if (request->push_text_count > 0)
        return bhi_refuse(complaint, "push constants are given in order, and by name: do one");
    if (request->push.size > 0)
        return bhi_refuse(complaint, "given twice: only push constants with names may be apart");
    request->push_order = value;
    return bhi_parse_push(value, &request->push, complaint);
}

static bool parse_binding(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint) {
    struct bhi_run_binding *binding = &request->bindings[request->binding_count];
    size_t length = strcspn(item->value, "=");

    binding->option = bhi_options[item->option].name;
    binding->text = item->value;
    binding->in.fd = -1;
    binding->out = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    if (!item->value[length])
        return bhi_refuse(complaint, "no '=': write --%s %s", binding->option,
                          bhi_options[item->option].value);
    if (!bhi_run_parse_place(binding, item->value, length, complaint))
        return false;
    if (find_given(request, binding))
        return bhi_refuse(complaint, "binding %s is given twice",
                          binding->name[0] ? binding->name
                                           : bhi_slot_describe(binding->slot, false).text);
    if (request->binding_count == BHI_MAX_BINDINGS)
        return bhi_refuse(complaint, "more than %d bindings", BHI_MAX_BINDINGS);
    request->binding_count++; /* from here on it is freed with the request */
    return parse_files(binding, item->option, item->value + length + 1, complaint);
}

static bool parse_spec(struct bhi_run_request *request, const char *value,
                       struct bhi_complaint *complaint) {
    if (request->spec_count == BHI_MAX_SPECS)
        return bhi_refuse(complaint, "more than %d constants", BHI_MAX_SPECS);
    bh_specialization *spec = &request->specs[request->spec_count];
    if (!bhi_parse_spec(value, spec, complaint))
        return false;
    for (uint32_t i = 0; i < request->spec_count; i++) {
        if (request->specs[i].constant_id == spec->constant_id)
            return bhi_refuse(complaint, "constant %u is given twice", spec->constant_id);
    }
    request->spec_count++;
    return true;
}

bool bhi_run_parse_common(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint) {
    const char *name = bhi_options[item->option].name, *value = item->value;
    if (!strcmp(name, "deadline"))
        return bhi_parse_duration(value, &request->deadline_ns, complaint);
    if (!strcmp(name, "compile-deadline"))
        return bhi_parse_duration(value, &request->compile_deadline_ns, complaint);
    if (!strcmp(name, "grace")) {
        request->limits_grace = true;
        return bhi_parse_grace(value, &request->grace_ns, complaint);
    }
    if (!strcmp(name, "tenant")) {
        request->tenant = value;
        return bhi_parse_tenant(value, complaint);
    }
    if (!strcmp(name, "repeat"))
        return bhi_parse_count(value, 1, BHI_MAX_REPEAT, &request->repeat, complaint);
    if (!strcmp(name, "memory-limit")) {
        request->limits_memory = true;
        return bhi_parse_memory_limit(value, &request->memory_limit, complaint);
    }
    if (!strcmp(name, "device")) {
        request->device = value;
        return *value ? true : bhi_refuse(complaint, "the selector is empty");
    }
    if (!strcmp(name, "cache-dir")) {
        request->cache_dir = value;
        return *value ? true : bhi_refuse(complaint, "the folder's name is empty");
    }
    request->json |= !strcmp(name, "json");
    request->verbose |= !strcmp(name, "verbose");
    return true;
}

bool bhi_run_parse_item(struct bhi_run_request *request, const struct bhi_arg *item,
                        struct bhi_complaint *complaint) {
    const char *value = item->value;
    switch (item->option) {
    case BHI_RUN_ENTRY:
        request->entry = value;
        return *value ? true : bhi_refuse(complaint, "the name is empty");
    case BHI_RUN_GROUPS:
        return bhi_parse_groups(value, request->groups, complaint);
    case BHI_RUN_IN:
    case BHI_RUN_OUT:
    case BHI_RUN_INOUT:
        return parse_binding(request, item, complaint);
    case BHI_RUN_PUSH:
        return parse_push(request, value, complaint);
    case BHI_RUN_D:
        return bhi_source_define(&request->source, value, complaint);
    case BHI_RUN_I:
        return bhi_source_include(&request->source, value, complaint);
    case BHI_RUN_LANGUAGE:
        return bhi_language_parse(value, &request->language, complaint);
    case BHI_RUN_SPEC:
        return parse_spec(request, value, complaint);
    case BHI_RUN_REINTERPRET:
        request->reinterpret = true;
        return true;
    case BHI_RUN_TRUSTED:
        request->trusted = true;
        return true;
    default:
        return bhi_run_parse_common(request, item, complaint);
    }
}

bool bhi_run_check_streams(const struct bhi_run_request *request, struct bhi_complaint *complaint) {
    const char *reader = strcmp(request->kernel_path, "-") ? NULL : "KERNEL";
    const char *writer = request->json ? "--json" : NULL;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        if (bhi_run_is_stdin(binding)) {
            if (reader)
                return bhi_refuse(complaint, "--%s %s: standard input is taken by %s already",
                                  binding->option, binding->text, reader);
            reader = binding->text;
        }
        if (binding->out_path && !strcmp(binding->out_path, "-")) {
            if (writer)
                return bhi_refuse(complaint, "--%s %s: standard output is taken by %s already",
                                  binding->option, binding->text, writer);
            writer = binding->text;
        }
    }
    return true;
}

bool bhi_run_request_init(struct bhi_run_request *request, const char *kernel_path, size_t items,
                          struct bhi_complaint *complaint) {
    memset(request, 0, sizeof *request);
    request->command = "run";
    request->repeat = 1;
    request->kernel_path = kernel_path;
    bhi_kernel_file_name(kernel_path, request->kernel_name);
    /* One more: the one too many is written before it is counted. */
    request->bindings = calloc((items < BHI_MAX_BINDINGS ? items : BHI_MAX_BINDINGS) + 1,
                               sizeof *request->bindings);
    return request->bindings ? true : bhi_refuse(complaint, "out of memory");
}

bool bhi_run_request_parse(const struct bhi_args *args, struct bhi_run_request *out_request,
                           struct bhi_complaint *complaint) {
    struct bhi_run_request *request = out_request;
    bool good = bhi_run_request_init(request, args->operands[0], args->item_count, complaint);
    for (size_t i = 0; good && i < args->item_count; i++) {
        const struct bhi_arg *item = &args->items[i];
        good = bhi_run_parse_item(request, item, complaint) || bhi_run_blame(item, complaint);
    }
    good = good && bhi_run_find_likes(request, "--", complaint) &&
           bhi_run_check_streams(request, complaint);
    if (!good)
        bhi_run_request_free(request);
    return good;
}

void bhi_run_request_free(struct bhi_run_request *request) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        bhi_npy_file_close(&binding->in);
        bhi_outfile_abandon(&binding->out);
        bh_buffer_release(binding->buffer);
        free(binding->in_path);
        free(binding->out_path);
    }
    bhi_source_free(&request->source);
    free(request->bindings);
    request->bindings = NULL;
    request->binding_count = 0;
}

bool bhi_run_is_stdin(const struct bhi_run_binding *binding) {
    return binding->in_path && !strcmp(binding->in_path, "-");
}

struct bhi_run_binding *bhi_run_request_find(const struct bhi_run_request *request,
                                             struct bhi_slot slot) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (bhi_slot_is(binding->slot, slot))
            return binding;
    }
    return NULL;
}
