#include "batch/journal/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "batch/journal/note.h"
#include "tool/clock.h"

#define FEED_NEW "feed.new"

/* A line has at most four texts, of which each byte may be escaped. */
enum { MOST_TEXT = 512 };
_Static_assert(8 * MOST_TEXT + 2 * BHI_JOB_ID + 3 * BHI_FEED_KERNEL + 1024 < BHI_FEED_LINE,
               "every line is short enough");

static const uint64_t retry_after_ns = 5000000000u;

/* -- text ------------------------------------------------------------------------------------ */

static void flush(struct bhi_feed *feed) {
    size_t done = 0;
    while (!feed->failed && done < feed->used) {
        const ssize_t wrote = write(feed->fd, feed->text + done, feed->used - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        feed->failed = wrote <= 0;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    feed->used = 0;
}

/* Lines are short (BHI_FEED_LINE), so there is room for the next one after this. */
static void begin_line(struct bhi_feed *feed) {
    if (feed->used + BHI_FEED_LINE > sizeof feed->text) {
        flush(feed);
    }
    feed->text[feed->used++] = '{';
}

static void end_line(struct bhi_feed *feed) {
    feed->text[feed->used++] = '}';
    feed->text[feed->used++] = '\n';
}

static void put_key(struct bhi_feed *feed, const char *key) {
    feed->used += (size_t)sprintf(feed->text + feed->used,
                                  "%s\"%s\":", feed->text[feed->used - 1] == '{' ? "" : ",", key);
}

static void put_number(struct bhi_feed *feed, const char *key, int64_t number) {
    put_key(feed, key);
    feed->used += (size_t)sprintf(feed->text + feed->used, "%lld", (long long)number);
}

static void put_string(struct bhi_feed *feed, const char *key, const char *text) {
    put_key(feed, key);
    char *out = feed->text + feed->used;
    *out++ = '"';
    for (const char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\') {
            *out++ = '\\';
        }
        *out++ = *at;
    }
    *out++ = '"';
    feed->used = (size_t)(out - feed->text);
}

/* Writes what may be shown of |text|; nothing for "". */
static void put_text(struct bhi_feed *feed, const char *key, const char *text) {
    char clean[MOST_TEXT];
    bhi_text_line(clean, sizeof clean, text, strlen(text));
    if (*clean) {
        put_string(feed, key, clean);
    }
}

/* An id is written as it is, so that it can be asked for: the queue refuses one with control
 * characters. */
static void put_id(struct bhi_feed *feed, const char *id) {
    if (strlen(id) > BHI_JOB_ID) { /* somebody has changed the database */
        put_text(feed, "id", id);
    } else {
        put_string(feed, "id", id);
    }
}

/* -- a job's text ---------------------------------------------------------------------------- */

/* Returns the length of the character of a JSON string at |at|, which may be an escape. */
static size_t character(const char *at) {
    if (*at == '\\') {
        return at[1] == 'u' ? 6 : 2;
    }
    const unsigned char first = (unsigned char)*at;
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

/* Returns what follows the string that begins at |at|, a quotation mark. */
static const char *after_string(const char *at) {
    for (at++; *at && *at != '"'; at += *at == '\\' && at[1] ? 2 : 1) {
        continue;
    }
    return *at ? at + 1 : at;
}

/* Copies the value of |key| in the object |text|, if it is a string, as it is written there. The
 * queue has checked and printed the object: it is valid and compact. To parse it again would take
 * longer than all else. */
static void copy_value(struct bhi_feed *feed, const char *text, const char *key) {
    const size_t length = strlen(key);
    int depth = 0;
    for (const char *at = text; *at;) {
        if (*at != '"') {
            depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
            at++;
            continue;
        }
        const char *name = at + 1, *after = after_string(at);
        at = after;
        if (depth != 1 || *after != ':' || (size_t)(after - name) != length + 1 ||
            memcmp(name, key, length) != 0) {
            continue;
        }
        if (after[1] != '"') {
            return;
        }
        put_key(feed, key);
        const char *value = after + 2;
        size_t used = 0;
        for (size_t next; value[used] && value[used] != '"'; used += next) {
            next = character(value + used);
            if (used + next > BHI_FEED_KERNEL) {
                break;
            }
        }
        feed->used += (size_t)sprintf(feed->text + feed->used, "\"%.*s\"", (int)used, value);
        return;
    }
}

/* -- the whole ------------------------------------------------------------------------------- */

static const char *text_of(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static void put_head(sqlite3_stmt *row, struct bhi_feed *feed) {
    begin_line(feed);
    put_number(feed, "feed", BHI_FEED_FORMAT);
    put_text(feed, "batch", text_of(row, 0));
    put_text(feed, "host", feed->host);
    put_number(feed, "pid", (int64_t)getpid());
    put_number(feed, "began", (int64_t)bhi_clock_calendar_ns());
    end_line(feed);
}

static void put_job(sqlite3_stmt *row, struct bhi_feed *feed) {
    static const char *const names[] = {"attempts", "guilty", "verdict", "origin", "at"};
    const char *text = text_of(row, 3);
    begin_line(feed);
    put_number(feed, "job", sqlite3_column_int64(row, 0));
    put_id(feed, text_of(row, 1));
    put_number(feed, "line", sqlite3_column_int64(row, 2));
    copy_value(feed, text, "kernel");
    copy_value(feed, text, "entry");
    copy_value(feed, text, "eval");
    copy_value(feed, text, "device");
    put_number(feed, "state", sqlite3_column_int64(row, 4));
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        const int64_t number = sqlite3_column_int64(row, 5 + i);
        if (number) {
            put_number(feed, names[i], number);
        }
    }
    end_line(feed);
}

/* What an attempt's end says; the same in a row and in a note. */
struct end {
    bool guilty;
    int64_t status, executed, signal, exit_code, worker_pid, reached, blame;
    const char *kernel_name, *message, *device;
};

static void put_end(struct bhi_feed *feed, const struct end *end) {
    put_number(feed, "blamed", end->guilty);
    put_number(feed, "status", end->status);
    put_number(feed, "executed", end->executed);
    put_number(feed, "signal", end->signal);
    put_number(feed, "exit", end->exit_code);
    put_number(feed, "worker", end->worker_pid);
    put_number(feed, "limit", end->reached);
    put_number(feed, "blame", end->blame);
    put_text(feed, "kernel_name", end->kernel_name);
    put_text(feed, "message", end->message);
    put_text(feed, "on", end->device);
}

static void put_attempt(sqlite3_stmt *row, struct bhi_feed *feed) {
    const struct end end = {.guilty = sqlite3_column_int64(row, 6) != 0,
                            .status = sqlite3_column_int64(row, 7),
                            .executed = sqlite3_column_int64(row, 8),
                            .signal = sqlite3_column_int64(row, 9),
                            .exit_code = sqlite3_column_int64(row, 10),
                            .worker_pid = sqlite3_column_int64(row, 11),
                            .reached = sqlite3_column_int64(row, 12),
                            .kernel_name = text_of(row, 13),
                            .message = text_of(row, 14),
                            .blame = sqlite3_column_int64(row, 15),
                            .device = text_of(row, 16)};
    begin_line(feed);
    put_number(feed, "job", sqlite3_column_int64(row, 0));
    put_number(feed, "attempt", sqlite3_column_int64(row, 1));
    put_number(feed, "given", sqlite3_column_int64(row, 2));
    put_number(feed, "stream", sqlite3_column_int64(row, 3));
    put_number(feed, "started", sqlite3_column_int64(row, 4));
    put_text(feed, "host", text_of(row, 17));
    if (sqlite3_column_int64(row, 5)) {
        put_number(feed, "ended", sqlite3_column_int64(row, 5));
        put_end(feed, &end);
    }
    end_line(feed);
}

static bool put_rows(struct bhi_feed *feed, sqlite3 *db, const char *sql,
                     void (*put)(sqlite3_stmt *row, struct bhi_feed *feed)) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        put(statement, feed);
        rc = feed->failed ? SQLITE_IOERR : SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE;
}

static bool put_all(struct bhi_feed *feed, sqlite3 *db) {
    return put_rows(feed, db, "SELECT id FROM batch", put_head) &&
           put_rows(feed, db,
                    "SELECT number, id, line, text, state, attempts, guilty, verdict, origin, "
                    "ended_ns FROM job JOIN progress ON progress.job = number ORDER BY number",
                    put_job) &&
           put_rows(feed, db,
                    "SELECT job, attempt, started, stream, started_ns, ended_ns, guilty, status, "
                    "executed, signal, exit_code, worker_pid, reached, kernel_name, message, "
                    "blame, device, host FROM attempt ORDER BY job, attempt",
                    put_attempt);
}

void bhi_feed_init(struct bhi_feed *feed) {
    feed->fd = -1;
    bhi_host_machine(feed->host);
}

static void become_stale(struct bhi_feed *feed) {
    if (feed->fd >= 0) {
        close(feed->fd);
    }
    feed->fd = -1;
    feed->used = 0;
    feed->stale = true;
    feed->retry_ns = bhi_clock_ns() + retry_after_ns;
}

void bhi_feed_rewrite(struct bhi_feed *feed, sqlite3 *db, int folder) {
    if (feed->fd >= 0) {
        close(feed->fd);
    }
    feed->begun = true;
    feed->failed = false;
    feed->used = 0;
    (void)unlinkat(folder, FEED_NEW, 0); /* of a process that was killed */
    feed->fd = openat(folder, FEED_NEW, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = feed->fd >= 0 && put_all(feed, db);
    flush(feed);
    good = good && !feed->failed && renameat(folder, FEED_NEW, folder, BHI_FEED_FILE) == 0;
    feed->stale = false;
    if (!good) {
        (void)unlinkat(folder, FEED_NEW, 0);
        become_stale(feed);
    }
}

/* -- what comes to it ------------------------------------------------------------------------ */

static void put_note(struct bhi_feed *feed, const struct bhi_note *note) {
    const struct bhi_attempt *attempt = note->attempt;
    if (note->kind == BHI_NOTE_SEALED) {
        return; /* it is RUNNING until its outputs are in place */
    }
    begin_line(feed);
    put_number(feed, "job", (int64_t)note->job);
    if (note->kind == BHI_NOTE_STARTED) {
        put_number(feed, "attempt", note->tried);
        put_number(feed, "given", 1);
        put_number(feed, "stream", note->stream);
        put_number(feed, "started", (int64_t)note->time_ns);
        put_text(feed, "host", feed->host);
        put_number(feed, "state", BHI_JOB_RUNNING);
        put_number(feed, "attempts", note->attempts);
        end_line(feed);
        return;
    }
    if (attempt) {
        const bh_verdict *verdict = &attempt->verdict;
        const struct end end = {.guilty = attempt->guilty,
                                .status = verdict->status,
                                .executed = verdict->executed,
                                .signal = verdict->signal,
                                .exit_code = verdict->exit_code,
                                .worker_pid = verdict->worker_pid,
                                .reached = (int64_t)verdict->limit,
                                .blame = verdict->blame,
                                .kernel_name = verdict->kernel_name,
                                .message = verdict->message,
                                .device = verdict->device};
        put_number(feed, "attempt", note->tried);
        if (note->sealed_before) { /* an earlier process ran it; its line is there */
            put_number(feed, "blamed", attempt->guilty);
            put_number(feed, "status", verdict->status);
            put_number(feed, "blame", verdict->blame);
            put_text(feed, "message", verdict->message);
        } else {
            if (!attempt->started) { /* otherwise it is known since it began */
                put_number(feed, "given", 0);
                put_number(feed, "stream", attempt->stream);
            }
            if (attempt->started_ns) {
                put_number(feed, "started", (int64_t)attempt->started_ns);
            }
            put_text(feed, "host", feed->host);
            put_number(feed, "ended",
                       (int64_t)(attempt->ended_ns ? attempt->ended_ns : note->time_ns));
            put_end(feed, &end);
        }
    }
    put_number(feed, "state", note->state);
    if (note->kind == BHI_NOTE_ENDED) {
        put_number(feed, "attempts", note->attempts);
        put_number(feed, "guilty", note->guilty);
    }
    if (note->tried) {
        put_number(feed, "verdict", note->tried);
    }
    if (note->origin) {
        put_number(feed, "origin", (int64_t)note->origin);
    }
    put_number(feed, "at", (int64_t)note->time_ns);
    end_line(feed);
}

void bhi_feed_append(struct bhi_feed *feed, sqlite3 *db, int folder, const struct bhi_list *group) {
    if (feed->stale && bhi_clock_ns() >= feed->retry_ns) {
        bhi_feed_rewrite(feed, db, folder); /* the database has the group */
        return;
    }
    if (feed->fd < 0) {
        return;
    }
    BHI_LIST_EACH(node, group) {
        put_note(feed, BHI_CONTAINER(node, struct bhi_note, node));
    }
    flush(feed);
    if (feed->failed) {
        become_stale(feed);
    }
}

void bhi_feed_close(struct bhi_feed *feed, sqlite3 *db, int folder) {
    if (feed->stale) {
        bhi_feed_rewrite(feed, db, folder);
    }
    if (feed->fd < 0) {
        return;
    }
    begin_line(feed);
    put_number(feed, "end", (int64_t)bhi_clock_calendar_ns());
    end_line(feed);
    flush(feed);
    close(feed->fd);
    feed->fd = -1;
}
