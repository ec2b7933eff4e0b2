/* A table with aligned columns. On a terminal the last column is wrapped. */
#ifndef BHI_TOOL_REPORT_COLUMNS_H
#define BHI_TOOL_REPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    BHI_COLUMNS = 12,
    BHI_COLUMNS_WHOLE = 1 << 30, /* a width at which nothing is wrapped or cut */
};

struct bhi_column {
    const char *name;
    bool right;  /* aligned to the right, for numbers */
    bool toned;  /* in the tone of its row */
    size_t most; /* the widest; a wider text is cut and ends with an ellipsis; 0: no limit */
};

/* Tones of a row. The text must say everything that the colour says. */
enum bhi_tone { BHI_TONE_PLAIN, BHI_TONE_GOOD, BHI_TONE_WARN, BHI_TONE_BAD, BHI_TONES };

struct bhi_columns {
    const struct bhi_column *columns; /* borrowed */
    size_t column_count;
    char **cells; /* row by row; each text is owned, and so is the array */
    enum bhi_tone *tones;
    size_t row_count, cell_capacity, tone_capacity;
    bool failed; /* out of memory */
};

void bhi_columns_init(struct bhi_columns *table, const struct bhi_column *columns,
                      size_t column_count);
/* Adds a row with copies of |cells|, cleaned (text.h). */
void bhi_columns_row(struct bhi_columns *table, const char *const *cells, enum bhi_tone tone);
/* Prints headings and rows, indented by |indent|, in |width| columns. Returns false if memory ran
 * out now or earlier. */
bool bhi_columns_print(const struct bhi_columns *table, FILE *stream, int indent, int width);
void bhi_columns_free(struct bhi_columns *table);

/* The width of lines for |stream|: that of text (tool/text.h), but a file or a pipe gets whole lines,
 * so that grep finds all words. */
int bhi_columns_width(FILE *stream);
/* Writes |text|, in the colour of |tone| if |stream| is coloured. */
void bhi_columns_tone(FILE *stream, enum bhi_tone tone, const char *text);

#endif
