/* Tables of a history's lines: the keys of each kind of record, the values that they may have, and
 * their places in the struct. Writing, reading and docs/chaos.md use them. */
#ifndef BHI_CHAOS_HISTORY_FIELDS_H
#define BHI_CHAOS_HISTORY_FIELDS_H

#include "chaos/history/history.h"

enum bhi_field_type {
    BHI_FIELD_U64,    /* up to |most|; above 2^63 - 1 it is written as a text of digits */
    BHI_FIELD_U32,    /* up to |most| */
    BHI_FIELD_I32,    /* 0 and up: pids, signals */
    BHI_FIELD_REAL,   /* finite, not negative */
    BHI_FIELD_BOOL,   /* */
    BHI_FIELD_TEXT,   /* at most |most| bytes, with the NUL */
    BHI_FIELD_NAME,   /* one of |names|, an unsigned number in the struct */
    BHI_FIELD_STATUS, /* a bh_status by its name */
    BHI_FIELD_FAULTS, /* a set of faults, as names */
    BHI_FIELD_U64S,   /* an array of at most |most|; |counted| is the place of its length */
    BHI_FIELD_I32S,   /* the same */
    BHI_FIELD_DIGEST, /* hexadecimal */
};

struct bhi_field {
    const char *key;
    enum bhi_field_type type;
    size_t offset, counted;
    uint64_t least, most;
    const char *const *names; /* ends with NULL */
    bool optional;            /* 0 if it is missing */
};

struct bhi_fields {
    const char *kind;
    const struct bhi_field *fields; /* the last one has the key NULL */
};

extern const struct bhi_field bhi_header_fields[];
extern const struct bhi_fields bhi_record_fields[BHI_RECORD_KINDS];

const char *bhi_status_word(bh_status status); /* NULL if there is no such status */
bool bhi_status_parse(const char *word, bh_status *out_status);

#endif
