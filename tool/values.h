/* The values of options: durations, sizes, grids, bindings, push and specialization constants.
 *
 * Each parser reads all of |text|, or refuses it with a complaint that quotes it. None allocates
 * unless its comment says so. None depends on the locale: the program never calls setlocale.
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
    uint32_t element; /* in an array of buffers */
};

/* A slot as text: "0.1", "0.1[2]". */
struct bhi_slot_text {
    char text[48];
};

struct bhi_push {
    uint8_t bytes[BHI_MAX_PUSH];
    uint32_t size; /* a multiple of 4 */
};

/* Parses a decimal number from |least| to |most|. */
bool bhi_parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out_count,
                     struct bhi_complaint *complaint);
/* Parses a duration such as "500ms" or "1.5s"; units are ns, us, ms, s, m. "none" is BH_FOREVER.
 * Refuses zero. */
bool bhi_parse_duration(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* As bhi_parse_duration, but refuses "none". */
bool bhi_parse_finite_duration(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* As bhi_parse_finite_duration, but accepts zero. For --grace. */
bool bhi_parse_grace(const char *text, uint64_t *out_ns, struct bhi_complaint *complaint);
/* Parses a rate a second such as "20/s" or "0.5". */
bool bhi_parse_rate(const char *text, double *out_rate, struct bhi_complaint *complaint);
/* Takes |text| as it is. Refuses an empty one: "the WHAT is empty". */
bool bhi_parse_text(const char *text, const char *what, const char **out,
                    struct bhi_complaint *complaint);
/* Checks --cache-dir: not empty, and a folder if it exists. */
bool bhi_parse_cache_dir(const char *text, struct bhi_complaint *complaint);
/* Parses --tenant: not empty, and no longer than bh_stream_create allows. */
bool bhi_parse_tenant(const char *text, struct bhi_complaint *complaint);
/* Parses a size such as "512M". K, M, G and T are powers of 1024; a number without a suffix is
 * bytes. "none" is 0. Refuses any other zero. */
bool bhi_parse_size(const char *text, uint64_t *out_bytes, struct bhi_complaint *complaint);
/* Parses --memory-limit. Refuses at once what bh_stream_create would refuse later. */
bool bhi_parse_memory_limit(const char *text, uint64_t *out_bytes, struct bhi_complaint *complaint);
/* Parses --memory: "host", "device" or "auto". */
bool bhi_parse_memory(const char *text, bh_memory *out_memory, struct bhi_complaint *complaint);
/* Returns these words one after the other; NULL after the last. */
const char *bhi_memory_word(size_t index);
/* Parses "X[,Y[,Z]]"; each is at least 1 |what|, such as "group". */
bool bhi_parse_groups(const char *text, const char *what, uint32_t out_groups[3],
                      struct bhi_complaint *complaint);
/* Parses "N" or "SET.N", optionally with "[ELEMENT]", from the first |length| bytes of |text|. */
bool bhi_parse_slot(const char *text, size_t length, struct bhi_slot *out_slot,
                    struct bhi_complaint *complaint);
/* Parses "[ELEMENT]" after a binding's number or name, from the first |length| bytes of |text|. An
 * empty text is element 0. */
bool bhi_parse_element(const char *text, size_t length, uint32_t *out_element);
bool bhi_slot_is(struct bhi_slot a, struct bhi_slot b);
/* Writes |slot| as text. |indexed| writes the element even if it is 0. */
struct bhi_slot_text bhi_slot_describe(struct bhi_slot slot, bool indexed);
/* Parses "DTYPE[N,…]"; "DTYPE[]" is one element without dimensions. "DTYPE:N,…" and "DTYPE:NxM"
 * mean the same, without brackets, which a shell takes for a pattern. */
bool bhi_parse_array(const char *text, struct bhi_array *out_array,
                     struct bhi_complaint *complaint);
/* The same, also of a small float, which a .npy file cannot have. */
bool bhi_parse_element_array(const char *text, struct bhi_array *out_array,
                             struct bhi_complaint *complaint);
/* Parses "TYPE:VALUE,…". A value without a type has the type of the one before it. Each value is
 * aligned to its own size. A bool takes 4 bytes, and the end is padded to 4. ":VALUE" gets its type
 * from the kernel; until that is known, it is the first of i32, u32 and f32 that can hold it. */
bool bhi_parse_push(const char *text, struct bhi_push *out_push, struct bhi_complaint *complaint);
/* A value of a list of push constants. */
struct bhi_push_value {
    const char *text; /* without the type */
    bool typed;       /* false: the kernel decides the type */
    bh_dtype dtype;
    uint32_t used; /* bytes before this value, without alignment */
};
/* Called for each value; may set the dtype of a value that is not typed. To refuse the value, fills
 * in the complaint and returns false. */
typedef bool bhi_push_take(void *user, struct bhi_push_value *value,
                           struct bhi_complaint *complaint);
/* As bhi_parse_push, but calls |take| (unless that is NULL) for each value before it is stored. */
bool bhi_parse_push_as(const char *text, bhi_push_take *take, void *user, struct bhi_push *out_push,
                       struct bhi_complaint *complaint);
/* The bytes that a value of |dtype| takes as a push constant: 4 for a bool. */
uint32_t bhi_push_size(bh_dtype dtype);
/* Parses a specialization constant from its ID, the first |length| bytes of |name|, and from
 * "TYPE:VALUE". A NULL |value| is refused. */
bool bhi_parse_constant(const char *name, size_t length, const char *value,
                        bh_specialization *out_spec, struct bhi_complaint *complaint);
/* Parses "ID=TYPE:VALUE". */
bool bhi_parse_spec(const char *text, bh_specialization *out_spec, struct bhi_complaint *complaint);

#endif
