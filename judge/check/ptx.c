#include "judge/check/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at;
    const char *token; /* a word, or another character; of length 0: the end */
    size_t length;
};

/* Goes to the next token: comments and texts are none. */
static void next(struct reader *reader) {
    for (const char *at = reader->at;;) {
        const char *end = at;
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else if (at[0] == '"') {
            at += 1 + strcspn(at + 1, "\"\n");
            at += *at == '"';
        } else {
            while (isalnum((unsigned char)*end) || (*end && strchr("._$%", *end))) {
                end++;
            }
            end += end == at && *at;
            reader->token = at;
            reader->length = (size_t)(end - at);
            reader->at = end;
            return;
        }
    }
}

static bool is(const struct reader *reader, const char *token) {
    return strlen(token) == reader->length && !memcmp(reader->token, token, reader->length);
}

static bool is_number(const struct reader *reader) {
    return reader->length && isdigit((unsigned char)*reader->token);
}

/* 0: none, or more than 32 bits. */
static uint32_t number_of(const struct reader *reader) {
    const unsigned long long number = is_number(reader) ? strtoull(reader->token, NULL, 10) : 0;
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* ".u64" and the like. */
static bool take_type(const struct reader *reader, struct bhi_ptx_parameter *out) {
    char *end = NULL;
    const bool may =
        reader->length > 2 && reader->token[0] == '.' && strchr("usfb", reader->token[1]);
    const unsigned long bits = may ? strtoul(reader->token + 2, &end, 10) : 0;
    if (!may || end != reader->token + reader->length || bits < 8 || bits > 128 || bits % 8) {
        return false;
    }
    *out = (struct bhi_ptx_parameter){.kind = reader->token[1], .bytes = (uint32_t)bits / 8};
    return true;
}

/* ".param .u64 .ptr .global .align 16 name", ".param .align 8 .b8 name[16]": up to "," or ")". */
static bool take_parameter(struct reader *reader, struct bhi_ptx_parameter *out) {
    bool typed = false;
    for (; reader->length && !is(reader, ",") && !is(reader, ")"); next(reader)) {
        typed = typed || take_type(reader, out);
        if (is(reader, "[")) {
            next(reader);
            uint32_t count = number_of(reader);
            if (!typed || !count || __builtin_mul_overflow(out->bytes, count, &out->bytes)) {
                return false;
            }
        }
    }
    return typed;
}

static bool take_parameters(struct reader *reader, struct bhi_ptx_entry *out) {
    if (!is(reader, "(")) {
        return true; /* it has none */
    }
    for (next(reader); reader->length && !is(reader, ")");) {
        if (out->count == BHI_PTX_PARAMETERS ||
            !take_parameter(reader, &out->parameters[out->count++])) {
            return false;
        }
        if (is(reader, ",")) {
            next(reader);
        }
    }
    next(reader);
    return true;
}

/* "256, 1, 1": what is left out is 1. Goes behind it. */
static void take_dimensions(struct reader *reader, uint32_t out[3]) {
    next(reader);
    for (int i = 0; i < 3; i++) {
        out[i] = is_number(reader) ? number_of(reader) : 1;
        if (is_number(reader)) {
            next(reader);
        }
        if (is(reader, ",")) {
            next(reader);
        }
    }
}

/* After ".entry". */
static bool take_entry(struct reader *reader, struct bhi_ptx_entry *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%.*s",
             (int)(reader->length < BHI_PTX_NAME ? reader->length : BHI_PTX_NAME), reader->token);
    next(reader);
    if (!take_parameters(reader, out)) {
        return false;
    }
    while (reader->length && !is(reader, "{") && !is(reader, ";")) {
        if (is(reader, ".reqntid") || is(reader, ".maxntid")) {
            take_dimensions(reader, is(reader, ".reqntid") ? out->required : out->most);
        } else {
            next(reader);
        }
    }
    return true;
}

/* How well the entry's name fits: 2 the same, 1 mangled, 0 another. */
static int rank_of(const struct bhi_ptx_entry *entry, const char *name) {
    char mangled[BHI_PTX_NAME + 16];
    if (!name) {
        return 0;
    }
    const int length =
        snprintf(mangled, sizeof mangled, "_Z%zu%.*s", strlen(name), BHI_PTX_NAME, name);
    return !strcmp(entry->name, name) ? 2 : !strncmp(entry->name, mangled, (size_t)length) ? 1 : 0;
}

bool bhi_ptx_find(const char *text, size_t size, const char *name, struct bhi_ptx_entry *out) {
    struct reader reader = {.at = text};
    struct bhi_ptx_entry *const one = malloc(sizeof *one);
    const bool whole = one && strlen(text) <= size;
    int best = -1, alike = 0;
    bool good = false;
    for (next(&reader); whole && reader.length;) {
        const bool begins = is(&reader, ".entry");
        next(&reader);
        if (!begins) {
            continue;
        }
        const bool read = take_entry(&reader, one);
        const int rank = rank_of(one, name);
        if (rank >= best) {
            alike = rank > best ? 1 : alike + 1;
            best = rank;
            good = read;
            *out = *one;
        }
    }
    free(one);
    return alike == 1 && good;
}
