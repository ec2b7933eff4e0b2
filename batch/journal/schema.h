/* The schema of a state folder's database. docs/reports.md explains it to those who read the
 * database. */
#ifndef BHI_BATCH_JOURNAL_SCHEMA_H
#define BHI_BATCH_JOURNAL_SCHEMA_H

#define BHI_JOURNAL_FILE "batch.db"
#define BHI_JOURNAL_LOCK "lock"
/* The columns of attempt that format 4 did not have at first, in the order in which they came. Such
 * a database gets them when a batch goes on; versions that do not know them neither read nor write
 * them. */
#define BHI_JOURNAL_DEVICE "device TEXT NOT NULL DEFAULT ''"
#define BHI_JOURNAL_HOST   "host TEXT NOT NULL DEFAULT ''"
/* So are these tables: the files that were read, each content once or more, and by which attempt. */
#define BHI_JOURNAL_FILES                                                                          \
    "CREATE TABLE file (\n"                                                                        \
    "    number INTEGER PRIMARY KEY CHECK (number > 0),\n"                                         \
    "    path TEXT NOT NULL CHECK (path != ''),\n"                                                 \
    "    mark TEXT NOT NULL\n"                                                                     \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE used (\n"                                                                        \
    "    job INTEGER NOT NULL CHECK (job > 0),\n"                                                  \
    "    file INTEGER NOT NULL CHECK (file > 0),\n"                                                \
    "    attempt INTEGER NOT NULL CHECK (attempt > 0),\n"                                          \
    "    PRIMARY KEY (job, file)\n"                                                                \
    ") STRICT, WITHOUT ROWID;\n"

enum {
    BHI_JOURNAL_APPLICATION = 0x42486a6c, /* PRAGMA application_id: "BHjl" */
    BHI_JOURNAL_VERSION = 4,              /* PRAGMA user_version */
    /* Is read, too, and becomes the present version when a batch goes on; other versions are
     * refused. Only the outputs differ: they have no hash (marks.h). */
    BHI_JOURNAL_VERSION_BEFORE = 3,
};

/* Times are CLOCK_REALTIME in nanoseconds; 0: not yet. Numbers of states are those of
 * bhi_job_state, of statuses bh_status, of executed bh_executed, of blame bh_blame. Values that
 * change are in tables of their own, so that a change does not rewrite the text. SQLite checks
 * types and signs (STRICT, CHECK), and quick_check finds values that bypassed these checks. */
static const char bhi_journal_schema[] =
    "CREATE TABLE batch (\n"                   /* one row */
    "    id TEXT NOT NULL CHECK (id != ''),\n" /* in the names of temporary files */
    "    cwd TEXT NOT NULL,\n"                 /* what paths are relative to */
    "    jobs_path TEXT,\n"
    "    created_ns INTEGER NOT NULL CHECK (created_ns >= 0)\n"
    ") STRICT;\n"
    "CREATE TABLE job (\n"
    "    number INTEGER PRIMARY KEY CHECK (number > 0),\n" /* from 1, without gaps */
    "    id TEXT NOT NULL UNIQUE CHECK (id != ''),\n"
    "    line INTEGER NOT NULL CHECK (line >= 0),\n"
    "    priority INTEGER NOT NULL,\n"
    "    retries INTEGER NOT NULL CHECK (retries >= 0),\n"
    "    submitted_ns INTEGER NOT NULL CHECK (submitted_ns >= 0),\n"
    "    text TEXT NOT NULL\n" /* the job's object */
    ") STRICT;\n"
    "CREATE TABLE dependency (\n"
    "    job INTEGER NOT NULL CHECK (job > 0),\n"
    "    needs INTEGER NOT NULL CHECK (needs > 0),\n"
    "    PRIMARY KEY (job, needs)\n"
    ") STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE progress (\n" /* one row a job */
    "    job INTEGER PRIMARY KEY CHECK (job > 0),\n"
    "    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),\n"
    /* its outputs are complete under their temporary names */
    "    sealed INTEGER NOT NULL CHECK (sealed IN (0, 1)),\n"
    /* while it is sealed, and when it is done: what they are recognised by */
    "    outputs TEXT NOT NULL,\n"
    "    tried INTEGER NOT NULL CHECK (tried >= 0),\n"       /* rows in attempt */
    "    attempts INTEGER NOT NULL CHECK (attempts >= 0),\n" /* of them that were started */
    "    guilty INTEGER NOT NULL CHECK (guilty >= 0),\n"
    "    victim INTEGER NOT NULL CHECK (victim >= 0),\n"
    /* the last attempt that ended; 0: none */
    "    verdict INTEGER NOT NULL CHECK (verdict >= 0),\n"
    "    origin INTEGER CHECK (origin > 0),\n" /* number of the job through which it failed */
    "    started_ns INTEGER NOT NULL CHECK (started_ns >= 0),\n"
    "    ended_ns INTEGER NOT NULL CHECK (ended_ns >= 0)\n"
    ") STRICT;\n"
    "CREATE TABLE attempt (\n"
    "    job INTEGER NOT NULL CHECK (job > 0),\n"
    "    attempt INTEGER NOT NULL CHECK (attempt > 0),\n" /* from 1 */
    "    started INTEGER NOT NULL CHECK (started IN (0, 1)),\n"
    "    stream INTEGER NOT NULL CHECK (stream >= 0),\n"
    "    started_ns INTEGER NOT NULL CHECK (started_ns >= 0),\n"
    /* 0: it is running, or was cut off */
    "    ended_ns INTEGER NOT NULL CHECK (ended_ns >= 0),\n"
    "    guilty INTEGER NOT NULL DEFAULT 0 CHECK (guilty IN (0, 1)),\n"
    "    status INTEGER NOT NULL DEFAULT 2,\n"
    "    executed INTEGER NOT NULL DEFAULT 1,\n"
    "    signal INTEGER NOT NULL DEFAULT 0,\n"
    "    exit_code INTEGER NOT NULL DEFAULT -1,\n"
    "    worker_pid INTEGER NOT NULL DEFAULT 0,\n"
    "    reached INTEGER NOT NULL DEFAULT 0,\n" /* the limit that was hit */
    "    kernel_name TEXT NOT NULL DEFAULT '',\n"
    "    kernel_hash BLOB,\n"
    "    message TEXT NOT NULL DEFAULT '',\n"
    "    blame INTEGER NOT NULL DEFAULT 0 CHECK (blame BETWEEN 0 AND 2),\n"
    "    " BHI_JOURNAL_DEVICE ",\n"
    "    " BHI_JOURNAL_HOST ",\n"
    "    PRIMARY KEY (job, attempt)\n"
    ") STRICT, WITHOUT ROWID;\n" BHI_JOURNAL_FILES
    /* For people; the program does not read it. */
    "CREATE VIEW jobs AS SELECT job.number AS number, job.id AS id,\n"
    "    CASE state WHEN 0 THEN 'submitted' WHEN 1 THEN 'waiting' WHEN 2 THEN 'running'\n"
    "        WHEN 3 THEN 'done' WHEN 4 THEN 'failed' WHEN 5 THEN 'quarantined'\n"
    "        WHEN 6 THEN 'cancelled' END AS state,\n"
    "    sealed, attempts, progress.guilty AS guilty, origin.id AS origin,\n"
    "    attempt.status AS status, attempt.message AS message\n"
    "    FROM job JOIN progress ON progress.job = job.number\n"
    "    LEFT JOIN job AS origin ON origin.number = progress.origin\n"
    "    LEFT JOIN attempt ON attempt.job = job.number AND attempt.attempt = verdict\n"
    "    ORDER BY job.number;\n";

#endif
