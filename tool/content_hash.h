/* The hash that identifies a file's content: BLAKE2b with 256 bits, from libsodium. It is computed
 * while the file is written, or from a file that is read. */
#ifndef BHI_TOOL_CONTENT_HASH_H
#define BHI_TOOL_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { BHI_CONTENT_HASH = 32 };

struct bhi_content_hash;

/* Returns NULL if memory ran out. */
struct bhi_content_hash *bhi_content_hash_begin(void);
void bhi_content_hash_add(struct bhi_content_hash *hash, const void *bytes, size_t size);
/* Writes the hash to |out| unless that is NULL, and frees |hash|, which may be NULL. */
void bhi_content_hash_end(struct bhi_content_hash *hash, uint8_t out[BHI_CONTENT_HASH]);
/* Hashes the whole file of |fd|. Returns 0 or an errno; EINTR means that a signal asked for the end
 * (interrupt.h). */
int bhi_content_hash_of(int fd, uint8_t out[BHI_CONTENT_HASH]);

#endif
