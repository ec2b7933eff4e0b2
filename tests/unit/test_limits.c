#include "base/detail.h"
#include "base/limits.h"
#include "harness.h"
#include <errno.h>
#include <sys/resource.h>

/* Each test has a process of its own, so a limit stays in it. */
static void set_limit(__rlimit_resource_t resource, uint64_t bytes) {
    struct rlimit limit;
    BHT_EQ(getrlimit(resource, &limit), 0);
    limit.rlim_cur = bytes;
    BHT_EQ(setrlimit(resource, &limit), 0);
}

static void test_no_limit_is_named(void) {
    char text[BHI_LIMIT_TEXT];
    struct rlimit limit;
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    if (limit.rlim_cur != RLIM_INFINITY) {
        return;
    }
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), "");
}

static void test_files(void) {
    static const char words[] =
        "; files and shared memory are limited to 2000 KiB: raise that (ulimit -f)";
    char text[BHI_LIMIT_TEXT];
    bh_detail detail;
    set_limit(RLIMIT_FSIZE, 2000 << 10);
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), words);
    BHT_STR_EQ(bhi_limit_named(ENOSPC, text), "");
    BHT_STR_EQ(bhi_limit_named(0, text), "");
    /* Each message of the library with that errno ends with it. */
    BHT_EQ(bhi_fail(&detail, BH_SYSTEM, EFBIG, "call: %d bytes", 7), BH_SYSTEM);
    BHT_STR_HAS(detail.message, "call: 7 bytes: ");
    BHT_STR_HAS(detail.message, words);
    (void)bhi_fail(&detail, BH_SYSTEM, ENOSPC, "call");
    BHT_TRUE(!strstr(detail.message, "ulimit"));
}

static void test_address_space(void) {
    static const char words[] =
        "; the address space is limited to 123456 MiB: raise that (ulimit -v)";
    char text[BHI_LIMIT_TEXT];
    const uint64_t limit = UINT64_C(123456) << 20;
    if (BHT_ASAN || bhi_limit_of_address_space() != UINT64_MAX) { /* ASan needs all of it */
        return;
    }
    BHT_STR_EQ(bhi_limit_address_space(text), "");
    BHT_STR_EQ(bhi_limit_named(ENOMEM, text), "");
    set_limit(RLIMIT_AS, limit);
    BHT_EQ(bhi_limit_of_address_space(), limit);
    BHT_STR_EQ(bhi_limit_address_space(text), words);
    BHT_STR_EQ(bhi_limit_named(ENOMEM, text), words);
    BHT_STR_EQ(bhi_limit_named(EAGAIN, text), words);
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), "");
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_no_limit_is_named),
        BHT_TEST(test_files),
        BHT_TEST(test_address_space),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
