#include "batch/journal/marks.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { HASH_TEXT = 2 * BHI_CONTENT_HASH };

void bhi_marks_append(char *out, const struct bhi_outfile_mark *mark) {
    const size_t length = strlen(out);
    char hash[HASH_TEXT + 1] = "";
    if (mark->hashed) {
        sodium_bin2hex(hash, sizeof hash, mark->hash, sizeof mark->hash);
    }
    snprintf(out + length, BHI_MARKS_TEXT - length, "%s%" PRIu64 "@%" PRIu64 "%s%s",
             length ? " " : "", mark->size, mark->modified_ns, mark->hashed ? "#" : "", hash);
}

/* Reads digits only, at most 20. */
static bool read_number(const char **at, uint64_t *out_number) {
    uint64_t number = 0;
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number)) {
            return false;
        }
    }
    *out_number = number;
    return *at > begin;
}

static bool read_hash(const char **at, uint8_t out[BHI_CONTENT_HASH]) {
    if (strspn(*at, "0123456789abcdef") != HASH_TEXT ||
        sodium_hex2bin(out, BHI_CONTENT_HASH, *at, HASH_TEXT, NULL, NULL, NULL) != 0) {
        return false;
    }
    *at += HASH_TEXT;
    return true;
}

bool bhi_marks_next(const char **at, struct bhi_outfile_mark *out_mark) {
    if (!read_number(at, &out_mark->size) || *(*at)++ != '@' ||
        !read_number(at, &out_mark->modified_ns)) {
        return false;
    }
    out_mark->hashed = **at == '#';
    if (out_mark->hashed) {
        ++*at;
        if (!read_hash(at, out_mark->hash)) {
            return false;
        }
    }
    if (**at == ' ' && (*at)[1]) {
        ++*at;
    }
    return true;
}

bool bhi_marks_check(const char *text, size_t count) {
    struct bhi_outfile_mark mark;
    for (size_t i = 0; i < count; i++) {
        if (!bhi_marks_next(&text, &mark)) {
            return false;
        }
    }
    return !*text;
}

void bhi_used_mark_write(const struct bhi_used_mark *mark, char out[BHI_USED_MARK_TEXT]) {
    char hash[HASH_TEXT + 1] = "";
    if (mark->hashed) {
        sodium_bin2hex(hash, sizeof hash, mark->hash, sizeof mark->hash);
    }
    snprintf(out, BHI_USED_MARK_TEXT, "%" PRIu64 "@%" PRIu64 "@%" PRIu64 "%s%s", mark->size,
             mark->modified_ns, mark->changed_ns, mark->hashed ? "#" : "", hash);
}

bool bhi_used_mark_read(const char *text, struct bhi_used_mark *out_mark) {
    if (!read_number(&text, &out_mark->size) || *text++ != '@' ||
        !read_number(&text, &out_mark->modified_ns) || *text++ != '@' ||
        !read_number(&text, &out_mark->changed_ns)) {
        return false;
    }
    out_mark->hashed = *text == '#';
    return (!out_mark->hashed || (++text && read_hash(&text, out_mark->hash))) && !*text;
}
