#include "chaos/report/drawing.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "tool/quantity.h"
#include "tool/report/timeline.h"

enum { POINTS = 800, CURVE_WIDTH = 1600, CURVE_HEIGHT = 100 };

enum mark { READY, HIT, REACHED, LOST, REFUSED, AIMED, FAULT, MISSED, STALL };
static const struct bhi_timeline_kind kinds[] = {
    [READY] = {"READY", BHI_PAGE_GOOD, 13, 24, 24, false},
    [HIT] = {"poisoned: hit itself", BHI_PAGE_BAD, 6, 24, 13, false},
    [REACHED] = {"poisoned: reached by poison", BHI_PAGE_LOST, 9, 24, 13, false},
    [LOST] = {"lost: it never ended", BHI_PAGE_WARN, 6, 24, 20, false},
    [REFUSED] = {"call refused", BHI_PAGE_INPUT, 6, 18, 10, false},
    [AIMED] = {"fault aimed at the stream", BHI_PAGE_PLAIN, 0, 4, 4, true},
    [FAULT] = {"fault", BHI_PAGE_PLAIN, 0, 24, 24, false},
    [MISSED] = {"fault that hit nothing", BHI_PAGE_DIM, 4, 20, 20, false},
    [STALL] = {"the machine stood still", BHI_PAGE_DIM, 0, 24, 24, false}};

/* -- which stream an operation was on -------------------------------------------------------- */

struct place {
    uint64_t op, at_ns;
    uint32_t stream;
};

struct places {
    struct place *all; /* owned, by op */
    size_t count;
};

BHI_ORDER(compare_places, struct place, op)

static bool find_places(const struct bhi_history *history, struct places *places) {
    *places = (struct places){.all = calloc(history->count + 1, sizeof *places->all)};
    if (!places->all) {
        return false;
    }
    BHI_RECORDS_OF(record, history, BHI_RECORD_OP) {

        places->all[places->count++] = (struct place){record->op, record->at_ns, record->stream};
    }
    qsort(places->all, places->count, sizeof *places->all, compare_places);
    return true;
}

static const struct place *place_of(const struct places *places, uint64_t op) {
    struct place key = {.op = op};
    return bsearch(&key, places->all, places->count, sizeof key, compare_places);
}

/* -- bars ------------------------------------------------------------------------------------ */

struct rows {
    uint32_t streams;
    uint32_t of_fault[BHI_FAULT_KINDS]; /* UINT32_MAX: none */
    uint32_t stall;
};

static bool stood_still(const struct bhi_record *record) {
    return record->kind == BHI_RECORD_STALL && !record->stall.pid;
}

static void name_rows(struct bhi_timeline *timeline, const struct bhi_history *history,
                      struct rows *rows) {
    bool seen[BHI_FAULT_KINDS] = {false}, stalled = false;
    char name[32];
    uint32_t next;
    rows->streams =
        history->header.streams < BHI_CHAOS_STREAMS ? history->header.streams : BHI_CHAOS_STREAMS;
    for (next = 0; next < rows->streams; next++) {
        snprintf(name, sizeof name, "stream %u", next);
        bhi_timeline_row(timeline, next, name, false);
    }
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_FAULT) {
            seen[record->fault.kind] = true;
        }
        stalled |= stood_still(record);
    }
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        rows->of_fault[kind] = seen[kind] ? next : UINT32_MAX;
        if (seen[kind]) {
            bhi_timeline_row(timeline, next++, bhi_fault_name((enum bhi_fault_kind)kind), true);
        }
    }
    rows->stall = next;
    if (stalled) {
        bhi_timeline_row(timeline, next, "stalls", true);
    }
}

static void add_end(struct bhi_timeline *timeline, const struct bhi_record *record, size_t index,
                    const struct places *places, const struct rows *rows) {
    const struct place *place = place_of(places, record->op);
    if (!place || place->stream >= rows->streams) { /* the checker reports this */
        return;
    }
    if (record->end.lost) {
        bhi_timeline_add(timeline, place->stream, LOST, place->at_ns, record->at_ns, index);
        return;
    }
    enum mark mark = record->end.state == BH_EVENT_READY ? READY
                     : record->end.hops == 0             ? HIT
                                                         : REACHED;
    uint64_t to = record->end.ended_ns ? record->end.ended_ns : record->at_ns;
    /* An operation that never started was on no stream, so only its end is shown. */
    uint64_t from = record->end.started_ns ? record->end.started_ns : to;
    bhi_timeline_add(timeline, place->stream, (uint8_t)mark, from, to, index);
}

static void add_fault(struct bhi_timeline *timeline, const struct bhi_record *record, size_t index,
                      const struct rows *rows) {
    uint64_t to = record->at_ns + record->fault.lasts_ns;
    bhi_timeline_add(timeline, rows->of_fault[record->fault.kind],
                     record->fault.missed ? MISSED : FAULT, record->at_ns, to, index);
    if (!record->fault.missed && record->stream < rows->streams) {
        bhi_timeline_add(timeline, record->stream, AIMED, record->at_ns, to, index);
    }
}

static void add_records(struct bhi_timeline *timeline, const struct bhi_history *history,
                        const struct places *places, const struct rows *rows) {
    for (size_t i = 0; i < history->count; i++) {
        const struct bhi_record *record = &history->records[i];
        if (record->kind == BHI_RECORD_END) {
            add_end(timeline, record, i, places, rows);
        } else if (record->kind == BHI_RECORD_FAULT) {
            add_fault(timeline, record, i, rows);
        } else if (record->kind == BHI_RECORD_REFUSED && record->stream < rows->streams) {
            bhi_timeline_add(timeline, record->stream, REFUSED, record->at_ns, record->at_ns, i);
        } else if (stood_still(record)) {
            bhi_timeline_add(timeline, rows->stall, STALL,
                             record->at_ns - (record->stall.lasted_ns < record->at_ns
                                                  ? record->stall.lasted_ns
                                                  : record->at_ns),
                             record->at_ns, i);
        }
    }
}

/* -- what is told of a bar ------------------------------------------------------------------- */

static void describe_fault(const struct bhi_record *record, char *out, size_t capacity) {
    char number[BHI_QUANTITY];
    int used =
        snprintf(out, capacity, "fault %s: %s", bhi_quantity_count(number, record->fault.number),
                 bhi_fault_name(record->fault.kind));
    if (record->fault.missed) {
        snprintf(out + used, capacity - (size_t)used, ", hit nothing");
    } else if (record->fault.pid_count) {
        snprintf(out + used, capacity - (size_t)used, ", process %d%s", record->fault.pids[0],
                 record->fault.pid_count > 1 ? " and others" : "");
    }
}

static void describe_end(const struct bhi_record *record, char *out, size_t capacity) {
    char number[BHI_QUANTITY];
    int used = snprintf(out, capacity, "operation %s: ", bhi_quantity_count(number, record->op));
    char *rest = out + used;
    size_t room = capacity - (size_t)used;
    if (record->end.lost) {
        snprintf(rest, room, "it never ended");
    } else if (record->end.state == BH_EVENT_READY) {
        snprintf(rest, room, "READY");
    } else if (record->end.hops) {
        snprintf(rest, room, "poisoned, %s, %u dependencies from event %llu",
                 bh_status_name(record->end.status), record->end.hops,
                 (unsigned long long)record->end.origin);
    } else {
        snprintf(rest, room, "poisoned, %s, process %d", bh_status_name(record->end.status),
                 record->end.worker_pid);
    }
}

static void put_titles(struct bhi_timeline *timeline, const struct bhi_history *history) {
    for (size_t i = 0; i < timeline->count; i++) {
        const struct bhi_timeline_bar *bar = &timeline->bars[i];
        const struct bhi_record *record = &history->records[bar->tag];
        char what[160], title[320], from[BHI_QUANTITY], took[BHI_QUANTITY];
        if (!bar->wide) {
            continue;
        }
        if (record->kind == BHI_RECORD_FAULT) {
            describe_fault(record, what, sizeof what);
        } else if (record->kind == BHI_RECORD_END) {
            describe_end(record, what, sizeof what);
        } else {
            snprintf(what, sizeof what, "%s", kinds[bar->kind].name);
        }
        snprintf(title, sizeof title, "%s, from %s, took %s", what,
                 bhi_quantity_time(from, bar->from_ns),
                 bhi_quantity_time(took, bar->to_ns - bar->from_ns));
        bhi_timeline_title(timeline, i, title);
    }
}

/* -- memory and descriptors ------------------------------------------------------------------ */

static uint64_t memory_of(const struct bhi_record *record) {
    return record->sample.rss_bytes;
}

static uint64_t descriptors_of(const struct bhi_record *record) {
    return record->sample.descriptors;
}

static uint64_t processes_of(const struct bhi_record *record) {
    return record->sample.processes;
}

/* The scale begins at 0, so that a flat curve looks flat. */
static void put_curve(struct bhi_page *page, const struct bhi_history *history,
                      const struct bhi_timeline *timeline, size_t samples, const char *name,
                      uint64_t (*value_of)(const struct bhi_record *record),
                      const char *(*text_of)(char out[BHI_QUANTITY], uint64_t value)) {
    size_t stride = samples / POINTS + 1, seen = 0;
    uint64_t least = UINT64_MAX, most = 0;
    char low[BHI_QUANTITY], high[BHI_QUANTITY];
    BHI_RECORDS_OF(record, history, BHI_RECORD_SAMPLE) {
        uint64_t value = value_of(record);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    fprintf(page->out,
            "<div class=\"row tall\"><span>%s</span>"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s, %s to %s\">"
            "<title>%s, %s to %s</title><polyline class=\"lost\" points=\"",
            name, CURVE_WIDTH, CURVE_HEIGHT, name, text_of(low, least), text_of(high, most), name,
            low, high);
    BHI_RECORDS(record, history) {
        if (record->kind != BHI_RECORD_SAMPLE || seen++ % stride) {
            continue;
        }
        double x = (double)bhi_timeline_place(timeline, record->at_ns) /
                   (double)timeline->shown_ns * CURVE_WIDTH;
        double y = most ? (double)value_of(record) / (double)most * 0.9 * CURVE_HEIGHT : 0;
        fprintf(page->out, "%.4g,%.4g ", x, CURVE_HEIGHT - y);
    }
    fprintf(page->out, "\" /></svg></div>\n<p class=\"note\">%s: %s", name, low);
    if (least != most) {
        fprintf(page->out, " to %s", high);
    }
    fputs("</p>\n", page->out);
}

static void put_curves(struct bhi_page *page, const struct bhi_history *history,
                       const struct bhi_timeline *timeline) {
    size_t samples = 0;
    BHI_RECORDS_OF(record, history, BHI_RECORD_SAMPLE) {
        samples++;
    }
    if (samples < 2) {
        return;
    }
    bhi_page_section(page, "What the process had");
    fputs("<figure>\n", page->out);
    put_curve(page, history, timeline, samples, "memory", memory_of, bhi_quantity_bytes);
    put_curve(page, history, timeline, samples, "descriptors", descriptors_of, bhi_quantity_count);
    put_curve(page, history, timeline, samples, "processes", processes_of, bhi_quantity_count);
    fputs("<figcaption>Over the same time as above, each from 0 up; processes are those below "
          "it.</figcaption>\n</figure>\n",
          page->out);
}

void bhi_drawing_put(struct bhi_page *page, const struct bhi_history *history) {
    struct bhi_timeline timeline;
    struct places places;
    struct rows rows;
    bhi_timeline_init(&timeline, "mark", kinds, sizeof kinds / sizeof kinds[0]);
    bool good = find_places(history, &places);
    if (good) {
        name_rows(&timeline, history, &rows);
        add_records(&timeline, history, &places, &rows);
        good = bhi_timeline_layout(&timeline);
    }
    if (good) {
        put_titles(&timeline, history);
        bhi_timeline_draw(&timeline, page);
        put_curves(page, history, &timeline);
    } else {
        bhi_page_paragraph(page, "The timeline is missing: out of memory.");
    }
    free(places.all);
    bhi_timeline_fini(&timeline);
}
