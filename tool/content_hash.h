/* What a file's content is recognised by: its BLAKE2b of 256 bits, which libsodium computes, piece by
 * piece as the file is written, or at once from a file that is read. */
#ifndef BHI_TOOL_CONTENT_HASH_H
#define BHI_TOOL_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { BHI_CONTENT_HASH = 32 };

struct bhi_content_hash;

/* NULL: out of memory. */
struct bhi_content_hash *bhi_content_hash_begin(void);
void bhi_content_hash_add(struct bhi_content_hash *hash, const void *bytes, size_t size);
/* Frees it, too; |out| may be NULL, |hash| as well. */
void bhi_content_hash_end(struct bhi_content_hash *hash, uint8_t out[BHI_CONTENT_HASH]);
/* Of all that is in the file behind |fd|, from its begin. 0, or an errno;
 * EINTR: a signal has asked for the end (interrupt.h). */
int bhi_content_hash_of(int fd, uint8_t out[BHI_CONTENT_HASH]);

#endif
