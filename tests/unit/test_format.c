/* Messages: formatted as printf does, and cut between two characters. */
#include "base/format.h"
#include "base/text.h"
#include "harness.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Numbers that %hd and %hhu cut are given on purpose. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wformat"
#endif

/* Both write the same. */
#define EXPECT_SAME(...)                                                                           \
    do {                                                                                           \
        char ours[256], theirs[256];                                                               \
        const int length = bhi_format(ours, sizeof ours, __VA_ARGS__);                             \
        BHT_EQ(length, snprintf(theirs, sizeof theirs, __VA_ARGS__));                              \
        BHT_STR_EQ(ours, theirs);                                                                  \
    } while (0)

TEST(it_formats_as_printf_does) {
    EXPECT_SAME("%s", "");
    EXPECT_SAME("plain, and 100%% of it");
    EXPECT_SAME("%d %i %u %x %X %o %c", -1, 2, 3u, 0xabu, 0xabu, 8u, 'c');
    EXPECT_SAME("%ld %lu %lld %llu %zu %jd %td", -1L, 2ul, -3LL, UINT64_MAX + 0ull, sizeof(int),
                (intmax_t)-4, (ptrdiff_t)5);
    EXPECT_SAME("%hhu %hu %hhd %hd", 300u, 70000u, 300, 70000);
    EXPECT_SAME("%" PRIu64 " %" PRIx32, UINT64_C(1) << 63, UINT32_C(77));
    EXPECT_SAME("%5d|%-5d|%05d|%+d|% d|%.3d|%#x|%-8llu|", 7, 7, 7, 7, 7, 7, 7u, 8ull);
    EXPECT_SAME("%*d|%-*d|%*d|%.*d", 5, 7, 5, 7, -5, 7, 3, 7);
    EXPECT_SAME("%f %.3g %e %-9.2f| %g", 1.5, 2.0 / 3, 1e100, 3.14159, 1e300);
    EXPECT_SAME("%s|%8s|%-8s|%.2s|%8.2s|%-8.2s|%.*s|%.*s|%*s|", "text", "text", "text", "text",
                "text", "text", 3, "text", -1, "text", 6, "text");
    EXPECT_SAME("%p", (void *)0x1234);
}

TEST(a_precision_cuts_between_characters) {
    static const struct {
        int precision;
        const char *text, *cut;
    } cases[] = {
        {3, "abcd", "abc"},
        {2, "aé", "a"}, /* two bytes */
        {3, "aé", "aé"},
        {1, "é", ""},
        {3, "a€", "a"}, /* three */
        {2, "a€", "a"},
        {4, "a€", "a€"},
        {4, "a\U0001f600b", "a"}, /* four */
        {5, "a\U0001f600b", "a\U0001f600"},
        {6, "a\U0001f600b", "a\U0001f600b"},
        {9, "a€", "a€"},
        {4, "a\x80\x80\x80\x80", "a\x80\x80\x80"}, /* no character of UTF-8 */
    };
    char out[64];
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        bhi_format(out, sizeof out, "<%.*s>", cases[i].precision, cases[i].text);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "<%s>", cases[i].cut);
        BHT_STR_EQ(out, wanted);
    }
    /* A text without a NUL is not read past its precision. */
    const char two[2] = {'a', 'b'};
    bhi_format(out, sizeof out, "%.*s", 2, two);
    BHT_STR_EQ(out, "ab");
}

/* Whatever the room, it is filled with whole characters, and valid. */
TEST(the_end_of_the_room_cuts_between_characters) {
    static const char whole[] = "é 7 €uro \U0001f600 ende";
    char out[sizeof whole + 8];
    for (size_t room = 1; room < sizeof out; room++) {
        memset(out, 'x', sizeof out);
        const int length = bhi_format(out, room, "%s %d €uro %s", "é", 7, "\U0001f600 ende");
        BHT_EQ((size_t)length, strlen(out));
        BHT_LT((size_t)length, room);
        BHT_TRUE(bhi_text_is_line(out));
        BHT_EQ(memcmp(out, whole, (size_t)length), 0);
        BHT_LE(sizeof whole - 1 < room ? 0 : room - 1 - (size_t)length, 3);
        BHT_EQ(out[room], 'x');
    }
    out[0] = 'x';
    BHT_EQ(bhi_format(out, 0, "%s", "text"), 0);
    BHT_EQ(out[0], 'x');
}
