/* The page of a batch. */
#include "batch/report/report.h"

#include <string.h>

#include "batch/report/tally.h"
#include "tool/quantity.h"
#include "tool/report/page.h"
#include "tool/report/timeline.h"

enum { FAILURES = 1000, JOBS = 5000 };

/* To what an attempt's end is due. */
enum blame {
    BLAME_NONE,
    BLAME_GUILTY,
    BLAME_VICTIM,
    BLAME_INPUT,
    BLAME_ENVIRON,
    BLAME_CANCELLED,
    BLAME_CUT_OFF,
    BLAME_RUNS
};
static const struct bhi_timeline_kind kinds[] = {
    [BLAME_NONE] = {"READY", BHI_PAGE_GOOD, 10, 24, 24, false},
    [BLAME_GUILTY] = {"its own fault", BHI_PAGE_BAD, 0, 24, 17, false},
    [BLAME_VICTIM] = {"lost with another job", BHI_PAGE_LOST, 4, 24, 17, false},
    [BLAME_INPUT] = {"refused: bad input", BHI_PAGE_INPUT, 0, 20, 20, false},
    [BLAME_ENVIRON] = {"the environment failed", BHI_PAGE_WARN, 0, 10, 10, false},
    [BLAME_CANCELLED] = {"cancelled", BHI_PAGE_DIM, 8, 16, 16, false},
    [BLAME_CUT_OFF] = {"interrupted: the batch was killed", BHI_PAGE_DIM, 4, 20, 20, false},
    [BLAME_RUNS] = {"running", BHI_PAGE_PLAIN, 8, 16, 16, false}};

static enum blame blame_of(const struct bhi_attempt_record *record) {
    if (!record->ended_ns) {
        return record->runs ? BLAME_RUNS : BLAME_CUT_OFF;
    }
    if (record->verdict.status == BH_CANCELLED) {
        return BLAME_CANCELLED;
    }
    switch (bh_status_classify(record->verdict.status)) {
    case BH_STATUS_CLASS_NONE:
        return record->verdict.status == BH_OK ? BLAME_NONE : BLAME_ENVIRON;
    case BH_STATUS_CLASS_GUILTY:
        return record->guilty ? BLAME_GUILTY : BLAME_VICTIM;
    case BH_STATUS_CLASS_VICTIM:
        return BLAME_VICTIM;
    case BH_STATUS_CLASS_CALLER:
    case BH_STATUS_CLASS_INPUT:
        return record->verdict.blame == BH_BLAME_SUSPECTED ? BLAME_VICTIM : BLAME_INPUT;
    case BH_STATUS_CLASS_ENVIRON:
        break;
    }
    return BLAME_ENVIRON;
}

static enum bhi_page_tone tone_of_state(enum bhi_job_state state) {
    switch (state) {
    case BHI_JOB_DONE:
        return BHI_PAGE_GOOD;
    case BHI_JOB_FAILED:
    case BHI_JOB_QUARANTINED:
        return BHI_PAGE_BAD;
    case BHI_JOB_CANCELLED:
        return BHI_PAGE_WARN;
    default:
        return BHI_PAGE_DIM;
    }
}

/* -- the head -------------------------------------------------------------------------------- */

static void put_tiles(struct bhi_page *page, const struct bhi_tally *tally,
                      const struct bhi_report_run *run) {
    static const enum bhi_job_state order[] = {
        BHI_JOB_DONE,    BHI_JOB_FAILED,  BHI_JOB_QUARANTINED, BHI_JOB_CANCELLED,
        BHI_JOB_RUNNING, BHI_JOB_WAITING, BHI_JOB_SUBMITTED};
    char text[BHI_QUANTITY];
    bhi_page_tiles(page);
    bhi_page_tile(page, "jobs", bhi_quantity_count(text, tally->counts.total), BHI_PAGE_PLAIN);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        uint64_t count = tally->counts.of[order[i]];
        if (count || order[i] == BHI_JOB_DONE || order[i] == BHI_JOB_FAILED) {
            bhi_page_tile(page, bhi_job_state_name(order[i]), bhi_quantity_count(text, count),
                          count ? tone_of_state(order[i]) : BHI_PAGE_DIM);
        }
    }
    bhi_page_tile(page, "attempts", bhi_quantity_count(text, tally->attempts), BHI_PAGE_PLAIN);
    if (run->ran != tally->attempts) {
        bhi_page_tile(page, "attempts in this run", bhi_quantity_count(text, run->ran),
                      BHI_PAGE_PLAIN);
    }
    bhi_page_tile(page, run->ran != tally->attempts ? "this run took" : "took",
                  bhi_quantity_time(text, run->elapsed_ns), BHI_PAGE_PLAIN);
    bhi_quantity_rate(text, run->ran, run->elapsed_ns);
    text[strcspn(text, " ")] = 0;
    bhi_page_tile(page, run->ran != tally->attempts ? "a second in this run" : "attempts a second",
                  text, BHI_PAGE_PLAIN);
    bhi_page_tiles_end(page);
}

static void put_facts(struct bhi_page *page, struct bhi_queue *queue, const struct bhi_tally *tally,
                      const struct bhi_report_run *run) {
    char text[BHI_QUANTITY];
    bhi_page_facts(page);
    bhi_page_fact(page, "Jobs", run->jobs_path);
    bhi_page_fact(page, "State", run->state_folder);
    bhi_page_fact(page, "Batch", bhi_tally_batch(queue, run));
    bhi_page_fact(page, "Device", run->device && *run->device ? run->device : "the default");
    if (tally->shows_devices && tally->device_count) {
        char devices[1024];
        bhi_page_fact(page, "Attempts on each", bhi_tally_devices(tally, devices, sizeof devices));
    }
    if (run->source) {
        snprintf(text, sizeof text, "%zu", run->source->shard_count);
        bhi_page_fact(page, "Shards", text);
    } else {
        snprintf(text, sizeof text, "%u", run->streams);
        bhi_page_fact(page, "Streams", text);
        snprintf(text, sizeof text, "%d", run->exit_status);
        bhi_page_fact(page, "Exit status", text);
    }
    bhi_page_fact(page, "First attempt", bhi_quantity_date(text, tally->first_ns));
    bhi_page_fact(page, "Last end", bhi_quantity_date(text, tally->last_ns));
    bhi_page_facts_end(page);
}

/* -- the timeline ---------------------------------------------------------------------------- */

struct drawing {
    struct bhi_timeline timeline;
    size_t next; /* index of the next attempt */
    uint64_t first_ns;
    uint32_t refused_row; /* row of attempts that were refused before they had a stream */
    uint32_t last;        /* the last stream */
    bool shows_devices;
};

/* A stream's row; of several shards each stream has its own. */
static uint32_t row_of(const struct bhi_attempt_record *record) {
    return record->row_name ? record->row : record->stream;
}

static bool find_streams(void *user, const struct bhi_attempt_record *record) {
    struct drawing *drawing = user;
    const uint32_t row = row_of(record);
    char name[40];
    if (record->started && row > drawing->last) {
        drawing->last = row;
    }
    if (record->started && row + 1 < BHI_TIMELINE_ROWS) {
        snprintf(name, sizeof name, "stream %u", record->stream);
        bhi_timeline_row(&drawing->timeline, row, record->row_name ? record->row_name : name,
                         false);
    }
    return true;
}

/* Adds each attempt, so that the n-th bar is the n-th attempt. */
static bool add_attempt(void *user, const struct bhi_attempt_record *record) {
    struct drawing *drawing = user;
    uint32_t row = record->started ? row_of(record) : drawing->refused_row;
    if (row + 1 >= BHI_TIMELINE_ROWS && record->started) {
        row = BHI_TIMELINE_ROWS; /* no row */
    }
    if (!record->started) {
        bhi_timeline_row(&drawing->timeline, row, "on no stream", true);
    }
    bhi_timeline_add(&drawing->timeline, row, (uint8_t)blame_of(record), record->started_ns,
                     record->ended_ns, 0);
    return true;
}

static bool title_attempt(void *user, const struct bhi_attempt_record *record) {
    struct drawing *drawing = user;
    uint32_t row = record->started ? row_of(record) : drawing->refused_row;
    if (row >= BHI_TIMELINE_ROWS - (record->started ? 1u : 0u)) {
        return true; /* it has no bar */
    }
    size_t bar = drawing->next++;
    if (bar < drawing->timeline.count && drawing->timeline.bars[bar].wide) {
        char title[800], begin[BHI_QUANTITY], took[BHI_QUANTITY];
        const char *host = record->row_name && record->host ? record->host : "";
        const char *device = drawing->shows_devices ? record->verdict.device : "";
        uint64_t end = record->ended_ns ? record->ended_ns : record->started_ns;
        snprintf(title, sizeof title, "%s, attempt %u%s%s%s%s: %s, from %s, took %s", record->id,
                 record->attempt, *host ? " at " : "", host, *device ? " on " : "", device,
                 record->ended_ns ? bhi_tally_code(record->verdict.status)
                 : record->runs   ? "running"
                                  : "cut off",
                 bhi_quantity_time(begin, record->started_ns - drawing->first_ns),
                 bhi_quantity_time(took, end - record->started_ns));
        bhi_timeline_title(&drawing->timeline, bar, title);
    }
    return true;
}

/* Explains why there are more rows than --streams, and numbers without a row. */
static void put_kinds(struct bhi_page *page, uint32_t streams) {
    char text[200];
    snprintf(text, sizeof text,
             "There %s %u stream%s for each combination of device and memory that jobs ask for; a "
             "stream that ran nothing has no row.",
             streams == 1 ? "is" : "are", streams, streams == 1 ? "" : "s");
    bhi_page_paragraph(page, text);
}

static bool put_timeline(struct bhi_page *page, struct bhi_queue *queue,
                         const struct bhi_tally *tally, const struct bhi_report_run *run) {
    struct drawing drawing = {.first_ns = tally->first_ns, .shows_devices = tally->shows_devices};
    bhi_page_section(page, "Timeline");
    if (tally->attempts + tally->refused == 0) {
        bhi_page_paragraph(page, "Nothing was run.");
        return true;
    }
    bhi_timeline_init(&drawing.timeline, "attempt", kinds, sizeof kinds / sizeof kinds[0]);
    bool read = bhi_tally_each_attempt(queue, run, find_streams, &drawing);
    drawing.refused_row = (uint32_t)drawing.timeline.row_count;
    read = read && bhi_tally_each_attempt(queue, run, add_attempt, &drawing);
    bool good = bhi_timeline_layout(&drawing.timeline);
    if (good) {
        read = read && bhi_tally_each_attempt(queue, run, title_attempt, &drawing);
    }
    if (good && read && !run->source && drawing.last >= run->streams) {
        put_kinds(page, run->streams);
    }
    if (good && read) {
        bhi_timeline_draw(&drawing.timeline, page);
    } else if (read) {
        bhi_page_paragraph(page, "The timeline is missing: out of memory.");
    }
    bhi_timeline_fini(&drawing.timeline);
    return read;
}

/* -- attempts by verdict --------------------------------------------------------------------- */

static void put_verdict(struct bhi_page *page, const char *code, const char *text, uint64_t count,
                        uint64_t whole, enum bhi_page_tone tone) {
    bhi_page_row(page);
    bhi_page_cell_badge(page, code, tone);
    bhi_page_cell_number(page, count);
    bhi_page_cell(page, text);
    bhi_page_cell_bar(page, count, whole, tone);
    bhi_page_row_end(page);
}

static void put_verdicts(struct bhi_page *page, const struct bhi_tally *tally) {
    static const char *const headings[] = {"Verdict", "Attempts", "What it says", "Share"};
    if (tally->attempts + tally->refused == 0) {
        return;
    }
    const uint64_t whole = tally->attempts + tally->refused;
    bhi_page_section(page, "Attempts by verdict");
    bhi_page_table(page, "Attempts by verdict", headings, 4, 1u << 1);
    for (unsigned i = 0; i < BHI_TALLY_STATUSES; i++) {
        struct bhi_attempt_record record = {
            .ended_ns = 1, .guilty = true, .verdict = {.status = (bh_status)i}};
        if (tally->of[i]) {
            put_verdict(page, bhi_tally_code((bh_status)i), bh_status_text((bh_status)i),
                        tally->of[i], whole, kinds[blame_of(&record)].tone);
        }
    }
    if (tally->unknown) {
        put_verdict(page, "UNKNOWN", "a status that this version does not know", tally->unknown,
                    whole, BHI_PAGE_WARN);
    }
    if (tally->cut_off) {
        put_verdict(page, "cut off", kinds[BLAME_CUT_OFF].name, tally->cut_off, whole,
                    BHI_PAGE_DIM);
    }
    bhi_page_table_end(page);
}

/* -- shards ---------------------------------------------------------------------------------- */

static void put_shards(struct bhi_page *page, const struct bhi_report_source *source) {
    static const char *const headings[] = {"Shard",  "Machine", "State",     "Jobs", "Done",
                                           "Failed", "Running", "Last news", "Clock"};
    char date[BHI_QUANTITY], clock[BHI_TALLY_CLOCK];
    bhi_page_section(page, "Shards");
    for (size_t i = 0; i < source->note_count; i++) {
        bhi_page_paragraph(page, source->notes[i]);
    }
    bhi_page_table(page, "The parts of the batch, and the machine that had each last", headings, 9,
                   1u << 3 | 1u << 4 | 1u << 5 | 1u << 6);
    for (size_t i = 0; i < source->shard_count; i++) {
        const struct bhi_report_shard *shard = &source->shards[i];
        const uint64_t failed = shard->of[BHI_JOB_FAILED] + shard->of[BHI_JOB_QUARANTINED];
        bhi_page_row(page);
        bhi_page_cell_id(page, shard->name);
        bhi_page_cell_id(page, *shard->host ? shard->host : "-");
        bhi_page_cell_badge(page, shard->state,
                            failed                                    ? BHI_PAGE_BAD
                            : shard->of[BHI_JOB_DONE] == shard->total ? BHI_PAGE_GOOD
                                                                      : BHI_PAGE_DIM);
        bhi_page_cell_number(page, shard->total);
        bhi_page_cell_number(page, shard->of[BHI_JOB_DONE]);
        bhi_page_cell_number(page, failed);
        bhi_page_cell_number(page, shard->of[BHI_JOB_RUNNING]);
        bhi_page_cell(page, shard->last_ns ? bhi_quantity_date(date, shard->last_ns) : "-");
        bhi_page_cell(page, bhi_tally_clock(shard, clock));
        bhi_page_row_end(page);
    }
    bhi_page_table_end(page);
}

/* -- jobs ------------------------------------------------------------------------------------ */

struct listing {
    struct bhi_page *page;
    uint64_t first_ns;
    int rank; /* the rank of the failures that this pass lists */
    bool shows_devices, shows_shards;
    uint64_t shown;
};

/* Writes where it ran last. */
static void put_place(struct listing *listing, const struct bhi_job_record *record) {
    if (listing->shows_shards) {
        bhi_page_cell_id(listing->page, bhi_tally_shard(record));
        bhi_page_cell_id(listing->page, bhi_tally_host(record));
    }
    if (listing->shows_devices) {
        bhi_page_cell_id(listing->page, bhi_tally_device(record));
    }
}

enum { HEADINGS = 12 };
/* Appends the headings of put_place, and |last|. Returns the number of all. */
static size_t end_headings(const struct listing *listing, const char *headings[HEADINGS],
                           size_t count, const char *last) {
    if (listing->shows_shards) {
        headings[count++] = "Shard";
        headings[count++] = "Machine";
    }
    if (listing->shows_devices) {
        headings[count++] = "Device";
    }
    headings[count++] = last;
    return count;
}

/* Writes id, line, kernel and state; the caller continues the row. */
static void begin_row(struct listing *listing, const struct bhi_job_record *record) {
    char id[BHI_TALLY_ID], kernel[BHI_TALLY_KERNEL];
    listing->shown++;
    bhi_page_row(listing->page);
    bhi_page_cell_id(listing->page, bhi_tally_id(record, id));
    bhi_page_cell_number(listing->page, record->line);
    bhi_page_cell_id(listing->page, bhi_tally_kernel_short(record, kernel));
    bhi_page_cell_badge(listing->page, bhi_job_state_name(record->state),
                        tone_of_state(record->state));
}

static bool list_failure(void *user, const struct bhi_job_record *record) {
    struct listing *listing = user;
    char message[1536];
    if (!bhi_tally_is_failure(record->state) || bhi_tally_rank(record) != listing->rank) {
        return true;
    }
    if (listing->shown == FAILURES) {
        return false;
    }
    begin_row(listing, record);
    bhi_page_cell_code(listing->page, bhi_tally_code(record->status));
    bhi_page_cell_number(listing->page, record->attempts);
    bhi_page_cell_number(listing->page, record->guilty);
    bhi_page_cell_id(listing->page, *record->origin ? record->origin : "-");
    put_place(listing, record);
    bhi_page_cell(listing->page, bhi_tally_message(record, message, sizeof message));
    bhi_page_row_end(listing->page);
    return true;
}

static void put_rest(struct bhi_page *page, uint64_t all, uint64_t shown) {
    char number[BHI_QUANTITY], text[120];
    if (all <= shown) {
        return;
    }
    snprintf(text, sizeof text, "And %s more, which --json lists.",
             bhi_quantity_count(number, all - shown));
    bhi_page_paragraph(page, text);
}

static bool put_failures(struct bhi_page *page, struct bhi_queue *queue,
                         const struct bhi_tally *tally, const struct bhi_report_run *run) {
    const char *headings[HEADINGS] = {"Job",     "Line",  "Kernel", "State",
                                      "Verdict", "Tries", "Guilty", "Origin"};
    const struct bhi_queue_counts *counts = &tally->counts;
    uint64_t all = counts->of[BHI_JOB_FAILED] + counts->of[BHI_JOB_QUARANTINED] +
                   counts->of[BHI_JOB_CANCELLED];
    struct listing listing = {
        .page = page, .shows_devices = tally->shows_devices, .shows_shards = run->source};
    bhi_page_section(page, "What failed");
    if (!all) {
        bhi_page_paragraph(page, "Nothing.");
        return true;
    }
    bhi_page_table(page, "Jobs that failed, those whose own fault it was first", headings,
                   end_headings(&listing, headings, 8, "Message"), 1u << 1 | 1u << 5 | 1u << 6);
    bool read = true;
    for (; read && listing.rank < BHI_TALLY_RANKS; listing.rank++) {
        read = bhi_tally_each_job(queue, run, list_failure, &listing);
    }
    bhi_page_table_end(page);
    put_rest(page, all, listing.shown);
    return read;
}

static bool list_job(void *user, const struct bhi_job_record *record) {
    struct listing *listing = user;
    char text[BHI_QUANTITY];
    bool began = record->started_ns && record->started_ns >= listing->first_ns;
    if (listing->shown == JOBS) {
        return false;
    }
    begin_row(listing, record);
    bhi_page_cell_number(listing->page, record->attempts);
    bhi_page_cell(listing->page,
                  began ? bhi_quantity_time(text, record->started_ns - listing->first_ns) : "-");
    bhi_page_cell(listing->page, record->took_ns ? bhi_quantity_time(text, record->took_ns) : "-");
    put_place(listing, record);
    bhi_page_cell_code(listing->page, bhi_tally_code(record->status));
    bhi_page_row_end(listing->page);
    return true;
}

static bool put_jobs(struct bhi_page *page, struct bhi_queue *queue, const struct bhi_tally *tally,
                     const struct bhi_report_run *run) {
    const char *headings[HEADINGS] = {"Job", "Line", "Kernel", "State", "Tries", "Started", "Took"};
    char summary[120], number[BHI_QUANTITY], all[BHI_QUANTITY];
    struct listing listing = {.page = page,
                              .first_ns = tally->first_ns,
                              .shows_devices = tally->shows_devices,
                              .shows_shards = run->source};
    bhi_page_section(page, "All jobs");
    if (!tally->counts.total) {
        return true;
    }
    if (tally->counts.total > JOBS) {
        snprintf(summary, sizeof summary, "The first %s of %s", bhi_quantity_count(number, JOBS),
                 bhi_quantity_count(all, tally->counts.total));
    } else {
        snprintf(summary, sizeof summary, "Show all %s",
                 bhi_quantity_count(number, tally->counts.total));
    }
    bhi_page_between(page, "<details>\n<summary>", summary, "</summary>\n");
    bhi_page_table(page, "All jobs", headings, end_headings(&listing, headings, 7, "Verdict"),
                   1u << 1 | 1u << 4 | 1u << 5 | 1u << 6);
    bool read = bhi_tally_each_job(queue, run, list_job, &listing);
    bhi_page_table_end(page);
    fputs("</details>\n", page->out);
    return read;
}

/* -- the whole ------------------------------------------------------------------------------- */

bool bhi_report_html(const char *path, struct bhi_queue *queue, const struct bhi_report_run *run,
                     struct bhi_complaint *complaint) {
    struct bhi_tally tally;
    struct bhi_page page;
    char title[320];
    if (!bhi_tally_read(queue, run, &tally)) {
        return bhi_refuse(complaint, "the state in %s cannot be read", run->state_folder);
    }
    snprintf(title, sizeof title, "Batch %.255s", run->jobs_path);
    if (!bhi_page_open(&page, title)) {
        return bhi_refuse(complaint, "out of memory");
    }
    put_tiles(&page, &tally, run);
    put_facts(&page, queue, &tally, run);
    if (put_timeline(&page, queue, &tally, run)) {
        if (run->source) {
            put_shards(&page, run->source);
        }
        put_verdicts(&page, &tally);
        if (put_failures(&page, queue, &tally, run) && put_jobs(&page, queue, &tally, run)) {
            return bhi_page_write(&page, path, complaint);
        }
    }
    bhi_page_abandon(&page);
    return bhi_refuse(complaint, "the state in %s cannot be read", run->state_folder);
}
