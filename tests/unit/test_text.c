#include "base/text.h"
#include "harness.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Encodes |point| the way the tables in the Unicode standard say, without asking whether it may. */
static size_t encode(uint32_t point, uint8_t out[4]) {
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (uint8_t)(0xc0 | point >> 6);
        out[1] = (uint8_t)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | point >> 12);
        out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | point >> 18);
    out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (point & 0x3f));
    return 4;
}

static bool allowed(uint32_t point) {
    if (point == '\n' || point == '\t') {
        return true;
    }
    if (point < 0x20 || (point >= 0x7f && point <= 0x9f)) {
        return false;
    }
    /* Marks that reorder what is seen, and line ends that are not ours. */
    if (point == 0x061c || point == 0x200e || point == 0x200f ||
        (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069)) {
        return false;
    }
    /* What cannot be seen: Unicode's Default_Ignorable_Code_Point, marks of annotations, and the
     * Braille pattern without a dot. */
    static const uint32_t unseen[][2] = {
        {0xad, 0xad},     {0x34f, 0x34f},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
        {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2060, 0x206f},   {0x2800, 0x2800},
        {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++) {
        if (point >= unseen[i][0] && point <= unseen[i][1]) {
            return false;
        }
    }
    return (point < 0xd800 || point > 0xdfff) && point <= 0x10ffff;
}

TEST(test_every_code_point) {
    for (uint32_t point = 0; point < 0x111000; point++) {
        uint8_t bytes[4], out[4];
        size_t n = encode(point, bytes);
        size_t got = bhi_text_char(bytes, n, out);
        if (got != (allowed(point) ? n : 0)) {
            BHT_FAIL("U+%04X: %zu", point, got);
        }
        if (got) {
            BHT_MEM_EQ(out, bytes, n);
        }
        /* Cut off: never accepted. */
        for (size_t cut = 1; cut < n; cut++) {
            BHT_EQ(bhi_text_char(bytes, cut, out), 0);
        }
    }
}

/* Every 2-byte sequence, and what the standard calls ill-formed: a decoder that accepts one of
 * these disagrees with some reader downstream. */
TEST(test_ill_formed) {
    static const char *const bad[] = {
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff\xbf\xbf\xbf",
        "\x80\x80",
        "\xbf",
        "\xe2\x28\xa1",
        "\xe2\x82\x28",
        "\xf0\x9f\x28\x80",
        "\xc3\xc3",
    };
    uint8_t out[4];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        BHT_EQ(bhi_text_char((const uint8_t *)bad[i], strlen(bad[i]), out), 0);
    }
    for (uint32_t pair = 0; pair < 65536; pair++) {
        uint8_t bytes[2] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        bool two = bytes[0] >= 0xc2 && bytes[0] <= 0xdf && bytes[1] >= 0x80 && bytes[1] <= 0xbf &&
                   allowed((uint32_t)(bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f));
        bool one = bytes[0] < 0x80 && allowed(bytes[0]);
        BHT_EQ(bhi_text_char(bytes, 2, out), two ? 2 : one ? 1 : 0);
    }
    BHT_EQ(bhi_text_char((const uint8_t *)"a", 0, out), 0);
}

static void check_sanitised(const char *in, size_t length, size_t capacity, const char *expected) {
    char out[64];
    memset(out, 'X', sizeof out);
    bhi_text_sanitise(out, capacity, in, length);
    BHT_STR_EQ(out, expected);
    BHT_EQ(out[capacity], 'X');
}

TEST(test_sanitise) {
    check_sanitised("plain", 5, 32, "plain");
    check_sanitised("a\nb\tc", 5, 32, "a\nb\tc");
    check_sanitised("a\x1b[31mb\r\x07", 10, 32, "a?[31mb??");
    check_sanitised("a\0b", 3, 32, "a");
    check_sanitised("abc", 2, 32, "ab");
    check_sanitised("\xc3\xa9t\xc3\xa9", 5, 32, "\xc3\xa9t\xc3\xa9");
    check_sanitised("\xc3", 1, 32, "?");
    check_sanitised("\xc2\x9b", 2, 32, "?"); /* C1 control sequence introducer */
    check_sanitised("\xff\xfe", 2, 32, "??");
    check_sanitised("", 0, 32, "");
    /* Cut at a character, never in the middle of one. */
    check_sanitised("a\xe2\x82\xac", 4, 5, "a\xe2\x82\xac");
    check_sanitised("a\xe2\x82\xac", 4, 4, "a");
    check_sanitised("a\xe2\x82\xac", 4, 3, "a");
    check_sanitised("abc", 3, 3, "ab");
    check_sanitised("abc", 3, 1, "");
    char untouched = 'X';
    bhi_text_sanitise(&untouched, 0, "abc", 3);
    BHT_EQ(untouched, 'X');
}

/* T6: text of a worker, or a name, as it is shown in a line. */
TEST(test_line) {
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain", "plain"},
        {"two\nlines\r\nand a\ttab", "two lines  and a tab"},
        {"\nfirst", " first"},
        {"\x1b[2J\x07\x7f", "?[2J??"},
        {"a\xc2\x9bz", "a?z"},                    /* U+009B, a control sequence's start */
        {"a\xc2\x85z", "a?z"},                    /* U+0085, next line */
        {"a\xd8\x9cz", "a?z"},                    /* U+061C */
        {"\xe2\x80\x8e\xe2\x80\x8f", "??"},       /* U+200E, U+200F */
        {"\xe2\x80\xa8\xe2\x80\xa9", "??"},       /* U+2028, U+2029 */
        {"\xe2\x80\xaa\xe2\x80\xaezip", "??zip"}, /* U+202A, U+202E */
        {"x\xe2\x80\x8by\xef\xbb\xbf", "x?y?"},   /* U+200B, U+FEFF */
        {"\xe2\x81\xa6x\xe2\x81\xa9", "?x?"},     /* U+2066, U+2069 */
        {"\xe2\x80\x90\xe2\x81\x9f", "\xe2\x80\x90\xe2\x81\x9f"}, /* their neighbours may stay */
        {"\xff\xc3", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"}, /* letters */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64], same[64];
        bhi_text_line(out, sizeof out, rows[i].in, strlen(rows[i].in));
        BHT_STR_EQ(out, rows[i].out);
        BHT_EQ(bhi_text_is_line(rows[i].in), strcmp(rows[i].in, rows[i].out) == 0);
        BHT_TRUE(bhi_text_is_line(rows[i].out));
        strcpy(same, rows[i].in);
        bhi_text_line(same, sizeof same, same, strlen(same)); /* in place */
        BHT_STR_EQ(same, rows[i].out);
    }
}

/* Whatever comes in, what goes out is fit to be shown, and sanitising it again changes nothing. */
TEST(test_sanitise_random) {
    unsigned seed = 20240611;
    for (int round = 0; round < 20000; round++) {
        char in[48], out[40], again[40];
        size_t length = (size_t)rand_r(&seed) % sizeof in;
        size_t capacity = 1 + (size_t)rand_r(&seed) % (sizeof out - 1);
        for (size_t i = 0; i < length; i++) {
            in[i] = (char)(rand_r(&seed) % 3 ? 0x80 | rand_r(&seed) : 1 + rand_r(&seed) % 255);
        }
        bhi_text_sanitise(out, capacity, in, length);
        size_t n = strnlen(out, capacity);
        BHT_LT(n, capacity);
        for (size_t i = 0; i < n;) {
            uint8_t c[4];
            size_t step = bhi_text_char((const uint8_t *)out + i, n - i, c);
            BHT_GT(step, 0);
            i += step;
        }
        bhi_text_sanitise(again, capacity, out, n);
        BHT_STR_EQ(again, out);
    }
}

TEST(test_times) {
    char out[BHI_TEXT_TIME];
    BHT_STR_EQ(bhi_text_time(5000000, out), "5 ms");
    BHT_STR_EQ(bhi_text_time(1500000, out), "1500000 ns");
    BHT_STR_EQ(bhi_text_time(1000, out), "1000 ns");
}

TEST(test_first_error) {
    static const struct {
        const char *log, *line;
    } cases[] = {
        {"", ""},
        {"k.comp: warning: odd\n", "k.comp: warning: odd"},
        {"k.comp:4: error: 'x'", "k.comp:4: error: 'x'"},
        {"k.comp: warning: odd\nk.comp:4: error: 'x'\nk.comp:5: error: 'y'\n",
         "k.comp:4: error: 'x'"},
        {"\n\nerror: late\n", "error: late"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        size_t length, whole = strlen(cases[i].log);
        char *log = memcpy(malloc(whole + 1), cases[i].log, whole); /* no NUL is behind it */
        const char *line = bhi_text_first_error(log, whole, &length);
        BHT_EQ(length, strlen(cases[i].line));
        BHT_EQ(memcmp(line, cases[i].line, length), 0);
        free(log);
    }
}
