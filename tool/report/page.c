#include "tool/report/page.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tool/outfile.h"
#include "tool/quantity.h"
#include "tool/text.h"

static const char begin[] = "<!DOCTYPE html>";
/* No scripts, and nothing from another site: if escaping failed somewhere, the browser would still
 * refuse it. */
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'";

bool bhi_page_open(struct bhi_page *page, const char *title) {
    *page = (struct bhi_page){0};
    page->out = open_memstream(&page->text, &page->size);
    if (!page->out) {
        return false;
    }
    fprintf(page->out,
            "%s\n"
            "<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
            "<meta charset=\"utf-8\" />\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\" />\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n<title>",
            begin, policy);
    bhi_page_text(page, title);
    fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<header>\n<h1>",
            bhi_page_style);
    bhi_page_between(page, "", title, "</h1>\n");
    return true;
}

/* U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML. */
static bool is_noncharacter(const char *at) {
    return !memcmp(at, "\xEF\xBF", 2) && ((at[2] & 0xFE) == 0xBE);
}

void bhi_page_text(struct bhi_page *page, const char *text) {
    static const char escaped[] = "&<>\"'";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    char clean[4096];
    bhi_text_clean(clean, sizeof clean, text);
    for (const char *at = clean; *at; at++) {
        const char *is = strchr(escaped, *at);
        if (is) {
            fputs(escapes[is - escaped], page->out);
        } else if (*at == '\xEF' && is_noncharacter(at)) {
            fputc('?', page->out);
            at += 2;
        } else {
            fputc(*at, page->out);
        }
    }
}

void bhi_page_between(struct bhi_page *page, const char *before, const char *text,
                      const char *after) {
    fputs(before, page->out);
    bhi_page_text(page, text);
    fputs(after, page->out);
}

static void end_section(struct bhi_page *page) {
    fputs(page->in_section ? "</section>\n" : "</header>\n", page->out);
}

void bhi_page_abandon(struct bhi_page *page) {
    if (page->out) {
        fclose(page->out);
    }
    free(page->text);
    *page = (struct bhi_page){0};
}

/* Only a page or an empty file may be replaced: a mistyped name must not overwrite an output or a
 * history. */
static bool is_page_or_empty(int fd) {
    char bytes[sizeof begin - 1];
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    return size == 0 || (size == (ssize_t)sizeof bytes && !memcmp(bytes, begin, sizeof bytes));
}

bool bhi_page_check(const char *path, struct bhi_complaint *complaint) {
    struct bhi_outfile file;
    struct stat status;
    if (bhi_outfile_is_stdout(path)) {
        return bhi_refuse(complaint, "a page needs a file: standard output is for the summary");
    }
    /* Its reader would end with this check, and then the page would wait for another one for ever.
     * A link such as /dev/fd/63 is kept open by this process. */
    if (lstat(path, &status) == 0 && S_ISFIFO(status.st_mode)) {
        return bhi_refuse(complaint, "it is a pipe: a page needs a file");
    }
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        BHI_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !is_page_or_empty(fd)) {
            return bhi_refuse(complaint, "the file exists and is not a page: it is not replaced");
        }
    }
    bool good = bhi_outfile_open(path, 0, &file, complaint);
    bhi_outfile_abandon(&file);
    return good;
}

static bool write_file(const struct bhi_page *page, const char *path,
                       struct bhi_complaint *complaint) {
    struct bhi_outfile file;
    if (!bhi_page_check(path, complaint) || !bhi_outfile_open(path, page->size, &file, complaint)) {
        return false;
    }
    bool good = bhi_outfile_write(&file, page->text, page->size, NULL, 0, complaint) &&
                bhi_outfile_seal(&file, complaint) && bhi_outfile_commit(&file, complaint);
    bhi_outfile_abandon(&file);
    return good;
}

bool bhi_page_write(struct bhi_page *page, const char *path, struct bhi_complaint *complaint) {
    end_section(page);
    fputs("</main>\n</body>\n</html>\n", page->out);
    bool good = !ferror(page->out);
    good = fclose(page->out) == 0 && good;
    page->out = NULL;
    if (good) {
        good = write_file(page, path, complaint);
    } else {
        bhi_refuse_memory(complaint);
    }
    bhi_page_abandon(page);
    return good;
}

/* -- parts ----------------------------------------------------------------------------------- */

const char *bhi_page_class(enum bhi_page_tone tone) {
    static const char *const classes[BHI_PAGE_TONES] = {"plain", "good", "bad", "lost",
                                                        "input", "warn", "dim"};
    return classes[tone];
}

void bhi_page_section(struct bhi_page *page, const char *heading) {
    end_section(page);
    page->in_section = true;
    bhi_page_between(page, "<section>\n<h2>", heading, "</h2>\n");
}

void bhi_page_paragraph(struct bhi_page *page, const char *text) {
    bhi_page_between(page, "<p>", text, "</p>\n");
}

void bhi_page_tiles(struct bhi_page *page) {
    fputs("<ul class=\"tiles\">\n", page->out);
}

void bhi_page_tile(struct bhi_page *page, const char *name, const char *value,
                   enum bhi_page_tone tone) {
    fprintf(page->out, "<li class=\"%s\"><b>", bhi_page_class(tone));
    bhi_page_text(page, value);
    bhi_page_between(page, "</b> <span>", name, "</span></li>\n");
}

void bhi_page_tiles_end(struct bhi_page *page) {
    fputs("</ul>\n", page->out);
}

void bhi_page_facts(struct bhi_page *page) {
    fputs("<dl>\n", page->out);
}

void bhi_page_fact(struct bhi_page *page, const char *name, const char *value) {
    bhi_page_between(page, "<div><dt>", name, "</dt><dd><bdi>");
    bhi_page_between(page, "", value, "</bdi></dd></div>\n");
}

void bhi_page_facts_end(struct bhi_page *page) {
    fputs("</dl>\n", page->out);
}

void bhi_page_table(struct bhi_page *page, const char *caption, const char *const *headings,
                    size_t count, uint32_t right) {
    bhi_page_between(page, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"",
                     caption, "\">\n<table>\n<caption>");
    bhi_page_between(page, "", caption, "</caption>\n<thead><tr>");
    for (size_t i = 0; i < count; i++) {
        fprintf(page->out, "<th scope=\"col\"%s>", right >> i & 1 ? " class=\"n\"" : "");
        bhi_page_between(page, "", headings[i], "</th>");
    }
    fputs("</tr></thead>\n<tbody>\n", page->out);
    page->headings = headings;
    page->columns = count;
    page->right = right;
}

void bhi_page_row(struct bhi_page *page) {
    fputs("<tr>", page->out);
    page->column = 0;
}

/* |class| is the class attribute with a blank before it, or empty. |labelled| adds the column's
 * heading to the cell: on a narrow screen each row becomes a paragraph, and the text alone may be
 * unclear. */
static void open_cell_of(struct bhi_page *page, const char *class, bool labelled) {
    size_t column = page->column++;
    fprintf(page->out, "<td%s", class);
    if (labelled && column > 0 && column + 1 < page->columns) {
        fputs(" data-h=\"", page->out);
        bhi_page_text(page, page->headings[column]);
        fputc('"', page->out);
    }
    fputc('>', page->out);
}

static void open_cell(struct bhi_page *page, bool labelled) {
    open_cell_of(page, page->right >> page->column & 1 ? " class=\"n\"" : "", labelled);
}

void bhi_page_cell(struct bhi_page *page, const char *text) {
    open_cell(page, true);
    bhi_page_between(page, "<bdi>", text, "</bdi></td>");
}

void bhi_page_cell_id(struct bhi_page *page, const char *text) {
    open_cell_of(page, " class=\"id\"", true);
    bhi_page_between(page, "<bdi>", text, "</bdi></td>");
}

void bhi_page_cell_code(struct bhi_page *page, const char *text) {
    page->column++;
    bhi_page_between(page, "<td class=\"code\">", text, "</td>");
}

void bhi_page_cell_number(struct bhi_page *page, uint64_t number) {
    char text[BHI_QUANTITY];
    open_cell(page, true);
    fprintf(page->out, "%s</td>", bhi_quantity_count(text, number));
}

void bhi_page_cell_badge(struct bhi_page *page, const char *text, enum bhi_page_tone tone) {
    open_cell(page, false);
    fprintf(page->out, "<span class=\"badge %s\">", bhi_page_class(tone));
    bhi_page_between(page, "", text, "</span></td>");
}

void bhi_page_cell_bar(struct bhi_page *page, uint64_t part, uint64_t whole,
                       enum bhi_page_tone tone) {
    double percent = whole ? (double)part / (double)whole * 100 : 0;
    open_cell(page, false);
    if (part) {
        fprintf(page->out, "<span class=\"bar %s\" style=\"width:%.1f%%\"></span>",
                bhi_page_class(tone), percent < 0.5 ? 0.5 : percent);
    }
    fputs("</td>", page->out);
}

void bhi_page_row_end(struct bhi_page *page) {
    fputs("</tr>\n", page->out);
}

void bhi_page_table_end(struct bhi_page *page) {
    fputs("</tbody>\n</table>\n</div>\n", page->out);
}
