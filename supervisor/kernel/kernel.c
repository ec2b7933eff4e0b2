#include "supervisor/kernel/kernel.h"
#include "base/detail.h"
#include "base/text.h"
#include "supervisor/buffer/retention.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPIRV_MAGIC   0x07230203u
#define MIN_CODE      20u
#define MAX_CODE      (64u << 20)
#define MAX_CONSTANTS 256u

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_kernel);

static void free_kernel(struct bhi_doomed *doomed) {
    struct bh_kernel *kernel = BHI_CONTAINER(doomed, struct bh_kernel, doomed);
    bh_context *context = kernel->context;
    free(kernel->declared);
    bhi_freelist_give(&freelist, kernel);
    bhi_context_unref(context);
}

bool bhi_kernel_is_module(const void *code, uint64_t bytes) {
    uint32_t magic = 0;
    if (bytes < MIN_CODE || bytes > MAX_CODE || bytes % 4) {
        return false;
    }
    memcpy(&magic, code, sizeof magic);
    return magic == SPIRV_MAGIC;
}

/* What only kernels of the other format have. */
static bh_status check_format(const bh_kernel_options *options, enum bhi_kernel_format format,
                              const char *call, bh_detail *detail) {
    const uint32_t *block = options->block;
    const bool image = format == BHI_KERNEL_IMAGE;
    if (image && options->specialization_count) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.specializations",
                        .text = "are for SPIR-V; an image for CUDA has none");
    }
    if (image && options->trusted) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.trusted",
                        .text = "is for SPIR-V; a CUDA kernel has no guard that could be left out");
    }
    if (options->noise && (image || options->trusted)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.noise",
                        .text = "is for SPIR-V that is guarded");
    }
    if (!image && (block[0] || block[1] || block[2] || options->shared_bytes)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT,
                        options->shared_bytes ? "options.shared_bytes" : "options.block",
                        .text = "is for images; a SPIR-V module says how large a workgroup is");
    }
    if (!block[0] != !block[1] || !block[0] != !block[2]) {
        return BHI_FAIL(
            detail, call, BH_REASON_ARGUMENT, "options.block",
            .text = BHI_SAY("is %u, %u, %u: give all three or none", block[0], block[1], block[2]));
    }
    return BH_OK;
}

bh_status bhi_kernel_take_options(const bh_kernel_options *given, enum bhi_kernel_format format,
                                  const char *call, bh_kernel_options *options, bh_detail *detail) {
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_kernel_options), options, given, call, "options", detail));
    BHI_TRY(check_format(options, format, call, detail));
    if (options->entry && strlen(options->entry) >= sizeof((struct bhi_kernel_body *)0)->entry) {
        return BHI_FAIL(detail, call, BH_REASON_TOO_LONG, "options.entry", .limit = 255);
    }
    if (options->entry && !bhi_text_is_line(options->entry)) {
        return BHI_FAIL(detail, call, BH_REASON_NOT_TEXT, "options.entry");
    }
    if (options->specialization_count && !options->specializations) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "options.specializations");
    }
    if (options->specialization_count > MAX_CONSTANTS) {
        return BHI_FAIL(detail, call, BH_REASON_OVER, "options.specialization_count",
                        .value = options->specialization_count, .limit = MAX_CONSTANTS);
    }
    for (uint32_t i = 0; i < options->specialization_count; i++) {
        const bh_specialization *s = &options->specializations[i];
        if (s->size != 1 && s->size != 2 && s->size != 4 && s->size != 8) {
            return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.specializations", .index = i,
                            .indexed = true, .value = s->size,
                            .text = BHI_SAY("(constant %u) has size %u, not 1, 2, 4 or 8",
                                            s->constant_id, s->size));
        }
        for (uint32_t j = 0; j < i; j++) {
            if (options->specializations[j].constant_id == s->constant_id) {
                return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.specializations",
                                .index = i, .indexed = true, .value = s->constant_id,
                                .text = BHI_SAY("specializes constant %u twice", s->constant_id));
            }
        }
    }
    return BH_OK;
}

enum { LOOKED_AT = 1024, LEAST_TEXT = 8, LINE = 64 };

/* Writes the first line that is not blank, if |code| is text as far as it is looked at: no control
 * characters, and mostly ASCII, whatever its encoding. */
static bool find_text(const void *code, size_t size, char out_line[LINE]) {
    const char *at = code;
    size_t others = 0, begin = 0, end;
    const size_t length = strnlen(at, size < LOOKED_AT ? size : LOOKED_AT);
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)at[i];
        if ((byte < ' ' && !strchr("\t\n\v\f\r", byte)) || byte == 0x7f) {
            return false;
        }
        others += byte > 0x7f;
    }
    if (length >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) {
        begin = 3; /* a byte order mark */
    }
    while (begin < length && strchr(" \t\n\v\f\r", at[begin])) {
        begin++;
    }
    for (end = begin; end < length && at[end] != '\n' && at[end] != '\r';) {
        end++;
    }
    bhi_text_line(out_line, LINE, at + begin, end - begin);
    return length >= LEAST_TEXT && end > begin && others < length / 4;
}

/* Does it begin like a cubin or a fat binary, or is it PTX: text with a directive .version? */
bool bhi_kernel_is_image(const void *code, uint64_t size) {
    static const char elf[] = {0x7f, 'E', 'L', 'F'},
                      fatbin[] = {0x50, (char)0xed, 0x55, (char)0xba};
    if (size >= sizeof elf &&
        (!memcmp(code, elf, sizeof elf) || !memcmp(code, fatbin, sizeof elf))) {
        return true;
    }
    return strnlen(code, size) + 1 >= size && memmem(code, size, ".version", 8);
}

#define SPIRV "bh_kernel_create_spirv"
#define IMAGE "bh_kernel_create_image"

static bh_status check_image(const void *image, size_t size, bh_detail *detail) {
    char line[LINE];
    BHI_NEED(image, IMAGE, detail);
    if (bhi_kernel_is_module(image, size)) {
        return BHI_FAIL(detail, IMAGE, BH_REASON_ARGUMENT, "image", .text = "is SPIR-V",
                        .advice = "use " SPIRV);
    }
    if (!bhi_kernel_is_image(image, size)) {
        return BHI_FAIL(detail, IMAGE, BH_REASON_NOT_IMAGE, "image", .value = size,
                        .text = find_text(image, size, line) ? line : NULL);
    }
    return size <= MAX_CODE
               ? BH_OK
               : BHI_FAIL(detail, IMAGE, BH_REASON_OVER, "size", .value = size, .limit = MAX_CODE);
}

static bh_status check_spirv(const void *code, size_t code_size, bh_detail *detail) {
    char line[LINE];
    BHI_NEED(code, SPIRV, detail);
    uint32_t magic = 0;
    if (code_size >= sizeof magic) {
        memcpy(&magic, code, sizeof magic);
    }
    const bool sized = code_size >= MIN_CODE && code_size <= MAX_CODE && code_size % 4 == 0;
    if (magic != SPIRV_MAGIC) {
        return BHI_FAIL(detail, SPIRV, BH_REASON_NOT_SPIRV, "code", .value = code_size,
                        .text = find_text(code, code_size, line) ? line : NULL,
                        .advice = bhi_kernel_is_image(code, code_size) ? "use " IMAGE : NULL);
    }
    if (!sized && code_size > MAX_CODE) {
        return BHI_FAIL(detail, SPIRV, BH_REASON_OVER, "code_size", .value = code_size,
                        .limit = MAX_CODE);
    }
    if (!sized) {
        return BHI_FAIL(detail, SPIRV, BH_REASON_CUT_SHORT, "code", .value = code_size,
                        .limit = MIN_CODE);
    }
    return BH_OK;
}

static bh_status create(bh_context *context, const struct bhi_kernel_code *code,
                        const bh_kernel_options *given, bh_kernel **out_kernel, bh_detail *detail) {
    bh_kernel_options options;
    BHI_NEED(out_kernel, code->call, detail);
    *out_kernel = NULL;
    BHI_TRY(bhi_context_check(context, code->call, detail));
    BHI_TRY(code->format == BHI_KERNEL_IMAGE ? check_image(code->bytes, code->size, detail)
                                             : check_spirv(code->bytes, code->size, detail));
    BHI_TRY(bhi_kernel_take_options(given, code->format, code->call, &options, detail));
    if (code->format == BHI_KERNEL_IMAGE && !options.entry) {
        return BHI_FAIL(detail, code->call, BH_REASON_NULL, "options.entry",
                        .advice = "name the kernel in the image");
    }
    struct bhi_kernel_body *body = NULL;
    BHI_TRY(bhi_kernel_body_intern(context, code, &options, &body, detail));
    struct bh_kernel *kernel = bhi_freelist_take(&freelist);
    if (!kernel) {
        bhi_context_lock(context);
        bhi_kernel_body_unref_locked(body);
        bhi_context_settle_unlock(context);
        return BHI_FAIL(detail, code->call, BH_REASON_MEMORY);
    }
    *kernel = (struct bh_kernel){0};
    atomic_init(&kernel->refs, 1);
    kernel->doomed.free = free_kernel;
    kernel->context = context;
    bhi_context_retain(context);
    kernel->body = body;
    const char *name = options.name ? options.name : body->entry;
    bhi_text_line(kernel->name, sizeof kernel->name, name, strlen(name));
    memcpy(kernel->block, options.block, sizeof kernel->block);
    kernel->shared_bytes = options.shared_bytes;
    atomic_init(&kernel->handle.count, 1);
    *out_kernel = kernel;
    return BH_OK;
}

BH_API bh_status bh_kernel_create_spirv(bh_context *context, const void *code, size_t code_size,
                                        const bh_kernel_options *options, bh_kernel **out_kernel,
                                        bh_detail *detail) {
    const struct bhi_kernel_code given = {SPIRV, BHI_KERNEL_SPIRV, code, code_size};
    return create(context, &given, options, out_kernel, detail);
}

BH_API bh_status bh_kernel_create_image(bh_context *context, const void *image, size_t size,
                                        const bh_kernel_options *options, bh_kernel **out_kernel,
                                        bh_detail *detail) {
    const struct bhi_kernel_code given = {IMAGE, BHI_KERNEL_IMAGE, image, size};
    return create(context, &given, options, out_kernel, detail);
}

void bhi_kernel_unref_locked(struct bh_kernel *kernel) {
    if (atomic_fetch_sub_explicit(&kernel->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bhi_kernel_body_unref_locked(kernel->body);
    bhi_context_doom(kernel->context, &kernel->doomed);
}

void bhi_kernel_unref(struct bh_kernel *kernel) {
    bh_context *context = kernel->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    bhi_kernel_unref_locked(kernel);
    bhi_context_settle_unlock(context);
    bhi_context_unref(context);
}

BH_API void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]) {
    if (BHI_LIVE(kernel) && out_hash) {
        memcpy(out_hash, kernel->body->hash, sizeof kernel->body->hash);
    }
}

BH_API bh_status bh_kernel_code(bh_kernel *kernel, void *code, size_t size, size_t *out_size,
                                bh_detail *detail) {
    static const char call[] = "bh_kernel_code";
    BHI_NEED_LIVE(kernel, call, detail);
    BHI_NEED(out_size, call, detail);
    const struct bhi_kernel_body *body = kernel->body;
    *out_size = body->code_size;
    if (size) {
        BHI_NEED(code, call, detail);
        memcpy(code, body->code, size < body->code_size ? size : body->code_size);
    }
    return BH_OK;
}

BH_API const char *bh_kernel_name(const bh_kernel *kernel) {
    return BHI_LIVE(kernel) ? kernel->name : "";
}

BH_API void bh_kernel_retain(bh_kernel *kernel) {
    if (kernel) {
        (void)bhi_handle_retain(&kernel->handle);
    }
}

BH_API void bh_kernel_release(bh_kernel *kernel) {
    if (kernel && bhi_context_drop(&kernel->handle, kernel->context)) {
        if (bhi_retention_off()) {
            bhi_context_lock(kernel->context);
            bhi_kernel_body_forget(kernel->body);
            bhi_context_settle_unlock(kernel->context);
        }
        bhi_kernel_unref(kernel);
    }
}
