/* A page for a browser: one file without scripts, which needs no other file and no network. It is
 * made for light and dark screens, for telephones and for paper. It is also well-formed XML.
 *
 * All text from outside must go through bhi_page_text. Only our own markup is written to |out|.
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
    bool in_section;             /* the header is finished */
    const char *const *headings; /* of the current table; borrowed */
    size_t columns, column;
    uint32_t right; /* bit i: column i is aligned to the right */
};

/* Begins the page: head, style, <main>, and |title| as its heading. Returns false if memory ran
 * out. */
bool bhi_page_open(struct bhi_page *page, const char *title);
/* Writes |text|, cleaned (text.h) and escaped for content and for attributes in double quotes. Cuts
 * it at 4 KiB. */
void bhi_page_text(struct bhi_page *page, const char *text);
/* Writes it between two pieces of our own markup. */
void bhi_page_between(struct bhi_page *page, const char *before, const char *text,
                      const char *after);
/* Checks that a page can be written to |path|; call it before the work that the page reports.
 * Refuses standard output, and an existing file that is not a page. */
bool bhi_page_check(const char *path, struct bhi_complaint *complaint);
/* Ends the page, checks |path| again, and writes the file, whole or not at all (outfile.h). Frees
 * |page|. */
bool bhi_page_write(struct bhi_page *page, const char *path, struct bhi_complaint *complaint);
void bhi_page_abandon(struct bhi_page *page);

/* -- parts ----------------------------------------------------------------------------------- */

/* Colours, as classes of the style sheet. The text must say everything that the colour says. */
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

/* Begins a section with |heading|. It ends with the next section or with the page. */
void bhi_page_section(struct bhi_page *page, const char *heading);
void bhi_page_paragraph(struct bhi_page *page, const char *text);

/* Writes a large figure with a name, between bhi_page_tiles and bhi_page_tiles_end. */
void bhi_page_tiles(struct bhi_page *page);
void bhi_page_tile(struct bhi_page *page, const char *name, const char *value,
                   enum bhi_page_tone tone);
void bhi_page_tiles_end(struct bhi_page *page);

/* Writes names and values, between bhi_page_facts and bhi_page_facts_end. */
void bhi_page_facts(struct bhi_page *page);
void bhi_page_fact(struct bhi_page *page, const char *name, const char *value);
void bhi_page_facts_end(struct bhi_page *page);

/* Begins a table named |caption|. Bit i of |right| aligns column i to the right, for numbers. For
 * each row call bhi_page_row, then one cell function for each heading. |headings| is borrowed until
 * bhi_page_table_end. */
void bhi_page_table(struct bhi_page *page, const char *caption, const char *const *headings,
                    size_t count, uint32_t right);
void bhi_page_row(struct bhi_page *page);
void bhi_page_cell(struct bhi_page *page, const char *text);
/* A cell with a name from outside. The name is broken only if it is long. */
void bhi_page_cell_id(struct bhi_page *page, const char *text);
/* A cell with a name that is never broken, such as a status. */
void bhi_page_cell_code(struct bhi_page *page, const char *text);
void bhi_page_cell_number(struct bhi_page *page, uint64_t number);
/* A cell with text in a coloured frame. */
void bhi_page_cell_badge(struct bhi_page *page, const char *text, enum bhi_page_tone tone);
/* A cell with a bar that shows |part| of |whole|. Another cell must give the numbers. */
void bhi_page_cell_bar(struct bhi_page *page, uint64_t part, uint64_t whole,
                       enum bhi_page_tone tone);
void bhi_page_row_end(struct bhi_page *page);
void bhi_page_table_end(struct bhi_page *page);

/* The style sheet (page_style.c). */
extern const char bhi_page_style[];

#endif
