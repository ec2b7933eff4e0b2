/* Pages: what is in them, and what becomes of the file. */
#include "harness.h"
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "html.h"
#include "tool/report/page.h"

static struct bhi_complaint complaint;

TEST(text_is_escaped) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;"},
        {"]]>", "]]&gt;"},
        {"&amp;", "&amp;amp;"},
        {"\xC3\xA4\xE2\x82\xAC", "\xC3\xA4\xE2\x82\xAC"},
        {"a\xFF\xC3", "a??"},               /* broken UTF-8 */
        {"\xE2\x80\xAE", "?"},              /* right-to-left override */
        {"\x1b[31m\x01", "?[31m?"},         /* controls */
        {"\xEF\xBF\xBF\xEF\xBF\xBE", "??"}, /* XML has no such characters */
        {"\xEF\xBF\xBD", "\xEF\xBF\xBD"},   /* but this one */
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_page page;
        BHT_TRUE(bhi_page_open(&page, "x"));
        fflush(page.out);
        size_t before = page.size;
        bhi_page_text(&page, cases[i].text);
        fflush(page.out);
        BHT_STR_EQ(page.text + before, cases[i].expected);
        bhi_page_abandon(&page);
    }
}

/* One of everything. */
static void write_all(struct bhi_page *page, const char *text) {
    static const char *const headings[] = {"<a>", "b", "c", "d", "e"};
    BHT_TRUE(bhi_page_open(page, text));
    bhi_page_tiles(page);
    bhi_page_tile(page, text, text, BHI_PAGE_BAD);
    bhi_page_tiles_end(page);
    bhi_page_facts(page);
    bhi_page_fact(page, text, text);
    bhi_page_facts_end(page);
    bhi_page_section(page, text);
    bhi_page_paragraph(page, text);
    bhi_page_section(page, "another");
    bhi_page_table(page, text, headings, 5, 1u << 1);
    bhi_page_row(page);
    bhi_page_cell(page, text);
    bhi_page_cell_number(page, 1234567);
    bhi_page_cell_badge(page, text, BHI_PAGE_GOOD);
    bhi_page_cell_code(page, text);
    bhi_page_cell_bar(page, 1, 3, BHI_PAGE_LOST);
    bhi_page_row_end(page);
    bhi_page_table_end(page);
}

TEST(parts_are_well_formed) {
    static const char *const texts[] = {"plain",
                                        "",
                                        "<script>alert(1)</script>",
                                        "\" onload=\"alert(1)",
                                        "' x='",
                                        "\xFF\xE2\x80\xAE]]>",
                                        "<!-- --> <![CDATA["};
    for (size_t i = 0; i < BHT_COUNT(texts); i++) {
        struct bhi_page page;
        write_all(&page, texts[i]);
        BHT_TRUE(bhi_page_write(&page, "page.html", &complaint));
        html_check();
        BHT_EQ(html_count("//h:section"), 2);
        BHT_EQ(html_count("//h:td"), 5);
        html_expect("string(//h:td[2])", "1,234,567");
    }
}

TEST(page_without_sections) {
    struct bhi_page page;
    BHT_TRUE(bhi_page_open(&page, "empty"));
    BHT_TRUE(bhi_page_write(&page, "page.html", &complaint));
    html_check();
}

TEST(refused_paths) {
    static const struct {
        const char *path, *complaint;
    } cases[] = {{"nowhere/page.html", "No such file"},
                 {".", "directory"},
                 {"", "empty"},
                 {"pipe", "it is a pipe"},
                 {"-", "needs a file"}};
    BHT_EQ(mkfifo("pipe", 0600), 0);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_page page;
        BHT_TRUE(!bhi_page_check(cases[i].path, &complaint));
        write_all(&page, "x");
        BHT_TRUE(!bhi_page_write(&page, cases[i].path, &complaint));
        if (!strstr(complaint.text, cases[i].complaint)) {
            BHT_FAIL("%s", complaint.text);
        }
        BHT_EQ(html_count_files(), 1); /* the pipe */
    }
    BHT_EQ(remove("pipe"), 0);
}

TEST(data_is_not_overwritten) {
    static const char *const contents[] = {"{\"id\": \"j1\"}\n", "<", "<!DOCTYPE htm",
                                           "<!doctype html>"};
    struct bhi_page page;
    for (size_t i = 0; i < BHT_COUNT(contents); i++) {
        FILE *file = fopen("jobs.jsonl", "w");
        BHT_NE(file, NULL);
        fputs(contents[i], file);
        BHT_EQ(fclose(file), 0);
        BHT_TRUE(!bhi_page_check("jobs.jsonl", &complaint));
        BHT_STR_HAS(complaint.text, "is not a page");
        write_all(&page, "x");
        BHT_TRUE(!bhi_page_write(&page, "jobs.jsonl", &complaint));
        BHT_STR_EQ(html_read("jobs.jsonl", NULL), contents[i]);
    }
    /* What has nothing in it can be replaced, and so can a page. */
    fclose(fopen("jobs.jsonl", "w"));
    for (int i = 0; i < 2; i++) {
        BHT_TRUE(bhi_page_check("jobs.jsonl", &complaint));
        write_all(&page, "x");
        BHT_TRUE(bhi_page_write(&page, "jobs.jsonl", &complaint));
    }
    BHT_EQ(html_count_files(), 1);
    BHT_EQ(remove("jobs.jsonl"), 0);
    BHT_TRUE(bhi_page_check("/dev/null", &complaint));
}

TEST(full_disk_leaves_nothing) {
    struct bhi_page page;
    struct rlimit before, tight;
    write_all(&page, "x");
    BHT_TRUE(bhi_page_write(&page, "page.html", &complaint));
    size_t size;
    const char *old = html_read("page.html", &size);

    /* The room of half a page. */
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = size / 2;
    signal(SIGXFSZ, SIG_IGN);
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
    write_all(&page, "y");
    bool replaced = bhi_page_write(&page, "page.html", &complaint);
    write_all(&page, "y");
    bool made = bhi_page_write(&page, "other.html", &complaint);
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    BHT_TRUE(!replaced);
    BHT_TRUE(!made);
    BHT_STR_HAS(complaint.text, "too large");

    BHT_STR_EQ(html_read("page.html", NULL), old);
    BHT_EQ(html_count_files(), 1);

    write_all(&page, "z");
    BHT_TRUE(!bhi_page_write(&page, "/dev/full", &complaint));
    BHT_STR_HAS(complaint.text, "No space");
}

BHT_AT_START(bht_around(html_enter_folder, html_leave_folder))
