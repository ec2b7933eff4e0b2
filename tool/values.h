/* The values that options take: durations, sizes, grids, bindings, push and spec constants.
 *
 * Each parser reads all of |text| or refuses it with a complaint that quotes it; none allocates
 * unless it says so, none depends on the locale (the program never calls setlocale).
 */
#ifndef BHI_TOOL_VALUES_H
#define BHI_TOOL_VALUES_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/array.h"
#include "tool/text.h"

enum { BHI_MAX_PUSH = 4096 };

struct bhi_slot {
    uint32_t set, binding;
    uint32_t element; /* of an array of buffers */
};

/* "0.1", "0.1[2]". */
struct bhi_slot_text {
    char text[48];
};

struct bhi_push {
    uint8_t bytes[BHI_MAX_PUSH];
    uint32_t size; /* a multiple of 4 */
};

/* Decimal, |least| to |most|. */
bool bhi_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out_count,
                     struct bhi_complaint *complaint);
/* "500ms": ns us ms s m; a fraction is fine ("1.5s"). "none": BH_FOREVER. Zero is refused. */
bool bhi_parse_duration(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* The same without "none". */
bool bhi_parse_finite_duration(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* The same for --grace, where zero is fine. */
bool bhi_parse_grace(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* For --tenant: not empty, and as long as bh_stream_create takes it. */
bool bhi_parse_tenant(const char *text, struct bhi_complaint *complaint);
/* "512M": K M G T are powers of 1024, no suffix is bytes; "none": 0. Other zeros are refused. */
bool bhi_parse_size(const char *text, uint64_t *out_bytes, struct bhi_complaint *complaint);
/* The same for --memory-limit: what bh_stream_create refuses is refused here, before anything is
 * made. */
bool bhi_parse_memory_limit(const char *text, uint64_t *out_bytes, struct bhi_complaint *complaint);
/* For --memory: "host", "device" or "auto". */
bool bhi_parse_memory(const char *text, bh_memory *out_memory, struct bhi_complaint *complaint);
/* "X[,Y[,Z]]": each at least 1. */
bool bhi_parse_groups(const char *text, uint32_t out_groups[3], struct bhi_complaint *complaint);
/* "N" or "SET.N", either with "[ELEMENT]" behind it, |length| bytes of it. */
bool bhi_parse_slot(const char *text, size_t length, struct bhi_slot *out_slot,
                    struct bhi_complaint *complaint);
/* The "[ELEMENT]" alone, |length| bytes; none is element 0. Behind a binding's number or name.
 */
bool bhi_parse_element(const char *text, size_t length, uint32_t *out_element);
bool bhi_slot_is(struct bhi_slot a, struct bhi_slot b);
/* |indexed|: with the element also where it is 0, as of an array. */
struct bhi_slot_text bhi_slot_describe(struct bhi_slot slot, bool indexed);
/* "DTYPE[N,…]", "DTYPE[]" for one element without dimensions; "DTYPE:N,…" and "DTYPE:NxM" are the
 * same without what a shell takes for a pattern. */
bool bhi_parse_array(const char *text, struct bhi_array *out_array,
                     struct bhi_complaint *complaint);
/* "TYPE:VALUE,…": a value without a type has the type of the one before. Each is aligned to its
 * own size, a bool is a word; the end is padded to 4. ":VALUE" leaves the type to the kernel: until
 * that is known it is i32, u32 or f32, the first that can hold it. */
bool bhi_parse_push(const char *text, struct bhi_push *out_push, struct bhi_complaint *complaint);
/* One of them. */
struct bhi_push_value {
    const char *text; /* without the type */
    bool typed;       /* not left to the kernel */
    bh_dtype dtype;
    uint32_t used; /* bytes before it, which is not aligned yet */
};
/* May choose the type of one that is not typed; false, with a complaint: refuses it. */
typedef bool bhi_push_take(void *user, struct bhi_push_value *value,
                           struct bhi_complaint *complaint);
/* The same, each of them shown to |take| (which may be NULL) before it is put down. */
bool bhi_parse_push_as(const char *text, bhi_push_take *take, void *user, struct bhi_push *out_push,
                       struct bhi_complaint *complaint);
/* How many bytes one has there: a bool is a word. */
uint32_t bhi_push_size(bh_dtype dtype);
/* "ID" and "TYPE:VALUE", |length| bytes of |name|; NULL is no value. */
bool bhi_parse_constant(const char *name, size_t length, const char *value,
                        bh_specialization *out_spec, struct bhi_complaint *complaint);
/* Both as "ID=TYPE:VALUE". */
bool bhi_parse_spec(const char *text, bh_specialization *out_spec, struct bhi_complaint *complaint);

#endif
