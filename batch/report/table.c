/* The table at the end of a batch, for a person. */
#include "batch/report/report.h"

#include <ctype.h>
#include <string.h>

#include "batch/report/tally.h"
#include "tool/quantity.h"
#include "tool/report/columns.h"
#include "tool/text.h"

enum { SHOWN = 50, ALIKE = 5 }; /* ALIKE: shown of failures with like messages */

enum column {
    JOB,
    LINE,
    KERNEL,
    STATE,
    VERDICT,
    TRIES,
    ORIGIN,
    SHARD,
    HOST,
    DEVICE,
    MESSAGE,
    COLUMN_COUNT
};
static const struct bhi_column columns[COLUMN_COUNT] = {
    [JOB] = {.name = "JOB", .most = 24},
    [LINE] = {.name = "LINE", .right = true},
    [KERNEL] = {.name = "KERNEL", .most = 20},
    [STATE] = {.name = "STATE", .toned = true},
    [VERDICT] = {.name = "VERDICT"},
    [TRIES] = {.name = "TRIES", .right = true},
    [ORIGIN] = {.name = "ORIGIN", .most = 20},
    [SHARD] = {.name = "SHARD"}, /* these three are not always there */
    [HOST] = {.name = "MACHINE", .most = 20},
    [DEVICE] = {.name = "DEVICE"},
    [MESSAGE] = {.name = "MESSAGE"}};

static enum bhi_tone tone_of(enum bhi_job_state state) {
    switch (state) {
    case BHI_JOB_DONE:
        return BHI_TONE_GOOD;
    case BHI_JOB_FAILED:
    case BHI_JOB_QUARANTINED:
        return BHI_TONE_BAD;
    case BHI_JOB_CANCELLED:
        return BHI_TONE_WARN;
    default:
        return BHI_TONE_PLAIN;
    }
}

/* Failures with the same message, but for numbers: the first few stand for all. */
struct kind {
    enum bhi_job_state state;
    bh_status status;
    char message[256], /* without its numbers */
        first[BHI_JOB_ID + 1];
    uint64_t shown, more;
};

/* Jobs that failed by themselves come first; others failed because of them, or were cancelled. */
struct gathering {
    struct bhi_columns table;
    struct bhi_column columns[COLUMN_COUNT]; /* of the table */
    bool shows_devices, shows_shards;
    int rank; /* the rank of the failures that this pass takes */
    uint64_t failures, alike;
    struct kind kinds[SHOWN];
    size_t kind_count;
};

/* The length of a number at |text| that is a word: "17", "0.5", "0x7f00"; 0: there is none. */
static size_t number_span(const char *text) {
    static const char digits[] = "0123456789";
    const bool is_hex = text[0] == '0' && text[1] == 'x';
    size_t length = is_hex ? 2 + strspn(text + 2, "0123456789abcdefABCDEF") : strspn(text, digits);
    if (!is_hex && length && text[length] == '.') {
        const size_t more = strspn(text + length + 1, digits);
        length += more ? 1 + more : 0;
    }
    return isalnum((unsigned char)text[length]) || text[length] == '_' ? 0 : length;
}

/* Copies |message| without the numbers in it, such as a worker's pid, by which failures that are
 * alike differ. Those in names stay. */
static void strip_numbers(const char *message, char *out, size_t capacity) {
    size_t used = 0;
    bool in_name = false; /* the last character may belong to one */
    while (*message && used + 1 < capacity) {
        const size_t length = in_name ? 0 : number_span(message);
        in_name = !length && (isalnum((unsigned char)*message) || strchr("_-./", *message));
        out[used++] = length ? '#' : *message;
        message += length ? length : 1;
    }
    out[used] = '\0';
}

/* Returns NULL if there is no room for another kind. */
static struct kind *kind_of(struct gathering *gathering, const struct bhi_job_record *record,
                            const char *message) {
    char id[BHI_TALLY_ID];
    struct kind new = {.state = record->state, .status = record->status};
    strip_numbers(message, new.message, sizeof new.message);
    snprintf(new.first, sizeof new.first, "%.255s", bhi_tally_id(record, id));
    for (size_t i = 0; i < gathering->kind_count; i++) {
        struct kind *kind = &gathering->kinds[i];
        if (kind->state == new.state && kind->status == new.status &&
            !strcmp(kind->message, new.message)) {
            return kind;
        }
    }
    if (gathering->kind_count == SHOWN) {
        return NULL;
    }
    gathering->kinds[gathering->kind_count] = new;
    return &gathering->kinds[gathering->kind_count++];
}

static bool is_shown(const struct gathering *gathering, size_t column) {
    return column == DEVICE                    ? gathering->shows_devices
           : column == SHARD || column == HOST ? gathering->shows_shards
                                               : true;
}

static bool gather(void *user, const struct bhi_job_record *record) {
    struct gathering *gathering = user;
    char line[24], attempts[24], message[1536], id[BHI_TALLY_ID], kernel[BHI_TALLY_KERNEL];
    if (!bhi_tally_is_failure(record->state) || bhi_tally_rank(record) != gathering->rank) {
        return true;
    }
    gathering->failures++;
    bhi_tally_message(record, message, sizeof message);
    struct kind *kind = kind_of(gathering, record, message);
    if (kind && kind->shown == ALIKE) {
        kind->more++;
        gathering->alike++;
        return true;
    }
    if (!kind || gathering->table.row_count == SHOWN) {
        return true;
    }
    kind->shown++;
    snprintf(line, sizeof line, "%zu", record->line);
    snprintf(attempts, sizeof attempts, "%u", record->attempts);
    const char *const all[COLUMN_COUNT] = {[JOB] = bhi_tally_id(record, id),
                                           [LINE] = line,
                                           [KERNEL] = bhi_tally_kernel_short(record, kernel),
                                           [STATE] = bhi_job_state_name(record->state),
                                           [VERDICT] = bhi_tally_code(record->status),
                                           [TRIES] = attempts,
                                           [ORIGIN] = *record->origin ? record->origin : "-",
                                           [SHARD] = bhi_tally_shard(record),
                                           [HOST] = bhi_tally_host(record),
                                           [DEVICE] = bhi_tally_device(record),
                                           [MESSAGE] = message};
    const char *cells[COLUMN_COUNT];
    for (size_t i = 0, used = 0; i < COLUMN_COUNT; i++) {
        if (is_shown(gathering, i)) {
            cells[used++] = all[i];
        }
    }
    bhi_columns_row(&gathering->table, cells, tone_of(record->state));
    return true;
}

static void print_count(FILE *stream, const struct bhi_queue_counts *counts,
                        enum bhi_job_state state, const char **separator) {
    char number[BHI_QUANTITY], text[80];
    uint64_t count = counts->of[state];
    if (count == 0 && state != BHI_JOB_DONE && state != BHI_JOB_FAILED) {
        return;
    }
    snprintf(text, sizeof text, "%s %s", bhi_quantity_count(number, count),
             bhi_job_state_name(state));
    fputs(*separator, stream);
    bhi_columns_tone(stream, count ? tone_of(state) : BHI_TONE_PLAIN, text);
    *separator = ", ";
}

/* Prints "10,000 jobs: 9,998 done, 1 failed, 1 quarantined" and how long it took. */
static void print_summary(FILE *stream, const struct bhi_tally *tally,
                          const struct bhi_report_run *run) {
    static const enum bhi_job_state order[] = {
        BHI_JOB_DONE,    BHI_JOB_FAILED,  BHI_JOB_QUARANTINED, BHI_JOB_CANCELLED,
        BHI_JOB_RUNNING, BHI_JOB_WAITING, BHI_JOB_SUBMITTED};
    const struct bhi_queue_counts *counts = &tally->counts;
    char number[BHI_QUANTITY], elapsed[BHI_QUANTITY], rate[BHI_QUANTITY];
    const char *separator = ": ";
    bhi_quantity_rate(rate, run->ran, run->elapsed_ns); /* "4.38 a second", or "-" */
    const int figures = (int)strcspn(rate, " ");

    fprintf(stream, "%s job%s", bhi_quantity_count(number, counts->total),
            counts->total == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        print_count(stream, counts, order[i], &separator);
    }
    if (run->ran == 0 && tally->attempts) {
        fprintf(stream, "\n0 attempts now, %s in all\n",
                bhi_quantity_count(number, tally->attempts));
        return;
    }
    const size_t parts = run->source ? run->source->shard_count : run->streams;
    fprintf(stream, "\n%s attempt%s in %s on %zu %s%s (%.*s%s%s)",
            bhi_quantity_count(number, run->ran), run->ran == 1 ? "" : "s",
            bhi_quantity_time(elapsed, run->elapsed_ns), parts, run->source ? "shard" : "stream",
            parts == 1 ? "" : "s", figures, rate, rate[figures] ? " attempts" : "", rate + figures);
    if (tally->attempts > run->ran) {
        fprintf(stream, ", %s in all", bhi_quantity_count(number, tally->attempts));
    }
    fputc('\n', stream);
    if (tally->shows_devices && tally->device_count) {
        char devices[1024];
        fprintf(stream, "attempts on each device: %s\n",
                bhi_tally_devices(tally, devices, sizeof devices));
    }
}

static void print_more(FILE *stream, const struct gathering *gathering) {
    char number[BHI_QUANTITY], first[BHI_JOB_ID + 1];
    uint64_t more = gathering->failures - gathering->alike - gathering->table.row_count;
    for (size_t i = 0; i < gathering->kind_count; i++) {
        const struct kind *kind = &gathering->kinds[i];
        if (kind->more) {
            fprintf(stream, "  and %s more like %s\n", bhi_quantity_count(number, kind->more),
                    bhi_text_clean(first, sizeof first, kind->first));
        }
    }
    if (more) {
        fprintf(stream, "  and %s more\n", bhi_quantity_count(number, more));
    }
    if (more || gathering->alike) {
        fputs("  --json lists all\n", stream);
    }
}

/* Prints a line for each shard, and what is odd. */
static bool print_shards(FILE *stream, const struct bhi_report_source *source) {
    static const struct bhi_column heads[] = {{.name = "SHARD"},
                                              {.name = "MACHINE", .most = 24},
                                              {.name = "STATE", .toned = true},
                                              {.name = "JOBS", .right = true},
                                              {.name = "DONE", .right = true},
                                              {.name = "FAILED", .right = true},
                                              {.name = "RUNNING", .right = true},
                                              {.name = "LAST NEWS"},
                                              {.name = "CLOCK"}};
    struct bhi_columns table;
    char numbers[4][BHI_QUANTITY], date[BHI_QUANTITY], clock[BHI_TALLY_CLOCK], text[1024];
    fputc('\n', stream);
    bhi_columns_init(&table, heads, sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < source->shard_count; i++) {
        const struct bhi_report_shard *shard = &source->shards[i];
        const uint64_t failed = shard->of[BHI_JOB_FAILED] + shard->of[BHI_JOB_QUARANTINED];
        const char *const cells[] = {shard->name,
                                     *shard->host ? shard->host : "-",
                                     shard->state,
                                     bhi_quantity_count(numbers[0], shard->total),
                                     bhi_quantity_count(numbers[1], shard->of[BHI_JOB_DONE]),
                                     bhi_quantity_count(numbers[2], failed),
                                     bhi_quantity_count(numbers[3], shard->of[BHI_JOB_RUNNING]),
                                     shard->last_ns ? bhi_quantity_date(date, shard->last_ns) : "-",
                                     bhi_tally_clock(shard, clock)};
        bhi_columns_row(&table, cells, failed ? BHI_TONE_BAD : BHI_TONE_PLAIN);
    }
    const bool good = bhi_columns_print(&table, stream, 2, bhi_columns_width(stream));
    bhi_columns_free(&table);
    for (size_t i = 0; i < source->note_count; i++) {
        fprintf(stream, "%snote: %s\n", i ? "" : "\n",
                bhi_text_clean(text, sizeof text, source->notes[i]));
    }
    return good;
}

/* Prints what to do next. Bad lines are not in the state folder: when they are corrected, --resume
 * alone runs them. */
static void print_next(FILE *stream, const struct bhi_tally *tally,
                       const struct bhi_report_run *run) {
    const uint64_t *of = tally->counts.of;
    const uint64_t failed = of[BHI_JOB_FAILED] + of[BHI_JOB_QUARANTINED];
    const char *again = failed > run->bad_count ? "--resume --retry-failed" : "--resume";
    char state[1024];
    if (of[BHI_JOB_WAITING] + of[BHI_JOB_SUBMITTED] + of[BHI_JOB_RUNNING] + of[BHI_JOB_CANCELLED]) {
        fprintf(stream, "\nNot finished: --resume continues %s",
                bhi_text_clean(state, sizeof state, run->state_folder));
        if (failed > run->bad_count) {
            fprintf(stream, "; %s also runs what failed again", again);
        }
        fputc('\n', stream);
    } else if (failed) {
        fprintf(stream, "\nNext: fix what failed, then repeat the command with %s\n", again);
    }
}

bool bhi_report_table(FILE *stream, struct bhi_queue *queue, const struct bhi_report_run *run) {
    struct bhi_tally tally;
    struct gathering gathering = {.failures = 0}; /* 27 KiB */
    if (!bhi_tally_read(queue, run, &tally)) {
        return false;
    }
    size_t count = 0;
    gathering.shows_devices = tally.shows_devices;
    gathering.shows_shards = run->source;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (is_shown(&gathering, i)) {
            gathering.columns[count++] = columns[i];
        }
    }
    bhi_columns_init(&gathering.table, gathering.columns, count);
    bool read = true;
    for (; read && tally.failures && gathering.rank < BHI_TALLY_RANKS; gathering.rank++) {
        read = bhi_tally_each_job(queue, run, gather, &gathering);
    }
    if (read) {
        print_summary(stream, &tally, run);
        read = !run->source || print_shards(stream, run->source);
        if (gathering.failures) {
            fputc('\n', stream);
            read =
                read && bhi_columns_print(&gathering.table, stream, 2, bhi_columns_width(stream));
            print_more(stream, &gathering);
        }
        if (!run->source) {
            print_next(stream, &tally, run);
        }
    }
    bhi_columns_free(&gathering.table);
    return read;
}
