#include "supervisor/kernel/body.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "base/sort.h"
#include "base/step_point.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Code up to this size is kept without a descriptor, and copied into a new memfd for each worker.
 * The limit is low because the copy is made under the lock: it takes 40 us or more. */
#define SMALL_CODE (128u << 10)

static void free_body(struct bhi_kernel_body *body) {
    if (body->fd >= 0) {
        munmap(body->code, body->code_size);
        close(body->fd);
    } else {
        free(body->code);
    }
    free(body->specializations);
    free(body);
}

static void free_doomed(struct bhi_doomed *doomed) {
    struct bhi_kernel_body *body = BHI_CONTAINER(doomed, struct bhi_kernel_body, doomed);
    bh_context *context = body->context;
    free_body(body);
    bhi_context_unref(context);
}

/* Identity (K1): format, options, module or image, entry point, constants. The length of the module
 * and that of the entry point are hashed before them, and all other parts have a fixed size. So two
 * different kernels never hash the same bytes. */
static void hash_body(struct bhi_kernel_body *body, const void *code) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof body->hash);
    static const unsigned char domains[][18] = {
        [BHI_KERNEL_SPIRV] = "bulkhead kernel 2", [BHI_KERNEL_IMAGE] = "bulkhead image 1"};
    crypto_generichash_update(&state, domains[body->format], sizeof *domains);
    const unsigned char options = (unsigned char)(body->trusted | !!body->noise << 1);
    crypto_generichash_update(&state, &options, sizeof options);
    if (body->noise) {
        crypto_generichash_update(&state, (const unsigned char *)&body->noise, sizeof body->noise);
    }
    uint64_t length = body->code_size;
    crypto_generichash_update(&state, (const unsigned char *)&length, sizeof length);
    crypto_generichash_update(&state, code, body->code_size);
    length = strlen(body->entry);
    crypto_generichash_update(&state, (const unsigned char *)&length, sizeof length);
    crypto_generichash_update(&state, (const unsigned char *)body->entry, length);
    for (uint32_t i = 0; i < body->specialization_count; i++) {
        const bh_specialization *s = &body->specializations[i];
        uint64_t words[] = {s->constant_id, s->size, s->bits};
        crypto_generichash_update(&state, (const unsigned char *)words, sizeof words);
    }
    crypto_generichash_final(&state, body->hash, sizeof body->hash);
}

BHI_ORDER(by_id, bh_specialization, constant_id)

static bool copy_constants(struct bhi_kernel_body *body, const bh_kernel_options *options) {
    if (!options || !options->specialization_count) {
        return true;
    }
    body->specialization_count = options->specialization_count;
    body->specializations = calloc(options->specialization_count, sizeof *body->specializations);
    if (!body->specializations) {
        return false;
    }
    for (uint32_t i = 0; i < body->specialization_count; i++) {
        bh_specialization *s = &body->specializations[i];
        s->constant_id = options->specializations[i].constant_id;
        s->size = options->specializations[i].size;
        s->bits = options->specializations[i].bits;
        /* Stray bits above the constant's size must not make two equal kernels different. */
        if (s->size < 8) {
            s->bits &= (1ull << (8 * s->size)) - 1;
        }
    }
    qsort(body->specializations, body->specialization_count, sizeof *body->specializations, by_id);
    return true;
}

/* Returns a memfd with the code, sealed also against writing; or -errno. */
static int code_memfd(const void *code, size_t size) {
    BHI_AUTO_FD fd = bhi_memfd_create("bulkhead-kernel", size, 1);
    if (fd < 0) {
        return fd;
    }
    const char *bytes = code;
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(fd, bytes + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        done += (size_t)n;
    }
    int error = bhi_memfd_seal(fd, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return error ? error : bhi_fd_steal(&fd);
}

int bhi_kernel_body_descriptor(const struct bhi_kernel_body *body) {
    if (body->fd < 0) {
        return code_memfd(body->code, body->code_size);
    }
    int fd = fcntl(body->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

/* Copies the code into the body. Returns 0 or -errno. */
static int keep_code(struct bhi_kernel_body *body, const void *code) {
    if (body->code_size <= SMALL_CODE) {
        body->code = malloc(body->code_size);
        if (!body->code) {
            return -ENOMEM;
        }
        memcpy(body->code, code, body->code_size);
        return 0;
    }
    BHI_AUTO_FD fd = code_memfd(code, body->code_size);
    if (fd < 0) {
        return fd;
    }
    void *mapping = mmap(NULL, body->code_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
        return -errno;
    }
    body->code = mapping;
    body->fd = bhi_fd_steal(&fd);
    return 0;
}

/* -- the table --------------------------------------------------------------------------------- */

void bhi_kernel_table_fini(struct bhi_kernel_table *table) {
    BHI_CHECK(!table->count);
    bhi_map_fini(&table->map);
}

static uint64_t key_of(const uint8_t hash[32]) {
    uint64_t key;
    memcpy(&key, hash, sizeof key);
    return key;
}

/* Compares all fields and the code: equal hashes do not prove that two kernels are equal. */
static bool same(const struct bhi_kernel_body *body, const struct bhi_kernel_body *other,
                 const void *code) {
    if (body->format != other->format || body->code_size != other->code_size ||
        body->trusted != other->trusted || body->noise != other->noise ||
        strcmp(body->entry, other->entry) != 0 ||
        body->specialization_count != other->specialization_count) {
        return false;
    }
    for (uint32_t i = 0; i < body->specialization_count; i++) {
        const bh_specialization *a = &body->specializations[i], *b = &other->specializations[i];
        if (a->constant_id != b->constant_id || a->size != b->size || a->bits != b->bits) {
            return false;
        }
    }
    return memcmp(body->code, code, body->code_size) == 0;
}

/* Returns the body that equals |wanted|, with a reference, or NULL. Lock held, but released while
 * code is compared. The body that is compared is referenced, so it stays in its chain. */
static struct bhi_kernel_body *find(bh_context *context, const struct bhi_kernel_body *wanted,
                                    const void *code) {
    struct bhi_chain *node = bhi_map_get(&context->kernels->map, key_of(wanted->hash));
    while (node) {
        struct bhi_kernel_body *body = BHI_CONTAINER(node, struct bhi_kernel_body, chain);
        if (memcmp(body->hash, wanted->hash, sizeof body->hash) != 0) {
            node = node->next;
            continue;
        }
        body->refs++;
        bhi_context_settle_unlock(context);
        bool found = same(body, wanted, code);
        bhi_context_lock(context);
        if (found) {
            return body;
        }
        node = node->next;
        bhi_kernel_body_unref_locked(body);
    }
    return NULL;
}

static bh_status refuse(struct bhi_kernel_body *body, const char *call, int error,
                        bh_detail *detail) {
    if (body) {
        free_body(body);
    }
    return BHI_FAIL(detail, call, error == -ENOMEM ? BH_REASON_MEMORY : BH_REASON_SYSTEM_CALL,
                    "keeping the code", .sys_errno = -error);
}

/* Adds the body to the context, with a reference; the table has room. Lock held. */
static void enter(bh_context *context, struct bhi_kernel_body *body) {
    body->context = context;
    bhi_context_retain(context);
    body->doomed.free = free_doomed;
    body->refs = 1;
    body->id = bhi_context_new_id(context);
    bhi_map_link(&context->kernels->map, key_of(body->hash), &body->chain);
    context->kernels->count++;
    context->kernels->bytes += body->code_size;
}

bh_status bhi_kernel_body_intern(bh_context *context, const struct bhi_kernel_code *code,
                                 const bh_kernel_options *options,
                                 struct bhi_kernel_body **out_body, bh_detail *detail) {
    struct bhi_kernel_body *body = calloc(1, sizeof *body);
    if (!body) {
        return refuse(NULL, code->call, -ENOMEM, detail);
    }
    body->fd = -1;
    body->format = code->format;
    body->code_size = code->size;
    body->trusted = options && options->trusted;
    body->noise = options ? options->noise : 0;
    strcpy(body->entry, options && options->entry ? options->entry : "main");
    if (!copy_constants(body, options)) {
        return refuse(body, code->call, -ENOMEM, detail);
    }
    hash_body(body, code->bytes);
    bhi_context_lock(context);
    struct bhi_kernel_body *found = find(context, body, code->bytes);
    if (!found) {
        bhi_context_settle_unlock(context);
        int error = keep_code(body, code->bytes);
        if (error) {
            return refuse(body, code->call, error, detail);
        }
        BHI_STEP_POINT("kernel_kept", body);
        bhi_context_lock(context);
        found = find(context, body, code->bytes); /* another thread may have been faster */
    }
    if (found) {
        context->kernels->shared++;
    } else if (bhi_map_reserve(&context->kernels->map, 1)) {
        enter(context, body);
    } else {
        bhi_context_unlock(context);
        return refuse(body, code->call, -ENOMEM, detail);
    }
    bhi_context_settle_unlock(context);
    if (found) {
        free_body(body);
    }
    *out_body = found ? found : body;
    return BH_OK;
}

void bhi_kernel_body_forget(struct bhi_kernel_body *body) {
    bhi_usages_forget(body->context->usages, body->id);
    BHI_LIST_EACH(node, &body->context->workers)
    bhi_worker_forget_kernel(BHI_CONTAINER(node, struct bhi_worker, link), body->id);
}

void bhi_kernel_body_unref_locked(struct bhi_kernel_body *body) {
    if (--body->refs) {
        return;
    }
    bhi_kernel_body_forget(body);
    bhi_map_unlink(&body->context->kernels->map, &body->chain);
    body->context->kernels->count--;
    body->context->kernels->bytes -= body->code_size;
    bhi_context_doom(body->context, &body->doomed);
}
