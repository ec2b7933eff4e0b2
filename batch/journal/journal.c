#include "batch/journal/journal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/journal/database.h"
#include "tool/clock.h"

enum { LINGER_NS = 10000000 };
static const uint64_t default_silence_ns = 20000000000u;

static struct bhi_note *note_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_note, node);
}

static void free_note(struct bhi_note *note) {
    free(note->attempt);
    free((char *)note->outputs);
    bhi_used_free(&note->used);
    free(note);
}

/* -- the thread ------------------------------------------------------------------------------ */

/* Touches the lock if it is time. Call it without locks. */
static void beat(struct bhi_journal *journal) {
    const uint64_t now_ns = bhi_clock_ns();
    if (now_ns >= journal->beat_ns) {
        bhi_lock_beat(&journal->lock);
        journal->beat_ns = now_ns + journal->lock.silence_ns / 4;
    }
}

/* Waits for a group to write, and takes it; or until the next beat, then the group is empty.
 * Returns false at the end. Call it with |mutex| held. */
static bool await_group(struct bhi_journal *journal, struct bhi_list *out_group) {
    const struct timespec next = bhi_clock_until(journal->beat_ns);
    bhi_list_init(out_group);
    while (bhi_list_empty(&journal->notes) && !journal->stop) {
        if (pthread_cond_timedwait(&journal->wake, &journal->mutex, &next) == ETIMEDOUT) {
            return true;
        }
    }
    const struct timespec due = bhi_clock_until(journal->due_ns);
    while (!bhi_list_empty(&journal->notes) && !journal->urgent && !journal->stop) {
        if (pthread_cond_timedwait(&journal->wake, &journal->mutex, &due) == ETIMEDOUT) {
            break;
        }
    }
    bhi_list_splice(out_group, &journal->notes);
    journal->urgent = false;
    return !bhi_list_empty(out_group);
}

/* Writes all notes of the group, or none. */
static bool write_group(struct bhi_journal *journal, const struct bhi_list *group,
                        struct bhi_complaint *complaint) {
    pthread_mutex_lock(&journal->database);
    int rc = bhi_journal_run(journal, BHI_SQL_BEGIN, "");
    BHI_LIST_EACH(node, group) {
        rc = rc == SQLITE_OK ? bhi_journal_write(journal, note_of(node)) : rc;
    }
    const bool good = bhi_journal_end(journal, rc, complaint);
    struct bhi_complaint ignored;
    if (good) {
        bhi_feed_append(&journal->feed, journal->db, journal->state.fd, group);
    }
    if (good && journal->log_stays) {
        (void)bhi_journal_move_log(journal, false, &ignored);
    }
    pthread_mutex_unlock(&journal->database);
    return good;
}

/* Calls |then| of the notes, and frees the group. Returns its size. Call it without locks. */
static uint64_t release_group(struct bhi_list *group, bool durable) {
    uint64_t count = 0;
    BHI_LIST_EACH_SAFE(node, group) {
        struct bhi_note *note = note_of(node);
        if (note->then) {
            note->then(note->user, durable);
        }
        free_note(note);
        count++;
    }
    return count;
}

static void *run(void *argument) {
    struct bhi_journal *journal = argument;
    struct bhi_list group;
    pthread_mutex_lock(&journal->mutex);
    while (await_group(journal, &group)) {
        struct bhi_complaint complaint;
        /* After a lost note none is written: the records are always a beginning of what
         * happened. */
        bool durable = !journal->broken;
        pthread_mutex_unlock(&journal->mutex);
        beat(journal);
        if (bhi_list_empty(&group)) {
            pthread_mutex_lock(&journal->mutex);
            continue;
        }
        durable = durable && write_group(journal, &group, &complaint);
        if (!durable) {
            pthread_mutex_lock(&journal->mutex);
            if (!journal->broken) {
                journal->broken = true;
                journal->complaint = complaint;
            }
            journal->lost = true;
            pthread_mutex_unlock(&journal->mutex);
        }
        const uint64_t count = release_group(&group, durable);
        pthread_mutex_lock(&journal->mutex);
        journal->written += count;
        pthread_cond_broadcast(&journal->settled);
    }
    pthread_mutex_unlock(&journal->mutex);
    return NULL;
}

/* The thread blocks all signals; other threads handle them. */
static bool start_thread(struct bhi_journal *journal) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    journal->has_thread = pthread_create(&journal->thread, NULL, run, journal) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return journal->has_thread;
}

/* -- opening, closing ------------------------------------------------------------------------ */

enum bhi_queue_result bhi_journal_open(const struct bhi_queue_options *options,
                                       struct bhi_journal **out_journal,
                                       struct bhi_journal_batch *out_batch,
                                       struct bhi_complaint *complaint) {
    enum bhi_queue_result result = BHI_QUEUE_ENVIRON;
    struct bhi_journal *journal = calloc(1, sizeof *journal);
    pthread_condattr_t monotonic;
    *out_journal = NULL;
    *out_batch = (struct bhi_journal_batch){.id = ""};
    if (!journal) {
        bhi_refuse(complaint, "out of memory");
        return result;
    }
    journal->lock.fd = -1;
    journal->state.fd = -1;
    bhi_list_init(&journal->notes);
    journal->linger_ns = options->linger_ns ? options->linger_ns : LINGER_NS;
    journal->lock.silence_ns = options->silence_ns ? options->silence_ns : default_silence_ns;
    bhi_feed_init(&journal->feed);
    pthread_mutex_init(&journal->database, NULL);
    pthread_mutex_init(&journal->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&journal->wake, &monotonic);
    pthread_cond_init(&journal->settled, NULL);
    pthread_condattr_destroy(&monotonic);
    result = bhi_journal_open_database(journal, options, out_batch, complaint);
    if (result == BHI_QUEUE_OK && !bhi_journal_prepare(journal, complaint)) {
        result = BHI_QUEUE_ENVIRON;
    }
    if (result == BHI_QUEUE_OK && !start_thread(journal)) {
        bhi_refuse(complaint, "no thread can be started");
        result = BHI_QUEUE_ENVIRON;
    }
    if (result != BHI_QUEUE_OK) {
        (void)bhi_journal_close(journal);
        journal = NULL;
    }
    *out_journal = journal;
    return result;
}

bool bhi_journal_close(struct bhi_journal *journal) {
    if (!journal) {
        return true;
    }
    pthread_mutex_lock(&journal->mutex);
    journal->stop = true;
    pthread_cond_signal(&journal->wake);
    pthread_mutex_unlock(&journal->mutex);
    if (journal->has_thread) {
        pthread_join(journal->thread, NULL);
    }
    const bool good = !journal->lost;
    bhi_feed_close(&journal->feed, journal->db, journal->state.fd);
    for (int i = 0; i < BHI_SQL_COUNT; i++) {
        sqlite3_finalize(journal->statements[i]);
    }
    /* This moves the log into the file; the next process does what is left. */
    bhi_journal_close_database(journal);
    pthread_cond_destroy(&journal->settled);
    pthread_cond_destroy(&journal->wake);
    pthread_mutex_destroy(&journal->mutex);
    pthread_mutex_destroy(&journal->database);
    bhi_used_rows_free(journal->used_rows);
    free(journal->folder);
    free(journal->path);
    free(journal);
    return good;
}

/* -- notes ----------------------------------------------------------------------------------- */

static struct bhi_note *copy_note(const struct bhi_note *note) {
    struct bhi_note *copy = malloc(sizeof *copy);
    if (!copy) {
        return NULL;
    }
    *copy = *note;
    copy->attempt = note->attempt ? malloc(sizeof *copy->attempt) : NULL;
    copy->outputs = note->outputs ? strdup(note->outputs) : NULL;
    copy->used = (struct bhi_used){.bytes = NULL};
    if (!copy->attempt != !note->attempt || !copy->outputs != !note->outputs ||
        !bhi_used_append(&copy->used, &note->used)) {
        free_note(copy);
        return NULL;
    }
    if (note->attempt) {
        *copy->attempt = *note->attempt;
    }
    return copy;
}

void bhi_journal_note(struct bhi_journal *journal, const struct bhi_note *note) {
    struct bhi_note *copy = copy_note(note);
    pthread_mutex_lock(&journal->mutex);
    if (!copy) {
        if (!journal->broken) {
            bhi_refuse(&journal->complaint, "%.600s: out of memory", journal->path);
        }
        journal->broken = journal->lost = true;
    } else {
        const bool was_empty = bhi_list_empty(&journal->notes);
        if (was_empty) {
            journal->due_ns = bhi_clock_ns() + journal->linger_ns;
        }
        bhi_list_append(&journal->notes, &copy->node);
        journal->noted++;
        journal->urgent |= !!note->then;
        if (was_empty || note->then) {
            pthread_cond_signal(&journal->wake);
        }
    }
    pthread_mutex_unlock(&journal->mutex);
    if (!copy && note->then) {
        note->then(note->user, false);
    }
}

bool bhi_journal_accept(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    pthread_mutex_lock(&journal->database);
    const bool was_present = bhi_journal_is_present(journal);
    const bool good = bhi_journal_accept_database(journal, complaint) &&
                      (was_present || bhi_journal_prepare_present(journal, complaint));
    pthread_mutex_unlock(&journal->database);
    return good;
}

bool bhi_journal_flush(struct bhi_journal *journal) {
    pthread_mutex_lock(&journal->mutex);
    const uint64_t wanted = journal->noted;
    if (journal->written < wanted) {
        journal->urgent = true;
        pthread_cond_signal(&journal->wake);
    }
    while (journal->written < wanted) {
        pthread_cond_wait(&journal->settled, &journal->mutex);
    }
    const bool good = !journal->broken;
    pthread_mutex_unlock(&journal->mutex);
    return good;
}

bool bhi_journal_broken(struct bhi_journal *journal, struct bhi_complaint *complaint) {
    pthread_mutex_lock(&journal->mutex);
    const bool broken = journal->broken;
    if (broken && complaint) {
        *complaint = journal->complaint;
    }
    pthread_mutex_unlock(&journal->mutex);
    return broken;
}
