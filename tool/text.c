#include "tool/text.h"

#include "base/format.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *bhi_text_clean(char *out, size_t capacity, const char *source) {
    bhi_text_line(out, capacity, source, strlen(source));
    size_t used = strlen(out);
    while (used > 0 && out[used - 1] == ' ') { /* a trailing line end becomes no blank */
        used--;
    }
    out[used] = 0;
    return out;
}

const char *bhi_text_without_call(const char *message) {
    static const char prefix[] = "bh_";
    if (strncmp(message, prefix, strlen(prefix)) != 0) {
        return message;
    }
    size_t length = strspn(message, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return strncmp(message + length, ": ", 2) ? message : message + length + 2;
}

const char *bhi_text_without_name(const char *message, const char *name) {
    const char *why = bhi_text_without_call(message);
    const size_t length = strlen(name);
    return !strncmp(why, name, length) && !strncmp(why + length, ": ", 2) ? why + length + 2 : why;
}

void bhi_text_append(char *message, size_t capacity, const char *more) {
    const size_t used = strlen(message);
    bhi_format(message + used, capacity - used, "%s", more);
}

bool bhi_text_coloured(FILE *stream) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color && *no_color) {
        return false;
    }
    if (!term || !strcmp(term, "dumb")) {
        return false;
    }
    return isatty(fileno(stream)) == 1;
}

int bhi_text_width(FILE *stream) {
    enum { USUAL = 80, MOST = 10000 };
    const char *given = getenv("COLUMNS");
    const unsigned long wanted = given ? strtoul(given, NULL, 10) : 0;
    struct winsize size = {.ws_col = 0};
    if (wanted > 0) {
        return wanted < MOST ? (int)wanted : MOST;
    }
    (void)ioctl(fileno(stream), TIOCGWINSZ, &size);
    return size.ws_col > 0 ? size.ws_col : USUAL;
}

/* |begun|: the first line is indented already. */
static void wrap(FILE *stream, const char *text, int indent, int width, bool begun) {
    enum { LEAST = 40 };
    int column = 0;
    width = width < LEAST ? LEAST : width;
    while (*text) {
        if (*text == '\n') {
            fputc('\n', stream);
            column = 0;
            begun = false;
            text++;
            continue;
        }
        size_t blanks = strspn(text, " ");
        size_t length = strcspn(text + blanks, " \n");
        int needed = (int)(blanks + length);
        if (column > 0 && column + needed > width - indent) {
            fputc('\n', stream);
            column = 0;
        }
        if (column == 0) {
            fprintf(stream, "%*s", begun ? 0 : indent, "");
            begun = false;
            needed -= (int)blanks;
            text += blanks;
            blanks = 0;
        }
        fwrite(text, 1, blanks + length, stream);
        column += needed;
        text += blanks + length;
    }
    if (column > 0) {
        fputc('\n', stream);
    }
}

void bhi_text_wrap(FILE *stream, const char *text, int indent, int width) {
    wrap(stream, text, indent, width, false);
}

void bhi_text_hang(FILE *stream, const char *head, const char *text, int indent, int width) {
    fprintf(stream, "%-*s", indent, head);
    wrap(stream, text, indent, width, true);
    if (!*text) {
        fputc('\n', stream);
    }
}
