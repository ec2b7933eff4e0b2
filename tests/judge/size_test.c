/* Expressions in the sizes of a task. */
#include "judge/task/size.h"

#include "harness.h"

static const struct bhi_size_value values[] = {
    {"n", 100}, {"m", 7}, {"most", UINT64_MAX}, {"local_x", 64}};

static void expect(const char *text, uint64_t expected) {
    struct bhi_complaint complaint = {.text = ""};
    uint64_t got = 0;
    if (!bhi_size_compute(text, values, BHT_COUNT(values), &got, &complaint)) {
        BHT_FAIL("%s: %s", text, complaint.text);
    }
    if (got != expected) {
        BHT_FAIL("%s is %llu", text, (unsigned long long)got);
    }
}

static void refuse(const char *text, const char *why) {
    struct bhi_complaint complaint = {.text = ""};
    uint64_t got = 0;
    if (bhi_size_compute(text, values, BHT_COUNT(values), &got, &complaint)) {
        BHT_FAIL("%s is %llu", text, (unsigned long long)got);
    }
    BHT_STR_HAS(complaint.text, why);
}

TEST(what_it_computes) {
    expect("42", 42);
    expect(" n ", 100);
    expect("n*m", 700);
    expect("n + m * 2", 114);
    expect("(n + m) * 2", 214);
    expect("n - m - 3", 90);
    expect("n / m", 14);
    expect("n % m", 2);
    expect("100 / 7 * 7", 98);
    expect("ceildiv(n, local_x)", 2);
    expect("ceildiv(128, 64)", 2);
    expect("ceildiv(most, 2)", UINT64_C(1) << 63);
    expect("min(n, m) + max(n, m)", 107);
    expect("max(min(n, 3), 2)", 3);
    expect("most", UINT64_MAX);
    expect("18446744073709551615", UINT64_MAX);
}

TEST(what_it_refuses) {
    refuse("", "'': column 1: a number, a size or '(' was expected");
    refuse("k", "'k': column 1: there is no size 'k'");
    refuse("n +", "column 4: a number, a size or '(' was expected");
    refuse("n m", "column 3: an operator or the end was expected");
    refuse("n)", "column 2: an operator or the end was expected");
    refuse("(n", "column 3: ')' was expected");
    refuse("min(n)", "column 6: ',' was expected");
    refuse("ceildiv", "column 8: '(' was expected");
    refuse("-1", "column 1: a number, a size or '(' was expected");
    refuse("m - n", "column 3: less than 0");
    refuse("n / (m - 7)", "column 3: division by 0");
    refuse("n % 0", "column 3: division by 0");
    refuse("ceildiv(n, 0)", "column 1: division by 0");
    refuse("most + 1", "column 6: more than 64 bits");
    refuse("most * 2 / 2", "column 6: more than 64 bits");
    refuse("18446744073709551616", "column 1: more than 64 bits");
    refuse("n * 1.5", "an operator or the end was expected");
}

TEST(it_does_not_exhaust_the_stack) {
    static char text[100001];
    memset(text, '(', sizeof text - 1);
    refuse(text, "too many parentheses");
    enum { MOST = 31 }; /* and the whole is one more */
    for (int deep = MOST; deep <= MOST + 1; deep++) {
        memset(text, '(', (size_t)deep);
        text[deep] = 'n';
        memset(text + deep + 1, ')', (size_t)deep);
        text[2 * deep + 1] = '\0';
        if (deep == MOST) {
            expect(text, 100);
        } else {
            refuse(text, "too many parentheses");
        }
    }
    /* It is the depth that counts, not the number. */
    expect("(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)"
           "+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)+(1)",
           40);
}

TEST(names) {
    BHT_TRUE(bhi_size_is_name("n"));
    BHT_TRUE(bhi_size_is_name("_batch2"));
    BHT_TRUE(bhi_size_is_name("abcdefghijklmnopqrstuvwxyz_1234"));
    BHT_TRUE(!bhi_size_is_name("abcdefghijklmnopqrstuvwxyz_12345"));
    BHT_TRUE(!bhi_size_is_name(""));
    BHT_TRUE(!bhi_size_is_name("2n"));
    BHT_TRUE(!bhi_size_is_name("n-m"));
    BHT_TRUE(!bhi_size_is_name("min"));
    BHT_TRUE(bhi_size_is_name("minimum"));
}
