/* By APPNOTE.TXT 6.3: the end record is last, but for a comment; it gives the place of the directory,
 * whose entries give those of the members. The header in front of a member's data repeats its entry;
 * of it only the length counts. */
#include "formats/zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/owner.h"
#include "formats/foreign.h"

enum {
    END = 22,           /* bytes of the end record */
    END_64 = 56,        /* of that of zip64 */
    LOCATOR_64 = 20,    /* of what gives its place; it is right in front of the end record */
    ENTRY = 46,         /* of an entry of the directory, without name, extra fields and comment */
    LOCAL = 30,         /* of the header of a member's data, likewise */
    COMMENT = 0xFFFF,   /* the longest one */
    IS_LARGE = 0x0001,  /* the extra field with the numbers that 32 bits do not hold */
    ENCRYPTED = 0x2041, /* flags: it, strongly, or its headers */
};
#define MOST_DIRECTORY (UINT64_C(16) << 20)

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) {
        value = value << 8 | at[bytes];
    }
    return value;
}

static bool is_mark(const uint8_t *at, uint8_t third, uint8_t fourth) {
    return at[0] == 'P' && at[1] == 'K' && at[2] == third && at[3] == fourth;
}

struct directory { /* of the archive */
    uint64_t count, offset, bytes;
};

/* Reads the larger end record if there is one, and says where the directory has to end. */
static bool read_end_64(const struct bhi_readable *file, uint64_t end, struct directory *out,
                        uint64_t *out_limit, struct bhi_complaint *complaint) {
    uint8_t bytes[END_64];
    *out_limit = end;
    if (end < LOCATOR_64) {
        return true;
    }
    if (!file->read(file->user, bytes, end - LOCATOR_64, LOCATOR_64, complaint)) {
        return false;
    }
    if (!is_mark(bytes, 6, 7)) {
        return true;
    }
    const uint64_t at = number(bytes + 8, 8);
    if (end - LOCATOR_64 < END_64 || at > end - LOCATOR_64 - END_64) {
        return bhi_refuse(complaint, "offset %llu: its zip64 end record is given at offset %llu",
                          (unsigned long long)(end - LOCATOR_64), (unsigned long long)at);
    }
    if (!file->read(file->user, bytes, at, END_64, complaint)) {
        return false;
    }
    if (!is_mark(bytes, 6, 6)) {
        return bhi_refuse(complaint, "offset %llu: no zip64 end record", (unsigned long long)at);
    }
    *out = (struct directory){number(bytes + 32, 8), number(bytes + 48, 8), number(bytes + 40, 8)};
    *out_limit = at;
    return true;
}

static bool refuse_other(const struct bhi_readable *file, const uint8_t *tail, uint64_t size,
                         struct bhi_complaint *complaint) {
    const enum bhi_foreign foreign =
        size == file->size ? bhi_foreign_find(tail, size) : BHI_FOREIGN_NONE;
    if (foreign != BHI_FOREIGN_NONE && foreign != BHI_FOREIGN_ZIP) {
        return bhi_foreign_refuse(foreign, ".npz file", complaint);
    }
    return bhi_refuse(complaint, "%s: a ZIP archive ends with its directory, and here is none",
                      file->size > 0 && foreign ? "truncated" : "not a .npz file");
}

/* The last end record whose comment ends with the archive. */
static bool find_directory(const struct bhi_readable *file, struct directory *out,
                           struct bhi_complaint *complaint) {
    const uint64_t most = END + COMMENT, size = file->size < most ? file->size : most;
    BHI_AUTO_FREE uint8_t *tail = malloc(size + 1);
    if (!tail) {
        return bhi_refuse_memory(complaint);
    }
    if (!file->read(file->user, tail, file->size - size, size, complaint)) {
        return false;
    }
    uint64_t at = size < END ? 0 : size - END + 1, limit;
    bool found = false;
    while (at > 0 && !found) {
        at--;
        found = is_mark(tail + at, 5, 6) && at + END + number(tail + at + 20, 2) == size;
    }
    if (!found) {
        return refuse_other(file, tail, size, complaint);
    }
    const uint8_t *end = tail + at;
    *out = (struct directory){number(end + 10, 2), number(end + 16, 4), number(end + 12, 4)};
    if (!read_end_64(file, file->size - size + at, out, &limit, complaint)) {
        return false;
    }
    if (out->offset > limit || out->bytes > limit - out->offset) {
        return bhi_refuse(
            complaint,
            "its directory is given as %llu bytes at offset %llu, and ends at offset %llu",
            (unsigned long long)out->bytes, (unsigned long long)out->offset,
            (unsigned long long)limit);
    }
    return out->bytes <= MOST_DIRECTORY ||
           bhi_refuse(complaint, "its directory has %llu bytes; the limit is %llu",
                      (unsigned long long)out->bytes, (unsigned long long)MOST_DIRECTORY);
}

/* Of the four numbers, those that are all ones stand in the extra field, in this order. */
static bool take_large(const uint8_t *extra, uint64_t length, uint64_t *numbers[3]) {
    bool wanted = false;
    for (int i = 0; i < 3; i++) {
        wanted |= *numbers[i] == UINT32_MAX;
    }
    while (wanted && length >= 4) {
        const uint64_t bytes = number(extra + 2, 2);
        if (bytes > length - 4) {
            return false;
        }
        if (number(extra, 2) == IS_LARGE) {
            uint64_t at = 4;
            for (int i = 0; i < 3; i++) {
                if (*numbers[i] != UINT32_MAX) {
                    continue;
                }
                if (at + 8 > 4 + bytes) {
                    return false;
                }
                *numbers[i] = number(extra + at, 8);
                at += 8;
            }
            return true;
        }
        extra += 4 + bytes;
        length -= 4 + bytes;
    }
    return !wanted;
}

/* The data begins behind a header that may have other extra fields than the entry. */
static bool place(const struct bhi_readable *file, uint64_t limit, uint64_t header,
                  struct bhi_zip_member *member, struct bhi_complaint *complaint) {
    uint8_t local[LOCAL];
    if (limit < LOCAL || header > limit - LOCAL) {
        return bhi_refuse(
            complaint,
            "member '%.200s': it is given at offset %llu, and the directory begins at %llu",
            member->name, (unsigned long long)header, (unsigned long long)limit);
    }
    if (!file->read(file->user, local, header, LOCAL, complaint)) {
        return false;
    }
    member->offset = header + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    if (!is_mark(local, 3, 4) || member->offset > limit || member->bytes > limit - member->offset) {
        return bhi_refuse(
            complaint, "member '%.200s': offset %llu: %s", member->name, (unsigned long long)header,
            is_mark(local, 3, 4) ? "its data reaches into the directory" : "no header of a member");
    }
    return true;
}

/* Takes the entry at |at|. Returns its size, or 0. */
static uint64_t take_entry(const struct bhi_readable *file, uint64_t limit, const uint8_t *at,
                           uint64_t room, struct bhi_zip_member *member,
                           struct bhi_complaint *complaint) {
    if (room < ENTRY || !is_mark(at, 1, 2)) {
        (void)!bhi_refuse(complaint, "its directory is damaged");
        return 0;
    }
    const uint64_t name = number(at + 28, 2), extra = number(at + 30, 2),
                   all = ENTRY + name + extra + number(at + 32, 2);
    uint64_t packed = number(at + 20, 4), header = number(at + 42, 4);
    member->bytes = number(at + 24, 4);
    member->packed = number(at + 10, 2) != 0 || (number(at + 8, 2) & ENCRYPTED);
    if (all > room) {
        (void)!bhi_refuse(complaint, "its directory is damaged");
        return 0;
    }
    const uint64_t kept = name < sizeof member->name ? name : sizeof member->name - 1;
    memcpy(member->name, at + ENTRY, kept);
    member->name[kept] = 0;
    if (!take_large(at + ENTRY + name, extra, (uint64_t *[]){&member->bytes, &packed, &header}) ||
        (!member->packed && packed != member->bytes)) {
        (void)!bhi_refuse(complaint, "member '%.200s': its size is damaged", member->name);
        return 0;
    }
    member->bytes = packed;
    return place(file, limit, header, member, complaint) ? all : 0;
}

bool bhi_zip_walk(const struct bhi_readable *file, bhi_zip_visitor *visit, void *user,
                  struct bhi_complaint *complaint) {
    struct directory directory = {0};
    if (!find_directory(file, &directory, complaint)) {
        return false;
    }
    BHI_AUTO_FREE uint8_t *entries = malloc(directory.bytes + 1);
    BHI_AUTO_FREE struct bhi_zip_member *member = malloc(sizeof *member);
    if (!entries || !member) {
        return bhi_refuse_memory(complaint);
    }
    if (!file->read(file->user, entries, directory.offset, directory.bytes, complaint)) {
        return false;
    }
    uint64_t at = 0;
    for (uint64_t i = 0; i < directory.count; i++) {
        const uint64_t size = take_entry(file, directory.offset, entries + at, directory.bytes - at,
                                         member, complaint);
        if (!size || !visit(user, member, complaint)) {
            return false;
        }
        at += size;
    }
    return at == directory.bytes || bhi_refuse(complaint, "its directory is damaged");
}
