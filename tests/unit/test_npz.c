/* The directory of a .npz: archives are made in memory, and broken. */
#include "formats/npz.h"

#include "harness.h"

#include <stdio.h>

static struct bhi_complaint complaint;
static uint8_t bytes[4096];
static size_t size; /* of the archive */

static void put(uint64_t value, int count) {
    for (int i = 0; i < count; i++) {
        bytes[size++] = (uint8_t)(value >> 8 * i);
    }
}

static void put_text(const char *text) {
    memcpy(bytes + size, text, strlen(text));
    size += strlen(text);
}

/* A member as it is in the archive, and what its entry says of it. */
struct member {
    const char *name, *data;
    uint16_t method, flags;
    uint16_t local_extra; /* bytes behind the name, in front of the data */
    bool is_64;           /* its numbers are in the extra field */
    uint64_t at;          /* of its header, once it is there */
};

static void put_member(struct member *member) {
    const uint64_t length = strlen(member->data);
    member->at = size;
    put_text("PK\3\4");
    put(20, 2), put(member->flags, 2), put(member->method, 2), put(0, 8);
    put(length, 4), put(length, 4);
    put(strlen(member->name), 2), put(member->local_extra, 2);
    put_text(member->name);
    size += member->local_extra;
    put_text(member->data);
}

static void put_entry(const struct member *member) {
    const uint64_t length = strlen(member->data), ones = UINT32_MAX;
    put_text("PK\1\2");
    put(20, 2), put(20, 2), put(member->flags, 2), put(member->method, 2), put(0, 8);
    put(member->is_64 ? ones : length, 4), put(member->is_64 ? ones : length, 4);
    put(strlen(member->name), 2), put(member->is_64 ? 4 + 2 + 4 + 24 : 0, 2), put(0, 2);
    put(0, 8), put(member->is_64 ? ones : member->at, 4);
    put_text(member->name);
    if (member->is_64) { /* behind a field that is of no account */
        put(7, 2), put(2, 2), put(0, 2);
        put(1, 2), put(24, 2), put(length, 8), put(length, 8), put(member->at, 8);
    }
}

static uint64_t directory, end; /* their offsets */

/* |is_64|: the end record has no numbers of its own. */
static void make(struct member *members, size_t count, bool is_64, const char *comment) {
    size = 0;
    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        put_member(&members[i]);
    }
    directory = size;
    for (size_t i = 0; i < count; i++) {
        put_entry(&members[i]);
    }
    const uint64_t length = size - directory;
    end = size;
    if (is_64) {
        put_text("PK\6\6");
        put(44, 8), put(45, 2), put(45, 2), put(0, 8);
        put(count, 8), put(count, 8), put(length, 8), put(directory, 8);
        put_text("PK\6\7");
        put(0, 4), put(end, 8), put(1, 4);
        end = size;
    }
    put_text("PK\5\6");
    put(0, 4), put(is_64 ? UINT16_MAX : count, 2), put(is_64 ? UINT16_MAX : count, 2);
    put(is_64 ? UINT32_MAX : length, 4), put(is_64 ? UINT32_MAX : directory, 4);
    put(strlen(comment), 2);
    put_text(comment);
}

static bool read_bytes(void *user, void *out, uint64_t offset, uint64_t count,
                       struct bhi_complaint *why) {
    (void)user, (void)why;
    BHT_TRUE(offset <= size && count <= size - offset); /* it never asks for what is not there */
    memcpy(out, bytes + offset, count);
    return true;
}

static const struct bhi_zip_member *find(const char *name) {
    static struct bhi_zip_member member;
    const struct bhi_readable file = {read_bytes, NULL, size};
    complaint.text[0] = 0;
    return bhi_npz_find(&file, name, &member, &complaint) ? &member : NULL;
}

static void expect_refused(const char *name, const char *why) {
    BHT_TRUE(!find(name));
    BHT_STR_HAS(complaint.text, why);
}

static void make_two(void) {
    struct member members[] = {{.name = "a.npy", .data = "first"},
                               {.name = "b.npy", .data = "second"}};
    make(members, 2, false, "");
}

/* The header of the data may have other extra fields than the entry, as numpy.savez makes them. */
TEST(an_array_is_where_its_headers_say) {
    struct member members[] = {{.name = "readme.txt", .data = "no array"},
                               {.name = "a.npy", .data = "first", .local_extra = 20},
                               {.name = "dir/b.npy", .data = "second", .is_64 = true},
                               {.name = ".npy", .data = "no name"}};
    static const char *const comments[] = {"", "PK\5\6 and more than 22 bytes of a comment"};
    for (int i = 0; i < 4; i++) {
        make(members, 4, i & 1, comments[i / 2]);
        static const char *const names[] = {"a", "dir/b", ""}, *const data[] = {"first", "second",
                                                                                "no name"};
        for (size_t k = 0; k < BHT_COUNT(names); k++) {
            const struct bhi_zip_member *found = find(names[k]);
            BHT_TRUE(found);
            BHT_EQ(found->bytes, strlen(data[k]));
            BHT_TRUE(!memcmp(bytes + found->offset, data[k], found->bytes));
        }
        expect_refused("readme.txt", "no such array in the file");
        expect_refused("b", "no such array in the file");
    }
    make(members, 0, false, "");
    expect_refused("a", "no such array in the file");
}

TEST(what_cannot_be_read_is_refused_with_the_remedy) {
    for (int i = 0; i < 3; i++) {
        struct member member = {.name = "a.npy",
                                .data = "packed",
                                .method = i == 0 ? 8 : 0,
                                .flags = (uint16_t[]){0, 1, 0x40}[i]};
        make(&member, 1, false, "");
        expect_refused("a", "numpy.savez writes it uncompressed");
    }
    struct member twice[] = {{.name = "a.npy", .data = "one"}, {.name = "a.npy", .data = "two"}};
    make(twice, 2, false, "");
    expect_refused("a", "it is there twice");
}

TEST(a_file_that_is_no_archive_is_named_by_its_kind) {
    static const struct {
        const char *text, *why;
    } rows[] = {{"", "not a .npz file"},
                {"nothing that anybody knows", "not a .npz file"},
                {"PK\3\4 and then it ends", "truncated: a ZIP archive ends with its directory"},
                {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        size = 0;
        put_text(rows[i].text);
        expect_refused("a", rows[i].why);
    }
    make_two();
    size--;
    expect_refused("a", "truncated: a ZIP archive ends with its directory");
}

static void set(uint64_t at, uint64_t value, int count) {
    const size_t was = size;
    size = at;
    put(value, count);
    size = was;
}

/* Each number that points somewhere is taken at its limit, and refused one beyond. */
TEST(a_directory_that_points_elsewhere_is_refused) {
    make_two();
    const uint64_t length = end - directory, entry = directory + length / 2;
    const struct {
        uint64_t at, value;
        int bytes;
        const char *why;
    } rows[] = {
        {end + 16, directory + 1, 4, "and ends at offset"},
        {end + 12, length + 1, 4, "and ends at offset"},
        {end + 12, length - 1, 4, "its directory is damaged"},
        {end + 10, 1, 2, "its directory is damaged"}, /* a second entry that does not count */
        {end + 10, 3, 2, "its directory is damaged"},
        {entry + 28, 6, 2, "its directory is damaged"}, /* its name is longer */
        {entry, 0, 4, "its directory is damaged"},
        {entry + 42, directory - 29, 4, "the directory begins at"},
        {entry + 42, 1, 4, "no header of a member"},
        {entry + 20, 7, 4, "its size is damaged"},
        {entry + 20, UINT32_MAX, 4, "its size is damaged"}, /* and there is no extra field */
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        make_two();
        set(rows[i].at, rows[i].value, rows[i].bytes);
        expect_refused("b", rows[i].why);
    }
    make_two();
    set(entry + 20, 7, 4), set(entry + 24, 7, 4);
    expect_refused("b", "its data reaches into the directory");
}

TEST(a_larger_end_record_that_is_not_there_is_refused) {
    for (int i = 0; i < 3; i++) {
        struct member member = {.name = "a.npy", .data = "data"};
        make(&member, 1, true, "");
        const uint64_t locator = end - 20;
        set(locator + 8, (uint64_t[]){locator - 55, locator - 57, UINT64_MAX}[i], 8);
        expect_refused("a",
                       (const char *[]){"its zip64 end record is given at", "no zip64 end record",
                                        "its zip64 end record is given at"}[i]);
    }
}

/* All or none: an extra field has those of the numbers that are missing, and all of them. */
TEST(an_extra_field_that_is_too_short_is_refused) {
    struct member member = {.name = "a.npy", .data = "data", .is_64 = true};
    static const struct {
        int at, value;
        const char *why;
    } rows[] = {
        {2, 99, "its size is damaged"}, /* the first field is longer than all */
        {6, 2, "its size is damaged"},  /* another kind */
        {8, 23, "its size is damaged"}, /* no third number */
        {8, 25, "its size is damaged"}, /* it is longer than all */
        {0, 7, NULL},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        make(&member, 1, false, "");
        set(directory + 46 + 5 + (uint64_t)rows[i].at, (uint64_t)rows[i].value, 2);
        if (rows[i].why) {
            expect_refused("a", rows[i].why);
        } else {
            BHT_TRUE(find("a"));
        }
    }
}

int main(int argc, char **argv) {
    return bht_main(argc, argv, NULL, 0);
}
