/* A queue with or without a state folder, and jobs for it in few words. Every function fails the
 * test if something is not as it says.
 *
 * Each test begins with a place of its own and no queue. One queue is open at a time: what opens one
 * closes the one before it, and the last one is closed after the test. */
#ifndef BATCH_FEW_JOBS_H
#define BATCH_FEW_JOBS_H

#include "support.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "batch/queue/queue.h"

extern struct place {
    char root[64], folder[96], database[112]; /* the state's folder is not there yet */
} place;
extern struct bhi_queue *queue;
extern struct bhi_complaint complaint;

/* Closes the queue, and begins with a new place. */
void renew_place(void);
/* Of the state. */
void path_of(const char *name, char path[128]);
/* -1: there is none. */
off_t size_of(const char *name);
enum { MOST = 1 << 18 };
/* Up to |MOST| bytes; returns how many, or -1 if there is no such file. */
ssize_t read_file(const char *path, void *out);
void write_file(const char *path, const void *bytes, size_t size);
/* Beside the state. */
void put_file(const char *name, const char *text, mode_t mode);

/* A queue without a journal, whose complaints name |jobs_path|. */
void open_unkept(const char *jobs_path);
/* Of the place's state, and of jobs.jsonl. */
enum bhi_queue_result open_with(struct bhi_queue_options options);
enum bhi_queue_result try_open(bool resume, bool failed);
/* What is resumed goes on with the first call, also of nothing. A fresh one has jobs in such words as
 * add() takes. */
void open_state(bool resume, bool failed);
void fresh(const char *words);
void again(void);
bool close_queue(void);
/* What is refused names what it is about, once, and leaves nothing open. */
void expect_no_open(bool resume, enum bhi_queue_result expected, const char *words);

struct jobs {
    struct bhi_job_spec specs[64];
    size_t count;
};

/* Appends jobs to |jobs|. "b:a,c<r>w,x=y@5" needs a and c, reads r, writes w and x, replaces y and
 * has the priority 5; only the id must be there. False: memory has run out. */
bool read_jobs(struct jobs *jobs, const char *words);
void free_jobs(struct jobs *jobs);
/* Adds jobs in such words. */
enum bhi_queue_result try_add(const char *words);
void add(const char *words);
void expect_refused(const char *words, const char *expected);
/* One whose line is |line|, the seventh. */
enum bhi_queue_result add_line(const char *line);

/* Takes the next job, which must be |id|; NULL: there must be none. */
struct bhi_job *take(const char *id);
/* And tells that it runs. */
struct bhi_job *start(const char *id);
void end(struct bhi_job *job, enum bhi_job_state next, bh_status status);
/* Starts it, and ends it so. */
void run_one(const char *id, enum bhi_job_state next, bh_status status);
/* Runs them, which have blanks between them, one after the other: all end well. */
void run(const char *ids);
/* It ran from 4 to 6. */
/* It has used a kernel, a file with its id, and |more_files| others. */
extern uint32_t more_files;
void seal_job(struct bhi_job *job, const char *outputs, void (*then)(void *user, bool durable),
              void *user);
void expect_durable(void *user, bool durable);
/* Starts it, and leaves it sealed. */
void seal(const char *id);

/* "submitted/waiting/running/done/failed/quarantined/cancelled of total" */
void expect_counts_of(const struct bhi_queue_counts *counts, const char *expected);
void expect_counts(const char *expected);
/* The database as another program sees it: "column column; column column; ". */
void expect_sql(const char *sql, const char *expected);
/* Once the queue is closed: the same; and "id state; id state; ". */
void expect_kept(const char *sql, const char *expected);
void expect_jobs(const char *expected);
/* Changes the database behind the queue's back, also to what the schema does not allow; and once it
 * is closed. */
void alter_meanwhile(const char *sql);
void alter(const char *sql);

#endif
