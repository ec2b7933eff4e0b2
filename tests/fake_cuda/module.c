/* Modules, their functions, and what is known of these. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    struct fake_link link;
    const void *elf;
    struct fake_image image;
};

CUresult fake_module_add_image(CUmodule module, const void *elf) {
    struct image *entry = malloc(sizeof *entry);
    FAKE_REQUIRE(entry, OUT_OF_MEMORY);
    CUresult result = fake_image_load(module->code, &entry->image, elf);
    if (result != CUDA_SUCCESS) {
        free(entry);
        return result;
    }
    entry->elf = elf;
    fake_add(&module->images, entry);
    return CUDA_SUCCESS;
}

CUresult fake_module_use_image(CUmodule module, const void *elf) {
    for (struct fake_link *link = module->images.next; link; link = link->next) {
        struct image *entry = (struct image *)(void *)link;
        if (entry->elf == elf) {
            fake_remove(&module->images, entry);
            fake_add(&module->images, entry);
            return CUDA_SUCCESS;
        }
    }
    return fake_module_add_image(module, elf);
}

static const void *find(const struct fake_image *image, const char *kernel, const char *suffix,
                        size_t bytes) {
    char name[sizeof((CUfunction)0)->name + 16];
    snprintf(name, sizeof name, "%s%s", kernel, suffix);
    return fake_image_find(image, name, bytes);
}

/* They end within the symbol, each is within the parameters' space and after those before it. */
static CUresult read_parameters(const struct fake_image *image, const char *kernel,
                                CUfunction out) {
    const struct fake_cuda_parameter *all;
    for (uint32_t i = 0;; i++) {
        if (!(all = find(image, kernel, "_parameters", (i + 1) * sizeof *all))) {
            return i == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
        }
        if (all[i].size == 0) {
            out->parameters = all;
            out->parameter_count = i;
            return CUDA_SUCCESS;
        }
        if (all[i].offset < out->parameter_bytes || all[i].offset > FAKE_CUDA_PARAMETER_BYTES ||
            all[i].size > FAKE_CUDA_PARAMETER_BYTES - all[i].offset) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        out->parameter_bytes = all[i].offset + all[i].size;
    }
}

/* 0 means as much as possible. */
static void limit(uint32_t *value, uint32_t most) {
    *value = *value == 0 || *value > most ? most : *value;
}

CUresult fake_module_add_function(CUmodule module, const char *kernel, const char *name,
                                  size_t room, CUfunction *out) {
    const struct fake_image *image = &((struct image *)(void *)module->images.next)->image;
    const void *code = find(image, kernel, "", 0);
    if (!code || strlen(name) >= sizeof(*out)->name) {
        return CUDA_ERROR_NOT_FOUND;
    }
    CUfunction function = calloc(1, sizeof *function + room * sizeof function->own[0]);
    if (!function) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = read_parameters(image, kernel, function);
    if (result != CUDA_SUCCESS) {
        free(function);
        return result;
    }
    const struct fake_cuda_attributes *own = find(image, kernel, "_attributes", sizeof *own);
    struct fake_cuda_attributes *attributes = &function->attributes;
    *attributes = own ? *own : *attributes;
    limit(&attributes->max_threads, FAKE_CUDA_BLOCK_THREADS);
    attributes->static_shared %= FAKE_CUDA_SHARED_BYTES + 1;
    limit(&attributes->max_dynamic_shared, FAKE_CUDA_SHARED_BYTES - attributes->static_shared);
    snprintf(function->name, sizeof function->name, "%s", name);
    memcpy(&function->run, &code, sizeof code);
    fake_add(&module->functions, function);
    *out = function;
    return CUDA_SUCCESS;
}

void fake_module_free(CUcontext context, CUmodule module) {
    fake_remove(&context->modules, module);
    fake_free_list(&module->functions);
    while (module->images.next) {
        struct image *entry = (struct image *)(void *)module->images.next;
        fake_remove(&module->images, entry);
        fake_image_unload(&entry->image);
        free(entry);
    }
    free(module);
}

bool fake_is_function(CUcontext context, CUfunction function) {
    struct fake_link *link = context->modules.next;
    while (link && !fake_has(&((CUmodule)(void *)link)->functions, function)) {
        link = link->next;
    }
    return link;
}

struct text {
    const char *from;
    char *out; /* up to the NUL; NULL: it is only measured */
    size_t capacity, length;
    bool ended;
};

static void run_read_text(void *argument) {
    struct text *text = argument;
    for (text->length = 0; text->length < text->capacity && !text->ended; text->length++) {
        char one;
        fake_move(&one, &text->from[text->length], 1);
        text->ended = one == '\0';
        if (text->out) {
            text->out[text->length] = one;
        }
    }
}

static CUresult load(CUmodule module, const char *image, char *log, size_t log_bytes) {
    enum { TEXT_BYTES = 64 << 20 };
    struct {
        uint32_t magic;
        uint16_t version, bytes;
    } fatbin = {0};
    char first[2] = "";
    if (fake_may_access(image, sizeof fatbin, false)) {
        fake_move(&fatbin, image, sizeof fatbin);
    }
    /* A fat binary has one cubin, right behind its header. */
    image += fatbin.magic == 0xba55ed50 ? fatbin.bytes : 0;
    struct text text = {.from = image, .out = first, .capacity = 1};
    fake_guard(run_read_text, &text);
    /* PTX begins with .version, after comments. */
    if (!*first || !strchr("./ \t\r\n", *first)) {
        return fake_module_add_image(module, image);
    }
    FAKE_CHECK((CUresult)fake_setting("FAKE_CUDA_PTX", CUDA_SUCCESS));
    text = (struct text){.from = image, .capacity = TEXT_BYTES};
    fake_guard(run_read_text, &text);
    FAKE_REQUIRE(text.ended, INVALID_PTX);
    text = (struct text){.from = image, .out = malloc(text.length), .capacity = text.length};
    FAKE_REQUIRE(text.out, OUT_OF_MEMORY);
    fake_guard(run_read_text, &text);
    CUresult result =
        text.ended ? fake_ptx_load(module, text.out, log, log_bytes) : CUDA_ERROR_INVALID_PTX;
    free(text.out);
    return result;
}

CUresult fake_cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, int *options,
                                 void **values) {
    char none[1], *log = none;
    void *one = (void *)sizeof none, **length = &one;
    FAKE_ENTER(context);
    FAKE_REQUIRE(out && image && (count == 0 || (options && values)), INVALID_VALUE);
    for (unsigned i = 0; i < count; i++) {
        log = options[i] == CU_JIT_ERROR_LOG_BUFFER ? values[i] : log;
        length = options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ? &values[i] : length;
    }
    FAKE_REQUIRE(log && (log == none) == (length == &one) && *length, INVALID_VALUE);
    /* A driver loads nothing beside a running kernel of the context. */
    FAKE_CHECK(fake_context_wait(context));
    CUmodule module = calloc(1, sizeof *module);
    FAKE_REQUIRE(module, OUT_OF_MEMORY);
    module->code = &context->code;
    fake_add(&context->modules, module);
    log[0] = '\0';
    CUresult result = load(module, image, log, (uintptr_t)*length);
    *length = (void *)(uintptr_t)strlen(log);
    if (result == CUDA_SUCCESS) {
        *out = module;
    } else {
        fake_module_free(context, module);
    }
    return result;
}

CUresult fake_cuModuleUnload(CUmodule module) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_has(&context->modules, module), INVALID_HANDLE);
    FAKE_CHECK(fake_context_wait(context));
    fake_module_free(context, module);
    return CUDA_SUCCESS;
}

CUresult fake_cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(out && name, INVALID_VALUE);
    FAKE_REQUIRE(fake_has(&context->modules, module), INVALID_HANDLE);
    for (struct fake_link *link = module->functions.next; link; link = link->next) {
        if (strcmp(((CUfunction)(void *)link)->name, name) == 0) {
            *out = (CUfunction)(void *)link;
            return CUDA_SUCCESS;
        }
    }
    FAKE_REQUIRE(!module->closed, NOT_FOUND);
    return fake_module_add_function(module, name, name, 0, out);
}

CUresult fake_cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_is_function(context, function), INVALID_HANDLE);
    const struct {
        int attribute;
        uint32_t value;
    } rows[] = {
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function->attributes.max_threads},
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function->attributes.static_shared},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function->attributes.max_dynamic_shared},
    };
    for (size_t i = 0; value && i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].attribute == attribute) {
            *value = (int)rows[i].value;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_is_function(context, function), INVALID_HANDLE);
    FAKE_REQUIRE(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
                     (uint32_t)value <= FAKE_CUDA_SHARED_OPTIN - function->attributes.static_shared,
                 INVALID_VALUE);
    function->attributes.max_dynamic_shared = (uint32_t)value;
    return CUDA_SUCCESS;
}

CUresult fake_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    FAKE_ENTER(context);
    FAKE_REQUIRE(fake_is_function(context, function), INVALID_HANDLE);
    FAKE_REQUIRE(offset && size && index < function->parameter_count, INVALID_VALUE);
    *offset = function->parameters[index].offset;
    *size = function->parameters[index].size;
    return CUDA_SUCCESS;
}
