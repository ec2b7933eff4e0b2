#include "batch/journal/header.h"

#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"
#include "batch/journal/schema.h"

bool bhi_header_check(const char *path, int64_t application, int64_t version,
                      struct bhi_complaint *complaint) {
    if (application != BHI_JOURNAL_APPLICATION) {
        return bhi_refuse(
            complaint, "%.600s is another program's database: give another folder (--state)", path);
    }
    if (version != BHI_JOURNAL_VERSION && version != BHI_JOURNAL_VERSION_BEFORE) {
        return bhi_refuse(
            complaint,
            "%.600s was made by another version of bulkhead: it has format %lld, this one reads "
            "%d and %d; continue with that version, or give another folder (--state)",
            path, (long long)version, BHI_JOURNAL_VERSION_BEFORE, BHI_JOURNAL_VERSION);
    }
    return true;
}

static uint32_t load_be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Offsets in the header of the database's file. */
enum { MAGIC = 16, SCHEMA = 40, VERSION = 60, APPLICATION = 68, HEADER = 100 };

static ssize_t read_header(int folder, uint8_t header[HEADER]) {
    BHI_AUTO_FD fd =
        openat(folder, BHI_JOURNAL_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 ? pread(fd, header, HEADER, 0) : 0;
}

bool bhi_header_has_tables(int folder) {
    uint8_t header[HEADER];
    return read_header(folder, header) == HEADER && load_be32(header + SCHEMA);
}

bool bhi_header_complain_foreign(const char *path, struct bhi_complaint *complaint) {
    return bhi_refuse(complaint,
                      "%.600s is not the database of a batch, or it is damaged: move it away, "
                      "or give another folder (--state)",
                      path);
}

bool bhi_header_peek(int folder, const char *path, struct bhi_complaint *complaint) {
    uint8_t header[HEADER];
    const ssize_t length = read_header(folder, header);
    if (length <= 0) { /* empty; or SQLite reports what is wrong with it */
        return true;
    }
    /* The power was lost while it was made: SQLite knows whether it can be used. */
    if (!header[0]) {
        return true;
    }
    if (memcmp(header, "SQLite format 3", length < MAGIC ? (size_t)length : MAGIC) != 0) {
        return bhi_header_complain_foreign(path, complaint);
    }
    if (length < HEADER || !load_be32(header + SCHEMA)) { /* no tables yet */
        return true;
    }
    return bhi_header_check(path, load_be32(header + APPLICATION), load_be32(header + VERSION),
                            complaint);
}
