#include "batch/shards/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, MOST_HOLES = 20 };
_Static_assert(CHUNK > 2 * BHI_FEED_LINE, "a chunk has at least one whole line");

/* Takes a line that is damaged. */
static bool take_damage(struct bhi_reader *reader, const struct bhi_reader_sink *sink) {
    reader->holes = 0;
    return sink->take(sink->user, NULL, 0, reader->lines + 1);
}

/* Takes the whole lines at |offset|. Returns MORE if it took any. */
static enum bhi_reader_result take_lines(struct bhi_reader *reader, char *chunk, size_t length,
                                         const struct bhi_reader_sink *sink) {
    size_t at = 0;
    for (char *end; at < length; at = (size_t)(end - chunk) + 1) {
        char *line = chunk + at;
        end = memchr(line, '\n', length - at);
        if (!end) {
            break;
        }
        const size_t size = (size_t)(end - line);
        if (reader->skips || size >= BHI_FEED_LINE) {
            reader->skips = false;
            if (!take_damage(reader, sink)) {
                return BHI_READER_FAILED;
            }
        } else if (memchr(line, '\0', size)) {
            if (reader->holes < MOST_HOLES) {
                reader->holes += at == 0;
                break;
            }
            if (!take_damage(reader, sink)) {
                return BHI_READER_FAILED;
            }
        } else {
            reader->holes = 0;
            *end = '\0';
            if (!sink->take(sink->user, line, size, reader->lines + 1)) {
                return BHI_READER_FAILED;
            }
        }
        reader->lines++;
    }
    if (at == 0 && length >= BHI_FEED_LINE && !memchr(chunk, '\n', length)) {
        reader->skips = true;
        at = length;
    }
    reader->offset += at;
    return at ? BHI_READER_MORE : BHI_READER_NOTHING;
}

/* Returns false if the sink has had enough. */
static bool begin_anew(struct bhi_reader *reader, const char *head, size_t length,
                       const struct bhi_reader_sink *sink) {
    *reader = (struct bhi_reader){.head_length = length};
    memcpy(reader->head, head, length);
    return sink->anew(sink->user);
}

/* Is the feed another one than at the last time? |head|: its first bytes now. */
static bool is_other(const struct bhi_reader *reader, const char *head, size_t length,
                     uint64_t size) {
    const size_t common = length < reader->head_length ? length : reader->head_length;
    return size < reader->offset || length < reader->head_length ||
           memcmp(head, reader->head, common) != 0;
}

static ssize_t read_at(int fd, char *out, size_t size, uint64_t offset) {
    ssize_t length;
    do {
        length = pread(fd, out, size, (off_t)offset);
    } while (length < 0 && errno == EINTR);
    return length;
}

static enum bhi_reader_result read_open(struct bhi_reader *reader, int fd,
                                        const struct bhi_reader_sink *sink) {
    char head[BHI_READER_HEAD], chunk[CHUNK];
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return BHI_READER_NONE;
    }
    const ssize_t head_length = read_at(fd, head, sizeof head, 0);
    if (head_length <= 0) {
        return BHI_READER_NONE;
    }
    const uint64_t size = (uint64_t)status.st_size;
    if (is_other(reader, head, (size_t)head_length, size) &&
        !begin_anew(reader, head, (size_t)head_length, sink)) {
        return BHI_READER_FAILED;
    }
    if (reader->head_length < (size_t)head_length) { /* it was shorter than that */
        memcpy(reader->head, head, (size_t)head_length);
        reader->head_length = (size_t)head_length;
    }
    reader->size = size;
    reader->mtime_ns = status.st_mtim.tv_sec < 0 ? 0
                                                 : (uint64_t)status.st_mtim.tv_sec * 1000000000u +
                                                       (uint64_t)status.st_mtim.tv_nsec;
    const ssize_t length = read_at(fd, chunk, sizeof chunk, reader->offset);
    return length < 0    ? BHI_READER_NONE
           : length == 0 ? BHI_READER_NOTHING
                         : take_lines(reader, chunk, (size_t)length, sink);
}

enum bhi_reader_result bhi_reader_read(struct bhi_reader *reader, int folder, const char *name,
                                       const struct bhi_reader_sink *sink) {
    /* It is opened each time: only then does a network file system ask its server what is new. */
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return BHI_READER_NONE;
    }
    const enum bhi_reader_result result = read_open(reader, fd, sink);
    close(fd);
    return result;
}

enum bhi_reader_result bhi_reader_feed(struct bhi_reader *reader, const char *bytes, size_t size,
                                       const struct bhi_reader_sink *sink) {
    enum bhi_reader_result result = BHI_READER_MORE;
    char chunk[CHUNK];
    while (result == BHI_READER_MORE && reader->offset < size) {
        const size_t left = size - (size_t)reader->offset;
        const size_t length = left < sizeof chunk ? left : sizeof chunk;
        memcpy(chunk, bytes + reader->offset, length);
        result = take_lines(reader, chunk, length, sink);
    }
    return result;
}
