/* A page for a browser: one file that needs no other, no script and no network, readable by day and
 * by night, on a telephone and on paper. It is well-formed XML, too.
 *
 * Everything that others wrote goes through bhi_page_text; what goes to |out| directly is ours.
 */
#ifndef BHI_TOOL_REPORT_PAGE_H
#define BHI_TOOL_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/complaint.h"

struct bhi_page {
    FILE *out; /* for markup; NULL: out of memory */
    char *text;
    size_t size;
    bool in_section;             /* past the header */
    const char *const *headings; /* of the table that is being written; borrowed */
    size_t columns, column;
    uint32_t right; /* its columns of numbers */
};

/* Begins the page: head, style, <main>, and |title| as its heading. False: out of memory. */
bool bhi_page_open(struct bhi_page *page, const char *title);
/* |text| cleaned (text.h) and escaped: for content and for attributes in double quotes. Cut at
 * 4 KiB. */
void bhi_page_text(struct bhi_page *page, const char *text);
/* Whether a page can be written to |path|, to be asked before the work that it is about. It must be
 * a file, and where there is one already, a page: not somebody's data. */
bool bhi_page_check(const char *path, struct bhi_complaint *complaint);
/* Ends the page and writes it to |path|, whole or not at all (outfile.h), checked again. Frees. */
bool bhi_page_write(struct bhi_page *page, const char *path, struct bhi_complaint *complaint);
void bhi_page_abandon(struct bhi_page *page);

/* -- parts --------------------------------------------------------------------------------------
 */

/* What colour a thing has; its text says the same. They are classes of the style sheet. */
enum bhi_page_tone {
    BHI_PAGE_PLAIN,
    BHI_PAGE_GOOD,
    BHI_PAGE_BAD,
    BHI_PAGE_LOST,
    BHI_PAGE_INPUT,
    BHI_PAGE_WARN,
    BHI_PAGE_DIM,
    BHI_PAGE_TONES
};
const char *bhi_page_class(enum bhi_page_tone tone);

/* A section with |heading|, up to the next one or the end. */
void bhi_page_section(struct bhi_page *page, const char *heading);
void bhi_page_paragraph(struct bhi_page *page, const char *text);

/* A figure with a name, large; between _tiles and _tiles_end. */
void bhi_page_tiles(struct bhi_page *page);
void bhi_page_tile(struct bhi_page *page, const char *name, const char *value,
                   enum bhi_page_tone tone);
void bhi_page_tiles_end(struct bhi_page *page);

/* A list of names and values; between _facts and _facts_end. */
void bhi_page_facts(struct bhi_page *page);
void bhi_page_fact(struct bhi_page *page, const char *name, const char *value);
void bhi_page_facts_end(struct bhi_page *page);

/* A table named |caption|; bit i of |right|: column i is of numbers. Then for each row _row and as
 * many cells as there are |headings| (which stay the caller's until _table_end). */
void bhi_page_table(struct bhi_page *page, const char *caption, const char *const *headings,
                    size_t count, uint32_t right);
void bhi_page_row(struct bhi_page *page);
void bhi_page_cell(struct bhi_page *page, const char *text);
/* A name that others chose: has the room not to be broken, unless it is long. */
void bhi_page_cell_id(struct bhi_page *page, const char *text);
/* A name that a program knows: never broken. */
void bhi_page_cell_code(struct bhi_page *page, const char *text);
void bhi_page_cell_number(struct bhi_page *page, uint64_t number);
/* Text in a coloured frame. */
void bhi_page_cell_badge(struct bhi_page *page, const char *text, enum bhi_page_tone tone);
/* A bar |part| of |whole| long; says nothing that another cell does not. */
void bhi_page_cell_bar(struct bhi_page *page, uint64_t part, uint64_t whole,
                       enum bhi_page_tone tone);
void bhi_page_row_end(struct bhi_page *page);
void bhi_page_table_end(struct bhi_page *page);

/* The style sheet (page_style.c). */
extern const char bhi_page_style[];

#endif
