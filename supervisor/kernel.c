#include "kernel.h"
#include "core/detail.h"
#include "memfd.h"
#include "retention.h"
#include "slab.h"
#include "stream.h"
#include "worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPIRV_MAGIC   0x07230203u
#define MIN_CODE      20u
#define MAX_CODE      (64u << 20)
#define MAX_CONSTANTS 256u

BH_API void bh_kernel_options_init(bh_kernel_options *options) {
    if (options)
        *options = (bh_kernel_options){.struct_size = sizeof *options};
}

static struct bhi_slab slab = BHI_SLAB_INIT(struct bh_kernel);

static void free_kernel(struct bhi_doomed *doomed) {
    struct bh_kernel *kernel = BHI_CONTAINER(doomed, struct bh_kernel, doomed);
    bh_context *context = kernel->context;
    if (kernel->fd >= 0)
        close(kernel->fd);
    free(kernel->specializations);
    free(kernel->declared);
    bhi_slab_give(&slab, kernel);
    bhi_context_unref(context);
}

static bh_status check_options(const void *code, size_t code_size, const bh_kernel_options *options,
                               bh_detail *detail) {
    if (!code)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_kernel_create_spirv: code is NULL");
    if (code_size < MIN_CODE || code_size > MAX_CODE || code_size % 4)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: %zu bytes are no SPIR-V module (a multiple of 4, "
                        "%u to %u)",
                        code_size, MIN_CODE, MAX_CODE);
    uint32_t magic;
    memcpy(&magic, code, sizeof magic);
    if (magic != SPIRV_MAGIC)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: magic number 0x%08x is not SPIR-V's 0x%08x", magic,
                        SPIRV_MAGIC);
    if (!options)
        return BH_OK;
    if (options->struct_size != sizeof *options)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: options.struct_size is %zu, not %zu: call "
                        "bh_kernel_options_init",
                        options->struct_size, sizeof *options);
    if (options->entry && strlen(options->entry) >= sizeof((struct bh_kernel *)0)->entry)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: options.entry is longer than 255 bytes");
    if (options->specialization_count && !options->specializations)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: options.specializations is NULL, "
                        "options.specialization_count %u",
                        options->specialization_count);
    if (options->specialization_count > MAX_CONSTANTS)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: options.specialization_count %u is over %u",
                        options->specialization_count, MAX_CONSTANTS);
    for (uint32_t i = 0; i < options->specialization_count; i++) {
        const bh_specialization *s = &options->specializations[i];
        if (s->size != 1 && s->size != 2 && s->size != 4 && s->size != 8)
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_kernel_create_spirv: specialization of constant %u has size %u, "
                            "not 1, 2, 4 or 8",
                            s->constant_id, s->size);
        for (uint32_t j = 0; j < i; j++)
            if (options->specializations[j].constant_id == s->constant_id)
                return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                                "bh_kernel_create_spirv: constant %u is specialized twice",
                                s->constant_id);
    }
    return BH_OK;
}

/* Identity (K1): options, module, entry point, constants. Each part is preceded by its length, so
 * that no two different kernels hash the same bytes. */
static void hash_kernel(struct bh_kernel *kernel, const void *code) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof kernel->hash);
    static const unsigned char domain[] = "bulkhead kernel 2";
    crypto_generichash_update(&state, domain, sizeof domain);
    const unsigned char trusted = kernel->trusted;
    crypto_generichash_update(&state, &trusted, sizeof trusted);
    uint64_t length = kernel->code_size;
    crypto_generichash_update(&state, (const unsigned char *)&length, sizeof length);
    crypto_generichash_update(&state, code, kernel->code_size);
    length = strlen(kernel->entry);
    crypto_generichash_update(&state, (const unsigned char *)&length, sizeof length);
    crypto_generichash_update(&state, (const unsigned char *)kernel->entry, length);
    for (uint32_t i = 0; i < kernel->specialization_count; i++) {
        const bh_specialization *s = &kernel->specializations[i];
        uint64_t words[] = {s->constant_id, s->size, s->bits};
        crypto_generichash_update(&state, (const unsigned char *)words, sizeof words);
    }
    crypto_generichash_final(&state, kernel->hash, sizeof kernel->hash);
}

static int by_id(const void *a, const void *b) {
    uint32_t x = ((const bh_specialization *)a)->constant_id;
    uint32_t y = ((const bh_specialization *)b)->constant_id;
    return (x > y) - (x < y);
}

/* The code in a memfd that nobody can write any more: every worker gets the same one. */
static int code_memfd(const void *code, size_t size) {
    int fd = bhi_memfd_create("bulkhead-kernel", size, 1);
    if (fd < 0)
        return fd;
    const char *bytes = code;
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, bytes + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = n < 0 ? -errno : -EIO;
            close(fd);
            return error;
        }
        done += (size_t)n;
    }
    int error = bhi_memfd_seal(fd, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    if (error) {
        close(fd);
        return error;
    }
    return fd;
}

BH_API bh_status bh_kernel_create_spirv(bh_context *context, const void *code, size_t code_size,
                                        const bh_kernel_options *options, bh_kernel **out_kernel,
                                        bh_detail *detail) {
    if (!out_kernel)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_create_spirv: out_kernel is NULL");
    *out_kernel = NULL;
    bh_status status = bhi_context_check(context, "bh_kernel_create_spirv", detail);
    if (status != BH_OK || (status = check_options(code, code_size, options, detail)) != BH_OK)
        return status;
    struct bh_kernel *kernel = bhi_slab_take(&slab);
    if (!kernel)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_kernel_create_spirv");
    *kernel = (struct bh_kernel){0};
    kernel->fd = -1;
    atomic_init(&kernel->refs, 1);
    kernel->doomed.free = free_kernel;
    kernel->context = context;
    bhi_context_retain(context);
    kernel->code_size = code_size;
    kernel->trusted = options && options->trusted;
    const char *entry = options && options->entry ? options->entry : "main";
    const char *name = options && options->name ? options->name : entry;
    strcpy(kernel->entry, entry);
    bhi_text_sanitise(kernel->name, sizeof kernel->name, name, strlen(name));
    if (options && options->specialization_count) {
        kernel->specialization_count = options->specialization_count;
        kernel->specializations =
            calloc(options->specialization_count, sizeof *kernel->specializations);
        if (!kernel->specializations) {
            free_kernel(&kernel->doomed);
            return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_kernel_create_spirv");
        }
        for (uint32_t i = 0; i < kernel->specialization_count; i++) {
            bh_specialization s = options->specializations[i];
            /* Stray bits above the size must not make two equal kernels different. */
            if (s.size < 8)
                s.bits &= (1ull << (8 * s.size)) - 1;
            kernel->specializations[i] = s;
        }
        qsort(kernel->specializations, kernel->specialization_count,
              sizeof *kernel->specializations, by_id);
    }
    hash_kernel(kernel, code);
    kernel->fd = code_memfd(code, code_size);
    if (kernel->fd < 0) {
        status = bhi_fail(detail, BH_SYSTEM, -kernel->fd, "bh_kernel_create_spirv: memfd");
        kernel->fd = -1;
        free_kernel(&kernel->doomed);
        return status;
    }
    bhi_context_lock(context);
    kernel->id = bhi_context_new_id(context);
    bhi_context_unlock(context);
    atomic_init(&kernel->handle.count, 1);
    *out_kernel = kernel;
    return BH_OK;
}

static void forget(struct bh_kernel *kernel) {
    BHI_LIST_EACH(node, &kernel->context->workers)
    bhi_worker_forget_kernel(BHI_CONTAINER(node, struct bhi_worker, link), kernel->id);
}

void bhi_kernel_unref_locked(struct bh_kernel *kernel) {
    if (atomic_fetch_sub_explicit(&kernel->refs, 1, memory_order_acq_rel) != 1)
        return;
    forget(kernel);
    bhi_context_doom(kernel->context, &kernel->doomed);
}

BH_API void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]) {
    if (BHI_LIVE(kernel) && out_hash)
        memcpy(out_hash, kernel->hash, sizeof kernel->hash);
}

BH_API const char *bh_kernel_name(const bh_kernel *kernel) {
    return BHI_LIVE(kernel) ? kernel->name : "";
}

BH_API bh_status bh_kernel_retain(bh_kernel *kernel) {
    return !kernel || bhi_handle_retain(&kernel->handle) ? BH_OK : BH_INVALID_ARGUMENT;
}

BH_API bh_status bh_kernel_release(bh_kernel *kernel) {
    bool last = false;
    bh_status status =
        kernel ? bhi_context_release(&kernel->handle, kernel->context, &last) : BH_OK;
    if (last) {
        bh_context *context = kernel->context;
        bhi_context_retain(context);
        bhi_context_lock(context);
        if (bhi_retention_off())
            forget(kernel);
        bhi_kernel_unref_locked(kernel);
        bhi_context_unlock(context);
        bhi_context_unref(context);
    }
    return status;
}
