#include "tool/report/columns.h"

#include "base/array.h"

#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "tool/text.h"

enum {
    GAP = 2,
    NARROW = 24, /* columns that a wrapped message needs; with fewer it goes on a line of its own */
    LINES = 4,   /* of a wrapped message on a terminal, at most */
};
static const char ellipsis[] = "\xE2\x80\xA6";

void bhi_columns_init(struct bhi_columns *table, const struct bhi_column *columns,
                      size_t column_count) {
    *table = (struct bhi_columns){.columns = columns, .column_count = column_count};
}

void bhi_columns_free(struct bhi_columns *table) {
    for (size_t i = 0; i < table->row_count * table->column_count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    free(table->tones);
    *table = (struct bhi_columns){0};
}

static bool grow(struct bhi_columns *table) {
    const size_t rows = table->row_count + 1;
    return BHI_ARRAY_RESERVE(table->cells, table->cell_capacity, rows * table->column_count) &&
           BHI_ARRAY_RESERVE(table->tones, table->tone_capacity, rows);
}

void bhi_columns_row(struct bhi_columns *table, const char *const *cells, enum bhi_tone tone) {
    if (table->failed || !grow(table)) {
        table->failed = true;
        return;
    }
    char **row = table->cells + table->row_count * table->column_count;
    for (size_t i = 0; i < table->column_count; i++) {
        char clean[2048];
        row[i] = strdup(bhi_text_clean(clean, sizeof clean, cells[i]));
        table->failed |= !row[i];
    }
    table->tones[table->row_count++] = tone;
}

int bhi_columns_width(FILE *stream) {
    const int fd = fileno(stream);
    return fd >= 0 && isatty(fd) != 1 ? BHI_COLUMNS_WHOLE : bhi_text_width(stream);
}

/* -- width of a text -------------------------------------------------------------------------- */

/* Returns the bytes of the first character of the clean |text|; *out_columns is its width. |locale|
 * is needed because the program runs in the C locale, where only ASCII has a width. */
static size_t character(const char *text, locale_t utf8, size_t *out_columns) {
    wchar_t wide = 0;
    mbstate_t state = {0};
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    size_t length = mbrtowc(&wide, text, MB_LEN_MAX, &state);
    int columns = length > 0 && length <= MB_LEN_MAX ? wcwidth(wide) : 1;
    if (utf8) {
        uselocale(before);
    }
    *out_columns = columns < 0 ? 1 : (size_t)columns;
    return length > 0 && length <= MB_LEN_MAX ? length : 1;
}

/* Returns how many bytes of |text| fit into |columns|; *out_used is their width. */
static size_t fitting(const char *text, size_t columns, size_t *out_used) {
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    size_t bytes = 0, used = 0, width = 0;
    while (text[bytes]) {
        size_t length = character(text + bytes, utf8, &width);
        if (used + width > columns) {
            break;
        }
        bytes += length;
        used += width;
    }
    if (utf8) {
        freelocale(utf8);
    }
    *out_used = used;
    return bytes;
}

static size_t columns_of(const char *text) {
    size_t used;
    fitting(text, SIZE_MAX, &used);
    return used;
}

/* -- printing -------------------------------------------------------------------------------- */

static const char *const tone_codes[BHI_TONES] = {"", "\x1b[32m", "\x1b[33m", "\x1b[31m"};

void bhi_columns_tone(FILE *stream, enum bhi_tone tone, const char *text) {
    bool coloured = tone != BHI_TONE_PLAIN && bhi_text_coloured(stream);
    fprintf(stream, "%s%s%s", coloured ? tone_codes[tone] : "", text, coloured ? "\x1b[0m" : "");
}

static void pad(FILE *stream, size_t columns) {
    for (; columns > 0; columns--) {
        fputc(' ', stream);
    }
}

static void print_cell(FILE *stream, const struct bhi_column *column, const char *text,
                       size_t width, enum bhi_tone tone, bool ends_line) {
    char cut[2048];
    size_t used = columns_of(text);
    if (used > width) {
        size_t bytes = fitting(text, width - 1, &used);
        snprintf(cut, sizeof cut, "%.*s%s", (int)bytes, text, ellipsis);
        text = cut;
        used++;
    }
    if (column->right) {
        pad(stream, width - used);
    }
    bhi_columns_tone(stream, column->toned ? tone : BHI_TONE_PLAIN, text);
    if (!column->right && !ends_line) {
        pad(stream, width - used);
    }
}

/* Writes |text| in lines of |width| columns. All lines but the first are indented by |indent|. */
static void print_wrapped(FILE *stream, const char *text, size_t indent, size_t width) {
    const int fd = fileno(stream);
    const bool cuts = fd >= 0 && isatty(fd) == 1; /* a file or a pipe gets the whole text */
    for (int line = 1; *text; line++) {
        size_t used;
        size_t bytes = fitting(text, width, &used);
        if (cuts && text[bytes] && line == LINES) {
            bytes = fitting(text, width - 1, &used);
            fprintf(stream, "%.*s%s\n", (int)bytes, text, ellipsis);
            return;
        }
        if (text[bytes]) { /* break at the last blank, if there is one */
            size_t blank = bytes;
            while (blank > 0 && text[blank] != ' ') {
                blank--;
            }
            bytes = blank ? blank : bytes;
        }
        fprintf(stream, "%.*s\n", (int)bytes, text);
        text += bytes + strspn(text + bytes, " ");
        if (*text) {
            pad(stream, indent);
        }
    }
}

static void measure(const struct bhi_columns *table, bool whole, size_t *widths) {
    for (size_t i = 0; i < table->column_count; i++) {
        size_t most = table->columns[i].most && !whole ? table->columns[i].most : SIZE_MAX;
        widths[i] = columns_of(table->columns[i].name);
        for (size_t row = 0; row < table->row_count; row++) {
            size_t width = columns_of(table->cells[row * table->column_count + i]);
            if (width > widths[i]) {
                widths[i] = width;
            }
        }
        if (widths[i] > most) {
            widths[i] = most;
        }
    }
}

/* |at| is where the last column begins; 0 puts the last column on a line of its own. */
static void print_row(const struct bhi_columns *table, FILE *stream, const size_t *widths,
                      const char *const *cells, enum bhi_tone tone, size_t indent, size_t at,
                      size_t width) {
    size_t last = table->column_count - 1;
    pad(stream, indent);
    for (size_t i = 0; i < last; i++) {
        if (i > 0) {
            pad(stream, GAP);
        }
        print_cell(stream, &table->columns[i], cells[i], widths[i], tone,
                   i + 1 == last && (!at || !*cells[last]));
    }
    if (!*cells[last]) {
        fputc('\n', stream);
    } else if (at) {
        pad(stream, GAP);
        print_wrapped(stream, cells[last], at, width - at);
    } else {
        fputc('\n', stream);
        pad(stream, indent + GAP);
        print_wrapped(stream, cells[last], indent + GAP,
                      width > indent + GAP + NARROW ? width - indent - GAP : NARROW);
    }
}

bool bhi_columns_print(const struct bhi_columns *table, FILE *stream, int indent, int width) {
    size_t widths[BHI_COLUMNS];
    const char *names[BHI_COLUMNS];
    size_t last = table->column_count - 1, at = (size_t)indent;
    if (table->failed) {
        return false;
    }
    measure(table, width >= BHI_COLUMNS_WHOLE, widths);
    for (size_t i = 0; i < table->column_count; i++) {
        names[i] = table->columns[i].name;
    }
    for (size_t i = 0; i < last; i++) {
        at += widths[i] + GAP;
    }
    if (at + NARROW > (size_t)width && at + widths[last] > (size_t)width) {
        at = 0;
    }
    if (!at) {
        names[last] = ""; /* the last column is then on lines of its own, without a heading */
    }
    print_row(table, stream, widths, names, BHI_TONE_PLAIN, (size_t)indent, at, (size_t)width);
    for (size_t row = 0; row < table->row_count; row++) {
        print_row(table, stream, widths,
                  (const char *const *)table->cells + row * table->column_count, table->tones[row],
                  (size_t)indent, at, (size_t)width);
    }
    return true;
}
