#include "tool/content_hash.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "tool/interrupt.h"

struct bhi_content_hash {
    crypto_generichash_state state;
};

struct bhi_content_hash *bhi_content_hash_begin(void) {
    /* libsodium needs a larger alignment than malloc gives. */
    struct bhi_content_hash *hash = aligned_alloc(_Alignof(struct bhi_content_hash), sizeof *hash);
    if (hash) {
        (void)!sodium_init(); /* only selects a faster implementation */
        crypto_generichash_init(&hash->state, NULL, 0, BHI_CONTENT_HASH);
    }
    return hash;
}

void bhi_content_hash_add(struct bhi_content_hash *hash, const void *bytes, size_t size) {
    crypto_generichash_update(&hash->state, bytes, size);
}

void bhi_content_hash_end(struct bhi_content_hash *hash, uint8_t out[BHI_CONTENT_HASH]) {
    if (hash && out) {
        crypto_generichash_final(&hash->state, out, BHI_CONTENT_HASH);
    }
    free(hash);
}

int bhi_content_hash_of(int fd, uint8_t out[BHI_CONTENT_HASH]) {
    enum { PIECE = 1 << 18 };
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    uint8_t *piece = malloc(PIECE);
    int error = hash && piece ? 0 : ENOMEM;
    off_t at = 0;
    while (!error) {
        const ssize_t n = pread(fd, piece, PIECE, at);
        if (bhi_interrupt_signal()) {
            error = EINTR;
        } else if (n > 0) {
            bhi_content_hash_add(hash, piece, (size_t)n);
            at += n;
        } else if (n == 0) {
            break;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    free(piece);
    bhi_content_hash_end(hash, error ? NULL : out);
    return error;
}
