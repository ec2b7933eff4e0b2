/* Tables for a terminal, and amounts as a person reads them. */
#include "harness.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/quantity.h"
#include "tool/report/columns.h"
#include "tool/text.h"

#define EURO  "\xE2\x82\xAC" /* one column */
#define HAN   "\xE6\xBC\xA2" /* two */
#define DOTS  "\xE2\x80\xA6"
#define ACUTE "e\xCC\x81" /* a letter and a combining accent: one */

static const struct bhi_column columns[] = {
    {.name = "A", .most = 6}, {.name = "N", .right = true}, {.name = "TEXT"}};

static char *table(const char *const (*rows)[3], size_t count, int width) {
    char *text = NULL;
    size_t size;
    struct bhi_columns columns_table;
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    bhi_columns_init(&columns_table, columns, 3);
    for (size_t i = 0; i < count; i++) {
        bhi_columns_row(&columns_table, rows[i], BHI_TONE_BAD);
    }
    BHT_TRUE(bhi_columns_print(&columns_table, stream, 2, width));
    bhi_columns_free(&columns_table);
    BHT_EQ(fclose(stream), 0);
    return bht_own(text);
}

TEST(columns_are_aligned) {
    static const char *const rows[][3] = {{"ab", "1", "short"},
                                          {HAN HAN, "12", "\x1b[31mred"},
                                          {EURO ACUTE, "123", ""},
                                          {HAN HAN HAN HAN, "4", "cut"},
                                          {"abcdefgh", "5", "cut"}};
    char *text = table(rows, 5, 80);
    BHT_STR_EQ(text, "  A         N  TEXT\n"
                     "  ab        1  short\n"
                     "  " HAN HAN "     12  ?[31mred\n"
                     "  " EURO ACUTE "      123\n"
                     "  " HAN HAN DOTS "     4  cut\n"
                     "  abcde" DOTS "    5  cut\n");
}

/* What greps a table wants a row on a line, and all of it. */
TEST(a_pipe_gets_whole_rows) {
    static const char *const rows[][3] = {
        {"abcdefgh", "1", "one two three four five six seven eight nine ten eleven twelve"}};
    int ends[2];
    BHT_EQ(pipe(ends), 0);
    FILE *stream = fdopen(ends[1], "w");
    BHT_NE(stream, NULL);
    char *text = table(rows, 1, bhi_columns_width(stream));
    BHT_STR_EQ(text,
               "  A         N  TEXT\n"
               "  abcdefgh  1  one two three four five six seven eight nine ten eleven twelve\n");
    fclose(stream);
    close(ends[0]);
}

/* One function knows the width: $COLUMNS, that of the terminal, 80. */
TEST(a_terminal_and_columns_give_the_width) {
    static const struct {
        unsigned short terminal;
        const char *columns;
        int width;
    } cases[] = {{62, NULL, 62},   {62, "", 62},         {62, "0", 62},     {62, "wide", 62},
                 {62, "51", 51},   {0, NULL, 80},        {0, "33", 33},     {20, NULL, 20},
                 {62, "132", 132}, {62, "65600", 10000}, {62, "-1", 10000}, {300, NULL, 300}};
    const int leader = posix_openpt(O_RDWR | O_NOCTTY);
    BHT_GE(leader, 0);
    BHT_EQ(grantpt(leader), 0);
    BHT_EQ(unlockpt(leader), 0);
    FILE *terminal = fopen(ptsname(leader), "we");
    BHT_NE(terminal, NULL);
    int ends[2];
    BHT_EQ(pipe(ends), 0);
    FILE *other = fdopen(ends[1], "w");
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct winsize size = {.ws_row = 24, .ws_col = cases[i].terminal};
        BHT_EQ(ioctl(leader, TIOCSWINSZ, &size), 0);
        BHT_EQ(cases[i].columns ? setenv("COLUMNS", cases[i].columns, 1) : unsetenv("COLUMNS"), 0);
        BHT_EQ(bhi_text_width(terminal), cases[i].width);
        BHT_EQ(bhi_columns_width(terminal), cases[i].width);
        BHT_EQ(bhi_columns_width(other), BHI_COLUMNS_WHOLE);
    }
    BHT_EQ(unsetenv("COLUMNS"), 0);
    BHT_EQ(bhi_text_width(other), 80);
    fclose(other);
    close(ends[0]);
    fclose(terminal);
    close(leader);
}

TEST(last_column_is_wrapped) {
    static const char *const rows[][3] = {
        {"a", "1", "one two three four five six seven eight nine ten eleven twelve thirteen"}};
    char *text = table(rows, 1, 34);
    BHT_STR_EQ(text, "  A  N  TEXT\n"
                     "  a  1  one two three four five\n"
                     "        six seven eight nine ten\n"
                     "        eleven twelve thirteen\n");
}

TEST(long_text_is_whole) {
    char word[400];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = 0;
    const char *const rows[][3] = {{"a", "1", word}};
    char *text = table(rows, 1, 38);
    size_t found = 0;
    for (const char *at = text; (at = strchr(at, 'x')); at++) {
        found++;
    }
    BHT_EQ(found, sizeof word - 1);
    BHT_EQ(strstr(text, DOTS), NULL);
}

/* Without room beside the others the last column has lines of its own. */
TEST(narrow_terminal) {
    static const char *const rows[][3] = {{"abcdef", "123456789", "one two three four five six"}};
    char *text = table(rows, 1, 30);
    BHT_STR_EQ(text, "  A               N\n"
                     "  abcdef  123456789\n"
                     "    one two three four five\n"
                     "    six\n");
    (void)table(rows, 1, 1);
}

TEST(amounts) {
    static const struct {
        uint64_t ns;
        const char *text;
    } times[] = {{0, "0 us"},
                 {999, "999 ns"},
                 {1500, "1.50 us"},
                 {999499, "999 us"},
                 {999500, "1.00 ms"},
                 {12345678, "12.3 ms"},
                 {999400000, "999 ms"},
                 {999500000, "1.00 s"},
                 {59949999999u, "59.9 s"},
                 {59950000000u, "1 min 00 s"},
                 {3599000000000u, "59 min 59 s"},
                 {3600000000000u, "1 h 00 min"},
                 {90000000000000u, "1 d 01 h"},
                 {UINT64_MAX, "213503 d 23 h"}};
    static const struct {
        uint64_t count;
        const char *text;
    } counts[] = {{0, "0"},
                  {999, "999"},
                  {1000, "1,000"},
                  {1234567, "1,234,567"},
                  {UINT64_MAX, "18,446,744,073,709,551,615"}};
    char out[BHI_QUANTITY];
    for (size_t i = 0; i < BHT_COUNT(times); i++) {
        BHT_STR_EQ(bhi_quantity_time(out, times[i].ns), times[i].text);
    }
    for (size_t i = 0; i < BHT_COUNT(counts); i++) {
        BHT_STR_EQ(bhi_quantity_count(out, counts[i].count), counts[i].text);
    }
    BHT_STR_EQ(bhi_quantity_rate(out, 8, 4000000000u), "2.00 a second");
    BHT_STR_EQ(bhi_quantity_rate(out, 994, 10000000000000u), "5.96 a minute");
    BHT_STR_EQ(bhi_quantity_rate(out, 995, 10000000000000u), "0.10 a second");
    BHT_STR_EQ(bhi_quantity_rate(out, 0, 1000000000u), "0.00 a second");
    BHT_STR_EQ(bhi_quantity_rate(out, 10000, 1000000000u), "10,000 a second");
    BHT_STR_EQ(bhi_quantity_rate(out, UINT64_MAX, 1), "1.84e+28 a second");
    BHT_STR_EQ(bhi_quantity_rate(out, 8, 0), "-");
    BHT_STR_EQ(bhi_quantity_bytes(out, 1023), "1023 bytes");
    BHT_STR_EQ(bhi_quantity_bytes(out, 10 << 20), "10.0 MiB");
    BHT_STR_EQ(bhi_quantity_bytes(out, UINT64_MAX), "16.0 EiB");
    BHT_STR_EQ(bhi_quantity_si(out, 2.5e9, "op/s"), "2.5 Gop/s");
    BHT_STR_EQ(bhi_quantity_si(out, 999.6, "B"), "1 kB");
    BHT_STR_EQ(bhi_quantity_si(out, 1e-6, "s"), "1 us");
    BHT_STR_EQ(bhi_quantity_si(out, 1e-12, "s"), "0.001 ns");
    BHT_STR_EQ(bhi_quantity_si(out, 1e24, "B"), "1e+06 EB");
    BHT_STR_EQ(bhi_quantity_si(out, 65536, ""), "65536");
    BHT_STR_EQ(bhi_quantity_si(out, 0.125, ""), "0.125");
    BHT_STR_EQ(bhi_quantity_si(out, 1.5e9, ""), "1.5e+09");
    BHT_STR_EQ(bhi_quantity_date(out, 0), "-");
    BHT_STR_EQ(bhi_quantity_date(out, 1000000000000000000u), "2001-09-09 01:46:40 UTC");
    BHT_STR_EQ(bhi_quantity_tick(out, 0, 5), "0");
    BHT_STR_EQ(bhi_quantity_tick(out, 7000000000u, 61000000000u), "0:07");
    BHT_STR_EQ(bhi_quantity_tick(out, 7207000000000u, 7207000000000u), "2:00:07");
}

BHT_AT_START(bht_default_flags(BHT_ALLOW_MAPPINGS)) /* a locale stays loaded */
