#include "batch/job/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/interrupt.h"

struct reader {
    FILE *file;
    char *text;    /* the line: up to BHI_JOB_TEXT bytes, and one more */
    size_t length; /* of the line, which may be longer than |text| */
};

/* Reads the next line, without its end. Returns false if there is none, or it cannot be read. */
static bool next_line(struct reader *reader) {
    int c;
    reader->length = 0;
    while ((c = getc_unlocked(reader->file)) != EOF && c != '\n') {
        if (reader->length <= BHI_JOB_TEXT) {
            reader->text[reader->length] = (char)c;
        }
        reader->length++;
    }
    return !ferror(reader->file) && (c == '\n' || reader->length > 0);
}

/* Returns true if the line is blank or a comment, which begins with '#'. */
static bool says_nothing(const struct reader *reader) {
    const size_t kept = reader->length <= BHI_JOB_TEXT ? reader->length : BHI_JOB_TEXT;
    for (size_t i = 0; i < kept; i++) {
        if (reader->text[i] == '#') {
            return true;
        }
        if (!strchr(" \t\r", reader->text[i]) || !reader->text[i]) {
            return false;
        }
    }
    return kept == reader->length;
}

/* Guesses the id of a bad line: what follows the first "id". */
static void guess_id(const char *text, size_t length, char out[BHI_JOB_ID + 1]) {
    static const char key[] = "\"id\"";
    const char *end = text + length;
    const char *at = memmem(text, length, key, sizeof key - 1);
    size_t used = 0;
    out[0] = 0;
    at = at ? at + sizeof key - 1 : end;
    while (at < end && (*at == ' ' || *at == ':')) {
        at++;
    }
    if (at < end && (*at == '-' || (*at >= '0' && *at <= '9'))) {
        while (at + used < end && used < 20 &&
               (at[used] == '-' || (at[used] >= '0' && at[used] <= '9'))) {
            used++;
        }
        memcpy(out, at, used);
        out[used] = 0;
        return;
    }
    if (at == end || *at++ != '"') {
        return;
    }
    while (at + used < end && used < BHI_JOB_ID && at[used] != '"' && at[used] != '\\' &&
           (unsigned char)at[used] >= 0x20) {
        used++;
    }
    if (at + used < end && at[used] == '"') {
        memcpy(out, at, used);
        out[used] = 0;
    }
}

/* Some editors begin a file with a byte order mark. */
static void skip_mark(struct reader *reader) {
    static const char mark[] = "\xef\xbb\xbf";
    const size_t length = sizeof mark - 1;
    if (reader->length >= length && reader->length <= BHI_JOB_TEXT &&
        !memcmp(reader->text, mark, length)) {
        reader->length -= length;
        memmove(reader->text, reader->text + length, reader->length);
    }
}

static void read_all(struct reader *reader, bhi_job_visitor visit, void *user) {
    bool more = true;
    for (size_t line = 1; more && !bhi_interrupt_signal() && next_line(reader); line++) {
        struct bhi_complaint complaint;
        struct bhi_job_spec spec;
        if (line == 1) {
            skip_mark(reader);
        }
        if (says_nothing(reader)) {
            continue;
        }
        char id[BHI_JOB_ID + 1] = "";
        const bool good = bhi_job_parse(reader->text, reader->length, &spec, &complaint);
        if (!good && reader->length <= BHI_JOB_TEXT) {
            guess_id(reader->text, reader->length, id);
        }
        if (good) {
            spec.line = line;
        }
        more = visit(user, line, good ? &spec : NULL, id, good ? NULL : &complaint);
    }
}

bool bhi_job_file_read(const char *path, bhi_job_visitor visit, void *user, int *out_errno,
                       struct bhi_complaint *complaint) {
    const bool is_stdin = !strcmp(path, "-");
    struct reader reader = {.file = bhi_interrupt_open(path)};
    *out_errno = errno;
    if (!reader.file) {
        return bhi_refuse(complaint, "%.400s: %s", path, strerror(*out_errno));
    }
    reader.text = malloc(BHI_JOB_TEXT + 1);
    *out_errno = reader.text ? 0 : ENOMEM;
    bool good = reader.text || bhi_refuse(complaint, "out of memory");
    if (good) {
        errno = 0;
        read_all(&reader, visit, user);
        if (ferror(reader.file) && !bhi_interrupt_signal()) {
            *out_errno = errno;
            good = bhi_refuse(complaint, "%.400s: cannot be read: %s",
                              is_stdin ? "standard input" : path, strerror(*out_errno));
        }
    }
    free(reader.text);
    fclose(reader.file);
    return good;
}
