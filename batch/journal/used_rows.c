/* The rows of the files that jobs have read. A file that many jobs read has one row for each of its
 * contents; another one if so many others came in between that it was forgotten, or a process. */
#include <stdlib.h>
#include <string.h>

#include "batch/graph/names.h"
#include "batch/journal/attempt_row.h"
#include "batch/journal/database.h"
#include "batch/journal/journal.h"

enum { KEPT = 1 << 16 };

struct bhi_used_rows {
    int64_t before;         /* the largest number that is not of |known| */
    struct bhi_names known; /* "MARK PATH", in the order of the numbers */
};

void bhi_used_rows_free(struct bhi_used_rows *rows) {
    if (rows) {
        bhi_names_fini(&rows->known);
    }
    free(rows);
}

static int begin(struct bhi_journal *journal) {
    struct bhi_complaint ignored;
    struct bhi_used_rows *rows = calloc(1, sizeof *rows);
    if (!rows) {
        return SQLITE_NOMEM;
    }
    bhi_names_init(&rows->known);
    if (bhi_journal_number(journal, "SELECT coalesce(max(number), 0) FROM file", &rows->before,
                           &ignored)) {
        journal->used_rows = rows;
        return SQLITE_OK;
    }
    bhi_used_rows_free(rows);
    return sqlite3_errcode(journal->db);
}

/* Returns the number of the row for |mark|, which the path follows, in *out_number. */
static int find_row(struct bhi_journal *journal, const char *mark, int64_t *out_number) {
    struct bhi_used_rows *rows = journal->used_rows;
    const char *path = mark + strlen(mark) + 1;
    char *key = NULL;
    int rc = SQLITE_OK;
    if (asprintf(&key, "%s %s", mark, path) < 0) {
        return SQLITE_NOMEM;
    }
    if (rows->known.count == KEPT) {
        rows->before += KEPT;
        bhi_names_truncate(&rows->known, 0);
    }
    uint32_t known = bhi_names_find(&rows->known, key);
    const bool is_new = known == BHI_NO_NAME;
    if (is_new && (known = bhi_names_add(&rows->known, key)) == BHI_NO_NAME) {
        rc = SQLITE_NOMEM;
    }
    free(key);
    *out_number = rows->before + known + 1;
    if (rc == SQLITE_OK && is_new) {
        rc = bhi_journal_run(journal, BHI_SQL_FILE, "itt", *out_number, path, mark);
    }
    return rc;
}

int bhi_used_rows_write(struct bhi_journal *journal, int64_t job, int64_t tried,
                        const struct bhi_used *used) {
    const char *mark = NULL;
    int64_t number = 0;
    int rc = bhi_journal_run(journal, BHI_SQL_UNUSE, "i", job);
    if (rc == SQLITE_OK && used->size && !journal->used_rows) {
        rc = begin(journal);
    }
    while (rc == SQLITE_OK && bhi_used_next(used, &mark)) {
        rc = find_row(journal, mark, &number);
        if (rc == SQLITE_OK) {
            rc = bhi_journal_run(journal, BHI_SQL_USE, "iii", job, number, tried);
        }
    }
    return rc;
}

/* -- reading --------------------------------------------------------------------------------- */

/* Of the attempt that a job is done, or complete, with: an older version of the program runs a job
 * again without a record of its files. */
#define CURRENT                                                                                    \
    "used JOIN progress ON progress.job = used.job AND used.attempt = tried "                      \
    "JOIN job ON job.number = used.job WHERE (state = 3 OR sealed)"

struct file_visit {
    bool (*visit)(void *user, uint64_t number, const char *path, const char *mark);
    void *user;
};

static bool visit_file(sqlite3_stmt *row, void *argument) {
    const struct file_visit *visit = argument;
    return visit->visit(visit->user, (uint64_t)sqlite3_column_int64(row, 0), bhi_row_text(row, 1),
                        bhi_row_text(row, 2));
}

bool bhi_journal_each_file(struct bhi_journal *journal,
                           bool (*visit)(void *user, uint64_t number, const char *path,
                                         const char *mark),
                           void *user) {
    static const char sql[] = "SELECT number, path, mark FROM file WHERE number IN "
                              "(SELECT file FROM " CURRENT ") ORDER BY path, number";
    return !journal->has_files ||
           bhi_journal_each_row(journal, sql, 0, visit_file, &(struct file_visit){visit, user});
}

struct user_visit {
    bool (*visit)(void *user, const char *id);
    void *user;
};

static bool visit_user(sqlite3_stmt *row, void *argument) {
    const struct user_visit *visit = argument;
    return visit->visit(visit->user, bhi_row_text(row, 0));
}

bool bhi_journal_each_user(struct bhi_journal *journal, uint64_t file,
                           bool (*visit)(void *user, const char *id), void *user) {
    static const char sql[] = "SELECT job.id FROM " CURRENT " AND used.file = ? ORDER BY used.job";
    return bhi_journal_each_row(journal, sql, file, visit_user, &(struct user_visit){visit, user});
}
