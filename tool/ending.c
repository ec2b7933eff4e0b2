#include "tool/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/text.h"

static struct bhi_ending *watched;

void bhi_ending_watch(struct bhi_ending *ending) {
    watched = ending;
}

void bhi_ending_fini(struct bhi_ending *ending) {
    if (watched == ending) {
        watched = NULL;
    }
    free(ending->log);
    ending->log = NULL;
}

void bhi_ending_note(bh_status status, const char *message) {
    if (!watched) {
        return;
    }
    watched->status = status;
    bhi_text_clean(watched->message, sizeof watched->message, message);
}

void bhi_ending_blame(bh_status status) {
    if (watched) {
        watched->status = status;
    }
}

/* NAME:LINE: error: …, or NAME: error: …; |length| bytes of |line|, up to the colon. */
static void take_place(struct bhi_ending *ending, const char *line, size_t length) {
    size_t digits = 0;
    while (digits < length && line[length - digits - 1] >= '0' &&
           line[length - digits - 1] <= '9') {
        digits++;
    }
    if (digits > 0 && digits < 10 && digits < length && line[length - digits - 1] == ':') {
        ending->line = (uint32_t)strtoul(line + length - digits, NULL, 10);
        length -= digits + 1;
    }
    char name[sizeof ending->file];
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
             line);
    bhi_text_clean(ending->file, sizeof ending->file, name);
}

/* Each line cleaned: a source can put anything there. */
static char *clean_lines(const char *log) {
    const size_t room = 3 * strlen(log) + 16; /* a broken byte may become a longer character */
    char *out = malloc(room);
    size_t used = 0;
    while (out && *log) {
        const size_t length = strcspn(log, "\n");
        char line[1024];
        snprintf(line, sizeof line, "%.*s", length > 1000 ? 1000 : (int)length, log);
        bhi_text_clean(out + used, room - used, line);
        used += strlen(out + used);
        log += length;
        if (*log) {
            out[used++] = *log++;
        }
    }
    if (out) {
        out[used] = '\0';
    }
    return out;
}

void bhi_ending_log(const char *log) {
    static const char error[] = ": error: ";
    if (!watched) {
        return;
    }
    free(watched->log);
    watched->log = *log ? clean_lines(log) : NULL;
    watched->file[0] = '\0';
    watched->line = 0;
    for (const char *line = log; *line;) {
        const size_t length = strcspn(line, "\n");
        const char *mark = strstr(line, error);
        if (mark && mark < line + length) {
            take_place(watched, line, (size_t)(mark - line));
            return;
        }
        line += length + (line[length] == '\n');
    }
}
