#include "ipc/wire.h"

#include "base/format.h"
#include "base/text.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct bhi_message_info infos[] = {
#define W2S BHI_W2S
#define S2W BHI_S2W
#define S2Z BHI_S2Z
#define Z2S BHI_Z2S
#define S2O BHI_S2O
#define O2S BHI_O2S
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    {BHI_MSG_##NAME, direction, states, fds, #name, doc},
#include "ipc/messages.def"
#undef W2S
#undef S2W
#undef S2Z
#undef Z2S
#undef S2O
#undef O2S
};

/* The buffer holds every message: the size of the largest is known at compile time. */
#define SIZE_U32(name, min, max, doc)  +4u
#define SIZE_U64(name, min, max, doc)  +8u
#define SIZE_I32(name, min, max, doc)  +4u
#define SIZE_BLOB(name, length, doc)   +(length)
#define SIZE_TEXT(name, capacity, doc) +4u + (capacity) - 1u
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    _Static_assert(BHI_WIRE_HEADER BHI_FIELDS_##NAME(SIZE_U32, SIZE_U64, SIZE_I32, SIZE_BLOB,      \
                                                     SIZE_TEXT) <= BHI_WIRE_MAX,                   \
                   #name " is too large");
#include "ipc/messages.def"

const struct bhi_message_info *bhi_message_info(uint32_t type) {
    for (size_t i = 0; i < sizeof infos / sizeof infos[0]; i++) {
        if ((uint32_t)infos[i].type == type) {
            return &infos[i];
        }
    }
    return NULL;
}

/* -- writing ------------------------------------------------------------------------------- */

struct writer {
    uint8_t *at, *end;
    int error; /* the first error is kept */
};

static uint8_t *reserve(struct writer *w, size_t length) {
    if (w->error) {
        return NULL;
    }
    if ((size_t)(w->end - w->at) < length) {
        w->error = -EMSGSIZE;
        return NULL;
    }
    uint8_t *at = w->at;
    w->at += length;
    return at;
}

static void put_little(struct writer *w, uint64_t value, size_t length) {
    uint8_t *at = reserve(w, length);
    for (size_t i = 0; at && i < length; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void put_unsigned(struct writer *w, uint64_t value, size_t length, uint64_t min,
                         uint64_t max) {
    if (!w->error && (value < min || value > max)) {
        w->error = -EINVAL;
    }
    put_little(w, value, length);
}

static void put_signed(struct writer *w, int32_t value, int32_t min, int32_t max) {
    if (!w->error && (value < min || value > max)) {
        w->error = -EINVAL;
    }
    put_little(w, (uint32_t)value, 4);
}

static void put_blob(struct writer *w, const uint8_t *bytes, size_t length) {
    uint8_t *at = reserve(w, length);
    if (at) {
        memcpy(at, bytes, length);
    }
}

static void put_text(struct writer *w, const char *text, size_t capacity) {
    size_t length = strnlen(text, capacity);
    if (!w->error && length == capacity) {
        w->error = -EINVAL;
    }
    put_little(w, length, 4);
    uint8_t *at = reserve(w, length);
    uint8_t c[4];
    for (size_t i = 0, n; at && i < length; i += n) {
        n = bhi_text_char((const uint8_t *)text + i, length - i, c);
        if (n == 0) {
            w->error = -EINVAL;
            return;
        }
        memcpy(at + i, c, n);
    }
}

/* `(void)m`: some messages have no fields. */
#define PUT_U32(name, min, max, doc)  put_unsigned(w, m->name, 4, min, max);
#define PUT_U64(name, min, max, doc)  put_unsigned(w, m->name, 8, min, max);
#define PUT_I32(name, min, max, doc)  put_signed(w, m->name, min, max);
#define PUT_BLOB(name, length, doc)   put_blob(w, m->name, length);
#define PUT_TEXT(name, capacity, doc) put_text(w, m->name, capacity);
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    static void put_##name(struct writer *w, const struct bhi_msg_##name *m) {                     \
        (void)w, (void)m;                                                                          \
        BHI_FIELDS_##NAME(PUT_U32, PUT_U64, PUT_I32, PUT_BLOB, PUT_TEXT)                           \
    }
#include "ipc/messages.def"

int bhi_wire_encode(const struct bhi_message *message, uint8_t *out, size_t capacity) {
    struct writer w = {out, out + capacity, 0};
    put_little(&w, BHI_WIRE_MAGIC, 4);
    put_little(&w, (uint32_t)message->type, 2);
    put_little(&w, BHI_WIRE_VERSION, 2);
    put_little(&w, 0, 4); /* the body's length: written below */
    switch (message->type) {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    case BHI_MSG_##NAME:                                                                           \
        put_##name(&w, &message->name);                                                            \
        break;
#include "ipc/messages.def"
    default:
        return -EINVAL;
    }
    if (w.error) {
        return w.error;
    }
    size_t length = (size_t)(w.at - out);
    struct writer patch = {out + 8, out + 12, 0};
    put_little(&patch, length - BHI_WIRE_HEADER, 4);
    return (int)length;
}

/* -- reading ------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at, *end;
    const char *message;
    char *why;
    size_t why_size;
    bool failed; /* the first failure is kept, with its text in |why| */
};

static void __attribute__((format(printf, 3, 4))) refuse(struct reader *r, const char *field,
                                                         const char *format, ...) {
    if (r->failed) {
        return;
    }
    r->failed = true;
    if (!r->why || r->why_size == 0) {
        return;
    }
    char detail[128];
    va_list args;
    va_start(args, format);
    bhi_vformat(detail, sizeof detail, format, args);
    va_end(args);
    snprintf(r->why, r->why_size, "%s%s%s: %s", r->message, field[0] ? "." : "", field, detail);
}

static uint64_t get_little(struct reader *r, const char *field, size_t length) {
    if (r->failed) {
        return 0;
    }
    if ((size_t)(r->end - r->at) < length) {
        refuse(r, field, "the message ends in the middle of it");
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        value |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += length;
    return value;
}

static uint64_t get_unsigned(struct reader *r, const char *field, size_t length, uint64_t min,
                             uint64_t max) {
    uint64_t value = get_little(r, field, length);
    if (value < min || value > max) {
        refuse(r, field, "%llu is not in %llu..%llu", (unsigned long long)value,
               (unsigned long long)min, (unsigned long long)max);
    }
    return value;
}

static int32_t get_signed(struct reader *r, const char *field, int32_t min, int32_t max) {
    int32_t value = (int32_t)(uint32_t)get_little(r, field, 4);
    if (value < min || value > max) {
        refuse(r, field, "%d is not in %d..%d", value, min, max);
    }
    return value;
}

static void get_blob(struct reader *r, const char *field, uint8_t *out, size_t length) {
    if (!r->failed && (size_t)(r->end - r->at) < length) {
        refuse(r, field, "the message ends in the middle of it");
    }
    if (r->failed) {
        return;
    }
    memcpy(out, r->at, length);
    r->at += length;
}

static void get_text(struct reader *r, const char *field, char *out, size_t capacity) {
    uint64_t length = get_little(r, field, 4);
    if (r->failed) {
        return;
    }
    if (length >= capacity) {
        refuse(r, field, "%llu bytes, at most %zu fit", (unsigned long long)length, capacity - 1);
        return;
    }
    if ((size_t)(r->end - r->at) < length) {
        refuse(r, field, "the message ends in the middle of it");
        return;
    }
    for (size_t i = 0, n; i < length; i += n) {
        uint8_t c[4];
        n = bhi_text_char(r->at + i, (size_t)length - i, c);
        if (n == 0) {
            refuse(r, field, "byte %zu (0x%02x) is a control character or not UTF-8", i, c[0]);
            return;
        }
        memcpy(out + i, c, n);
    }
    out[length] = '\0';
    r->at += length;
}

#define GET_U32(name, min, max, doc)  m->name = (uint32_t)get_unsigned(r, #name, 4, min, max);
#define GET_U64(name, min, max, doc)  m->name = get_unsigned(r, #name, 8, min, max);
#define GET_I32(name, min, max, doc)  m->name = get_signed(r, #name, min, max);
#define GET_BLOB(name, length, doc)   get_blob(r, #name, m->name, length);
#define GET_TEXT(name, capacity, doc) get_text(r, #name, m->name, capacity);
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    static void get_##name(struct reader *r, struct bhi_msg_##name *m) {                           \
        (void)r, (void)m;                                                                          \
        BHI_FIELDS_##NAME(GET_U32, GET_U64, GET_I32, GET_BLOB, GET_TEXT)                           \
    }
#include "ipc/messages.def"

static const struct bhi_message_info *get_header(struct reader *r) {
    uint64_t magic = get_little(r, "magic", 4);
    uint64_t type = get_little(r, "type", 2);
    uint64_t version = get_little(r, "version", 2);
    uint64_t body = get_little(r, "length", 4);
    if (r->failed) {
        return NULL;
    }
    const struct bhi_message_info *info = bhi_message_info((uint32_t)type);
    if (magic != BHI_WIRE_MAGIC) {
        refuse(r, "magic", "0x%08x is not the protocol's", (unsigned)magic);
    } else if (version != BHI_WIRE_VERSION) {
        refuse(r, "version", "%u is not this library's, %u", (unsigned)version, BHI_WIRE_VERSION);
    } else if (!info) {
        refuse(r, "type", "%u is unknown", (unsigned)type);
    } else if (body != (size_t)(r->end - r->at)) {
        refuse(r, "length", "says %u, %zu bytes follow", (unsigned)body, (size_t)(r->end - r->at));
    }
    return r->failed ? NULL : info;
}

int bhi_wire_decode(const uint8_t *bytes, size_t length, enum bhi_direction direction,
                    uint32_t states, struct bhi_message *out, char *why, size_t why_size) {
    struct reader r = {bytes, bytes + length, "header", why, why_size, false};
    memset(out, 0, sizeof *out);
    if (why && why_size) {
        why[0] = '\0';
    }
    const struct bhi_message_info *info = get_header(&r);
    if (!info) {
        return -EBADMSG;
    }
    r.message = info->name;
    out->type = info->type;
    switch (info->type) {
#define BHI_MESSAGE(name, NAME, type, direction, states, fds, doc)                                 \
    case BHI_MSG_##NAME:                                                                           \
        get_##name(&r, &out->name);                                                                \
        break;
#include "ipc/messages.def"
    }
    if (r.at != r.end) {
        refuse(&r, "", "%zu bytes left over", (size_t)(r.end - r.at));
    }
    int error = r.failed ? -EBADMSG : 0;
    if (!error && info->direction != direction) {
        refuse(&r, "", "does not travel in this direction");
        error = -EPROTO;
    } else if (!error && !(info->states & states)) {
        refuse(&r, "", "not permitted in this state (0x%x)", (unsigned)states);
        error = -EPROTO;
    }
    if (error) {
        memset(out, 0, sizeof *out);
    }
    return error;
}
