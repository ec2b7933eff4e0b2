/* Valid messages, made from the table: each field at its smallest or largest permitted value, or
 * anything between. */
#ifndef BULKHEAD_TEST_PROTO_SAMPLE_H
#define BULKHEAD_TEST_PROTO_SAMPLE_H

#include "ipc/wire.h"
#include <stdbool.h>

enum sample { SAMPLE_MIN, SAMPLE_MAX, SAMPLE_RANDOM };

/* Every type in messages.def. */
extern const uint32_t sample_types[];
extern const size_t sample_type_count;

void sample_message(struct bhi_message *out, uint32_t type, enum sample how, uint64_t *random);
/* True if both have the same type and the same fields. */
bool same_message(const struct bhi_message *a, const struct bhi_message *b);

#endif
