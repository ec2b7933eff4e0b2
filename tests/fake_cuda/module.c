/* Modules, their functions, and what is known of these. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    struct fake_link link;
    struct fake_image image;
};

CUresult fake_module_add_image(CUmodule module, const void *elf) {
    struct image *entry = malloc(sizeof *entry);
    if (!entry) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = fake_image_load(&entry->image, elf);
    if (result != CUDA_SUCCESS) {
        free(entry);
        return result;
    }
    fake_add(&module->images, entry);
    return CUDA_SUCCESS;
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

CUresult fake_module_add_function(CUmodule module, const char *kernel, const char *name,
                                  CUfunction *out) {
    const struct fake_image *image = &((struct image *)(void *)module->images.next)->image;
    const void *code = find(image, kernel, "", 0);
    if (!code || strlen(name) >= sizeof(*out)->name) {
        return CUDA_ERROR_NOT_FOUND;
    }
    CUfunction function = calloc(1, sizeof *function);
    if (!function) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = read_parameters(image, kernel, function);
    if (result != CUDA_SUCCESS) {
        free(function);
        return result;
    }
    struct fake_cuda_attributes *attributes = &function->attributes;
    const struct fake_cuda_attributes *own = find(image, kernel, "_attributes", sizeof *own);
    if (own) {
        *attributes = *own;
    }
    if (attributes->max_threads == 0 || attributes->max_threads > FAKE_CUDA_BLOCK_THREADS) {
        attributes->max_threads = FAKE_CUDA_BLOCK_THREADS;
    }
    if (attributes->static_shared > FAKE_CUDA_SHARED_BYTES) {
        attributes->static_shared = FAKE_CUDA_SHARED_BYTES;
    }
    if (attributes->max_dynamic_shared == 0 ||
        attributes->max_dynamic_shared > FAKE_CUDA_SHARED_BYTES - attributes->static_shared) {
        attributes->max_dynamic_shared = FAKE_CUDA_SHARED_BYTES - attributes->static_shared;
    }
    snprintf(function->name, sizeof function->name, "%s", name);
    memcpy(&function->run, &code, sizeof code);
    fake_add(&module->functions, function);
    *out = function;
    return CUDA_SUCCESS;
}

void fake_module_free(CUcontext context, CUmodule module) {
    fake_remove(&context->modules, module);
    while (module->functions.next) {
        void *function = module->functions.next;
        fake_remove(&module->functions, function);
        free(function);
    }
    while (module->images.next) {
        struct image *entry = (struct image *)(void *)module->images.next;
        fake_remove(&module->images, entry);
        fake_image_unload(&entry->image);
        free(entry);
    }
    free(module);
}

CUfunction fake_function(CUcontext context, CUfunction function) {
    for (struct fake_link *link = context->modules.next; link; link = link->next) {
        if (fake_has(&((CUmodule)(void *)link)->functions, function)) {
            return function;
        }
    }
    return NULL;
}

struct text {
    const char *from;
    char *out; /* up to the NUL */
    size_t capacity;
    bool ended;
};

static void run_read_text(void *argument) {
    struct text *text = argument;
    for (size_t i = 0; i < text->capacity && !text->ended; i++) {
        fake_move(&text->out[i], &text->from[i], 1);
        text->ended = text->out[i] == '\0';
    }
}

static CUresult load(CUmodule module, const char *image, char *log, size_t log_bytes) {
    enum { TEXT_BYTES = 64 << 10 };
    static const char version[] = ".version";
    char begin[sizeof version] = "";
    struct text text = {image, begin, sizeof begin - 1, false};
    fake_guard(run_read_text, &text);
    if (strcmp(begin, version) != 0) {
        return fake_module_add_image(module, image);
    }
    text = (struct text){image, malloc(TEXT_BYTES), TEXT_BYTES, false};
    if (!text.out) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake_guard(run_read_text, &text);
    CUresult result =
        text.ended ? fake_ptx_load(module, text.out, log, log_bytes) : CUDA_ERROR_INVALID_PTX;
    free(text.out);
    return result;
}

CUresult fake_cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, int *options,
                                 void **values) {
    CUcontext context;
    char unused[1], *log = unused;
    size_t log_bytes = sizeof unused;
    void **out_length = NULL;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && (!out || !image || (count > 0 && (!options || !values)))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
            log = values[i];
        } else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            out_length = &values[i];
            log_bytes = (uintptr_t)values[i];
        }
    }
    if (!log || log == unused || !out_length || log_bytes == 0) {
        log = unused;
        log_bytes = sizeof unused;
    }
    log[0] = '\0';
    CUmodule module = NULL;
    /* A driver loads nothing beside a running kernel of the context. */
    if (result == CUDA_SUCCESS && (result = fake_context_wait(context)) == CUDA_SUCCESS &&
        !(module = calloc(1, sizeof *module))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        fake_add(&context->modules, module);
        if ((result = load(module, image, log, log_bytes)) != CUDA_SUCCESS) {
            fake_module_free(context, module);
        } else {
            *out = module;
        }
        if (out_length) {
            *out_length = (void *)(uintptr_t)strlen(log);
        }
    }
    return fake_leave(result);
}

CUresult fake_cuModuleUnload(CUmodule module) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result == CUDA_SUCCESS && !fake_has(&context->modules, module)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS && (result = fake_context_wait(context)) == CUDA_SUCCESS) {
        fake_module_free(context, module);
    }
    return fake_leave(result);
}

CUresult fake_cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    CUcontext context;
    CUresult result = fake_enter(&context);
    if (result != CUDA_SUCCESS) {
        return fake_leave(result);
    }
    if (!out || !name) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (!fake_has(&context->modules, module)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    for (struct fake_link *link = module->functions.next; link; link = link->next) {
        if (strcmp(((CUfunction)(void *)link)->name, name) == 0) {
            *out = (CUfunction)(void *)link;
            return fake_leave(CUDA_SUCCESS);
        }
    }
    return fake_leave(module->closed ? CUDA_ERROR_NOT_FOUND
                                     : fake_module_add_function(module, name, name, out));
}

/* Takes the lock, as fake_enter(). */
static CUresult enter(CUfunction function, CUcontext *context) {
    CUresult result = fake_enter(context);
    return result == CUDA_SUCCESS && !fake_function(*context, function) ? CUDA_ERROR_INVALID_HANDLE
                                                                        : result;
}

CUresult fake_cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    CUcontext context;
    CUresult result = enter(function, &context);
    if (result == CUDA_SUCCESS && !value) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        const struct fake_cuda_attributes *attributes = &function->attributes;
        switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = (int)attributes->max_threads;
            break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = (int)attributes->static_shared;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = (int)attributes->max_dynamic_shared;
            break;
        default:
            result = CUDA_ERROR_INVALID_VALUE;
            break;
        }
    }
    return fake_leave(result);
}

CUresult fake_cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    CUcontext context;
    CUresult result = enter(function, &context);
    if (result == CUDA_SUCCESS &&
        (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
         (uint32_t)value > FAKE_CUDA_SHARED_OPTIN - function->attributes.static_shared)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        function->attributes.max_dynamic_shared = (uint32_t)value;
    }
    return fake_leave(result);
}

CUresult fake_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    CUcontext context;
    CUresult result = enter(function, &context);
    if (result == CUDA_SUCCESS && (!offset || index >= function->parameter_count)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *offset = function->parameters[index].offset;
        if (size) {
            *size = function->parameters[index].size;
        }
    }
    return fake_leave(result);
}
