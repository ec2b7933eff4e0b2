/* Any bytes as the feed of a shard: each line is taken or damaged, nothing that is taken leaves its
 * bounds, and the records can be read again. */
#include "fuzz.h"

#include <string.h>

#include "batch/shards/reader.h"
#include "batch/shards/store.h"

struct intake {
    struct bhi_store *store;
    uint64_t lines;
};

static bool anew(void *user) {
    (void)user;
    return true;
}

static bool take(void *user, const char *text, size_t length, uint64_t number) {
    struct intake *intake = user;
    struct bhi_feed_line line;
    bool fits;
    FUZZ_CHECK(number == ++intake->lines);
    if (!text) {
        return true;
    }
    FUZZ_CHECK(length < BHI_FEED_LINE && strlen(text) == length);
    if (!bhi_feed_line_parse(text, length, &line)) {
        FUZZ_CHECK(!line.object);
        return true;
    }
    FUZZ_CHECK(!line.id || (*line.id && strlen(line.id) <= BHI_JOB_ID));
    FUZZ_CHECK(!line.message || strlen(line.message) < 512);
    FUZZ_CHECK(!line.host || strlen(line.host) < BHI_HOST_NAME);
    FUZZ_CHECK(line.kind != BHI_FEED_HEAD || (line.host && line.batch && line.pid > 0));
    FUZZ_CHECK(line.kind != BHI_FEED_JOB || (line.job > 0 && line.job <= UINT32_MAX));
    FUZZ_CHECK(bhi_feed_line_time(&line) <= INT64_MAX);
    if (line.kind == BHI_FEED_JOB) {
        FUZZ_CHECK(bhi_store_take(intake->store, 0, &line, text, &fits));
    }
    bhi_feed_line_free(&line);
    return true;
}

static bool check_job(void *user, const struct bhi_job_record *record) {
    uint64_t *jobs = user;
    FUZZ_CHECK(*record->id && (unsigned)record->state < BHI_JOB_STATES);
    FUZZ_CHECK(record->origin && record->message && record->text && record->host);
    FUZZ_CHECK(!strcmp(record->shard, "0000"));
    (*jobs)++;
    return true;
}

static bool check_attempt(void *user, const struct bhi_attempt_record *record) {
    uint64_t *attempts = user;
    FUZZ_CHECK(*record->id && record->attempt > 0 && record->row_name);
    FUZZ_CHECK(record->verdict.blame <= BH_BLAME_CERTAIN);
    (*attempts)++;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct bhi_store *store; /* to open one takes longer than all else */
    struct bhi_complaint complaint;
    struct bhi_reader reader = {.offset = 0};
    uint64_t of[BHI_JOB_STATES], counted = 0, jobs = 0, attempts = 0;
    if (!store) {
        store = bhi_store_open(&complaint);
        FUZZ_CHECK(store && bhi_store_name(store, 0, "0000"));
    }
    struct intake intake = {.store = store};
    const struct bhi_reader_sink sink = {anew, take, &intake};
    FUZZ_CHECK(bhi_store_begin(store) && bhi_store_forget(store, 0));
    FUZZ_CHECK(bhi_reader_feed(&reader, (const char *)data, size, &sink) != BHI_READER_FAILED);
    FUZZ_CHECK(reader.offset <= size && reader.lines == intake.lines);
    FUZZ_CHECK(bhi_store_count(store, 0, of));
    FUZZ_CHECK(bhi_store_make_rows(store, 4));
    FUZZ_CHECK(bhi_store_each_job(store, check_job, &jobs));
    FUZZ_CHECK(bhi_store_each_attempt(store, check_attempt, &attempts));
    FUZZ_CHECK(bhi_store_end(store));
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        counted += of[i];
    }
    FUZZ_CHECK(counted == jobs && jobs <= reader.lines && attempts <= reader.lines);
    return 0;
}
