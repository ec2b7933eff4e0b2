#include "batch/shards/line.h"

#include <string.h>

#include "batch/job/job.h"
#include "batch/journal/feed.h"

enum { MOST_ATTEMPTS = 1000000, MOST_STATUS = 1023, MOST_STREAM = 65535 };

static const struct {
    const char *key;
    size_t offset;
    int64_t least, most;
} numbers[] = {
#define NUMBER(key, field, least, most) {key, offsetof(struct bhi_feed_line, field), least, most}
    NUMBER("feed", feed, 1, INT64_MAX),
    NUMBER("pid", pid, 1, INT32_MAX),
    NUMBER("began", began_ns, 0, INT64_MAX),
    NUMBER("end", end_ns, 0, INT64_MAX),
    NUMBER("job", job, 1, UINT32_MAX),
    NUMBER("line", line, 0, INT64_MAX),
    NUMBER("state", state, 0, BHI_JOB_STATES - 1),
    NUMBER("attempts", attempts, 0, UINT32_MAX),
    NUMBER("guilty", guilty, 0, UINT32_MAX),
    NUMBER("verdict", verdict, 0, MOST_ATTEMPTS),
    NUMBER("origin", origin, 1, UINT32_MAX),
    NUMBER("at", at_ns, 0, INT64_MAX),
    NUMBER("attempt", attempt, 1, MOST_ATTEMPTS),
    NUMBER("given", given, 0, 1),
    NUMBER("stream", stream, 0, MOST_STREAM),
    NUMBER("started", started_ns, 0, INT64_MAX),
    NUMBER("ended", ended_ns, 0, INT64_MAX),
    NUMBER("blamed", blamed, 0, 1),
    NUMBER("status", status, 0, MOST_STATUS),
    NUMBER("executed", executed, BH_EXECUTED_NO, BH_EXECUTED_YES),
    NUMBER("signal", signal, 0, 255),
    NUMBER("exit", exit_code, INT32_MIN, INT32_MAX),
    NUMBER("worker", worker, 0, INT32_MAX),
    NUMBER("limit", limit, INT64_MIN + 1, INT64_MAX),
    NUMBER("blame", blame, BH_BLAME_NONE, BH_BLAME_CERTAIN),
};

static const struct {
    const char *key;
    size_t offset, most; /* bytes */
} texts[] = {
#define TEXT(key, field, most) {key, offsetof(struct bhi_feed_line, field), most}
    TEXT("batch", batch, 32),      TEXT("host", host, BHI_HOST_NAME - 1),
    TEXT("id", id, BHI_JOB_ID),    TEXT("kernel_name", kernel_name, 63),
    TEXT("message", message, 511), TEXT("on", on, 47),
};

static bool take_numbers(struct bhi_feed_line *line) {
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const json_t *value = json_object_get(line->object, numbers[i].key);
        int64_t number = BHI_FEED_ABSENT;
        if (value) {
            number = json_integer_value(value);
            if (!json_is_integer(value) || number < numbers[i].least || number > numbers[i].most) {
                return false;
            }
        }
        memcpy((char *)line + numbers[i].offset, &number, sizeof number);
    }
    return true;
}

/* jansson refuses NUL bytes in strings. */
static bool take_texts(struct bhi_feed_line *line) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const json_t *value = json_object_get(line->object, texts[i].key);
        const char *text = json_string_value(value);
        if (value && (!text || json_string_length(value) > texts[i].most)) {
            return false;
        }
        memcpy((char *)line + texts[i].offset, &text, sizeof text);
    }
    return true;
}

static bool take_kind(struct bhi_feed_line *line) {
    if (line->id && !*line->id) {
        return false; /* whatever a later version may say of it */
    }
    if (line->feed != BHI_FEED_ABSENT) {
        line->kind = BHI_FEED_HEAD;
        return line->batch && line->host && line->pid != BHI_FEED_ABSENT &&
               line->began_ns != BHI_FEED_ABSENT && bhi_host_span(line->host) == strlen(line->host);
    }
    if (line->job != BHI_FEED_ABSENT) {
        line->kind = BHI_FEED_JOB;
        return !line->id || line->state != BHI_FEED_ABSENT;
    }
    line->kind = line->end_ns != BHI_FEED_ABSENT ? BHI_FEED_END : BHI_FEED_OTHER;
    return true;
}

bool bhi_feed_line_parse(const char *bytes, size_t length, struct bhi_feed_line *out_line) {
    *out_line = (struct bhi_feed_line){.kind = BHI_FEED_OTHER};
    out_line->object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(out_line->object) && take_numbers(out_line) && take_texts(out_line) &&
        take_kind(out_line)) {
        return true;
    }
    bhi_feed_line_free(out_line);
    return false;
}

void bhi_feed_line_free(struct bhi_feed_line *line) {
    json_decref(line->object);
    *line = (struct bhi_feed_line){.kind = BHI_FEED_OTHER};
}

uint64_t bhi_feed_line_time(const struct bhi_feed_line *line) {
    const int64_t times[] = {line->began_ns, line->end_ns, line->at_ns, line->started_ns,
                             line->ended_ns};
    int64_t latest = 0;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        latest = times[i] > latest ? times[i] : latest;
    }
    return (uint64_t)latest;
}
