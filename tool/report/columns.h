/* A table: columns aligned, on a terminal the last one wrapped. */
#ifndef BHI_TOOL_REPORT_COLUMNS_H
#define BHI_TOOL_REPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    BHI_COLUMNS = 12,
    BHI_COLUMNS_WHOLE = 1 << 30, /* as a width: nothing is wrapped or cut */
};

struct bhi_column {
    const char *name;
    bool right;  /* aligned to the right: numbers */
    bool toned;  /* shown in the row's tone */
    size_t most; /* wider ones are cut with an ellipsis; 0: none is */
};

/* What colour says, the text says, too. */
enum bhi_tone { BHI_TONE_PLAIN, BHI_TONE_GOOD, BHI_TONE_WARN, BHI_TONE_BAD, BHI_TONES };

struct bhi_columns {
    const struct bhi_column *columns; /* borrowed */
    size_t column_count;
    char **cells; /* owned, each too; by rows */
    enum bhi_tone *tones;
    size_t row_count, cell_capacity, tone_capacity;
    bool failed; /* out of memory */
};

void bhi_columns_init(struct bhi_columns *table, const struct bhi_column *columns,
                      size_t column_count);
/* Copies |cells|, cleaned (text.h). */
void bhi_columns_row(struct bhi_columns *table, const char *const *cells, enum bhi_tone tone);
/* Prints names and rows, indented by |indent|, |width| columns wide. False: out of memory, here or
 * before. */
bool bhi_columns_print(const struct bhi_columns *table, FILE *stream, int indent, int width);
void bhi_columns_free(struct bhi_columns *table);

/* How wide lines to |stream| should be: as its terminal is; what goes to a file or a pipe is for
 * grep, and whole. */
int bhi_columns_width(FILE *stream);
/* Writes |text| in |tone| where |stream| is coloured. */
void bhi_columns_tone(FILE *stream, enum bhi_tone tone, const char *text);

#endif
