#include "tool/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "tool/exit_status.h"
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

void bhi_ending_answered(void) {
    if (watched) {
        watched->answered = true;
    }
}

void bhi_ending_note(bh_status status, const bh_detail *detail, const char *message) {
    static const bh_detail none;
    if (!watched) {
        return;
    }
    detail = detail ? detail : &none;
    watched->status = status;
    watched->reason = detail->reason;
    watched->subject = detail->subject;
    memcpy(watched->subject_name, detail->subject_name, sizeof watched->subject_name);
    bhi_text_clean(watched->message, sizeof watched->message, message);
}

void bhi_ending_blame(bh_status status) {
    if (watched) {
        watched->status = status;
    }
}

bh_status bhi_ending_code(const struct bhi_ending *ending, int exit_status) {
    if (exit_status > BHI_EXIT_SIGNALLED) {
        return BH_CANCELLED;
    }
    if (ending->status != BH_OK) {
        return ending->status;
    }
    return exit_status == BHI_EXIT_ENVIRON ? BH_SYSTEM : BH_INVALID_ARGUMENT;
}

/* Returns how many digits |text| ends with, or 0 if they are too many for a line number. */
static size_t count_digits(const char *text, size_t length) {
    size_t digits = 0;
    while (digits < length && text[length - digits - 1] >= '0' &&
           text[length - digits - 1] <= '9') {
        digits++;
    }
    return digits < 10 ? digits : 0;
}

static void take_file(struct bhi_ending *ending, const char *name, size_t length) {
    char text[sizeof ending->file];
    bhi_format(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1),
               name);
    bhi_text_clean(ending->file, sizeof ending->file, text);
}

/* Takes NAME:LINE or NAME from the first |length| bytes of |text|, which stand before ": error: ".
 */
static void take_place(struct bhi_ending *ending, const char *text, size_t length) {
    const size_t digits = count_digits(text, length);
    if (digits > 0 && digits < length && text[length - digits - 1] == ':') {
        ending->line = (uint32_t)strtoul(text + length - digits, NULL, 10);
        length -= digits + 1;
    }
    take_file(ending, text, length);
}

/* Takes NAME and LINE from "SOURCE: NAME(LINE", which stands before "): error at" when a parser of
 * HLSL has given up. */
static void take_parse_place(struct bhi_ending *ending, const char *text, size_t length) {
    const size_t digits = count_digits(text, length);
    if (digits == 0 || digits == length || text[length - digits - 1] != '(') {
        return;
    }
    ending->line = (uint32_t)strtoul(text + length - digits, NULL, 10);
    length -= digits + 1;
    /* SOURCE and NAME may contain ": ". Usually both are the same, which tells where NAME begins.
     */
    const size_t half = length / 2;
    const char *colon = strstr(text, ": ");
    const size_t prefix = length > 2 && !memcmp(text, text + length - (half - 1), half - 1) &&
                                  !memcmp(text + half - 1, ": ", 2)
                              ? half + 1
                          : colon && colon < text + length ? (size_t)(colon - text) + 2
                                                           : 0;
    take_file(ending, text + prefix, length - prefix);
}

/* Cleans each line: a source can put any bytes into its compiler's messages. */
static char *clean_lines(const char *log) {
    const size_t room = 3 * strlen(log) + 16; /* a broken byte may become a longer character */
    char *out = malloc(room);
    size_t used = 0;
    while (out && *log) {
        const size_t length = strcspn(log, "\n");
        char line[1024];
        bhi_format(line, sizeof line, "%.*s", length > 1000 ? 1000 : (int)length, log);
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
    static const char error[] = ": error: ", parse_error[] = "): error at ";
    if (!watched) {
        return;
    }
    free(watched->log);
    watched->log = *log ? clean_lines(log) : NULL;
    watched->file[0] = '\0';
    watched->line = 0;
    for (const char *line = log; *line && !watched->line;) {
        const size_t length = strcspn(line, "\n");
        const char *mark = strstr(line, error), *parse_mark = strstr(line, parse_error);
        struct bhi_ending place = {.line = 0};
        if (mark && mark < line + length) {
            take_place(&place, line, (size_t)(mark - line));
        } else if (parse_mark && parse_mark < line + length) {
            take_parse_place(&place, line, (size_t)(parse_mark - line));
        }
        if (place.file[0] && (place.line || !watched->file[0])) {
            watched->line = place.line;
            memcpy(watched->file, place.file, sizeof place.file);
        }
        line += length + (line[length] == '\n');
    }
}
