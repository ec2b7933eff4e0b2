#include "base/detail.h"
#include "base/limits.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Each test has a process of its own, so a limit stays in it. */
static void set_limit(__rlimit_resource_t resource, uint64_t bytes) {
    struct rlimit limit;
    BHT_EQ(getrlimit(resource, &limit), 0);
    limit.rlim_cur = bytes;
    BHT_EQ(setrlimit(resource, &limit), 0);
}

TEST(test_no_limit_is_named) {
    char text[BHI_LIMIT_TEXT];
    struct rlimit limit;
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    if (limit.rlim_cur != RLIM_INFINITY) {
        return;
    }
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), "");
}

TEST(test_files) {
    static const char words[] =
        "; files and shared memory are limited to 2000 KiB: raise that (ulimit -f)";
    char text[BHI_LIMIT_TEXT];
    bh_detail detail;
    set_limit(RLIMIT_FSIZE, 2000 << 10);
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), words);
    BHT_STR_EQ(bhi_limit_named(ENOSPC, text), "");
    BHT_STR_EQ(bhi_limit_named(0, text), "");
    /* Each message of the library with that errno ends with it. */
    BHT_EQ(BHI_FAIL(&detail, "call", BH_REASON_BYTES, .value = 7, .sys_errno = EFBIG), BH_SYSTEM);
    BHT_STR_HAS(detail.message, "call: 7 bytes: ");
    BHT_STR_HAS(detail.message, words);
    (void)BHI_FAIL(&detail, "call", BH_REASON_BYTES, .sys_errno = ENOSPC);
    BHT_TRUE(!strstr(detail.message, "ulimit"));
}

TEST(test_descriptors) {
    char text[BHI_LIMIT_TEXT];
    set_limit(RLIMIT_NOFILE, 77);
    BHT_STR_EQ(bhi_limit_named(EMFILE, text),
               "; open files are limited to 77: raise that (ulimit -n)");
}

TEST(test_address_space) {
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
    BHT_STR_EQ(bhi_limit_named(EFBIG, text), "");
}

/* What is listed, and what has no limit is not. */
TEST(test_all_of_them) {
    static const struct rlimit seconds = {3, 7};
    char before[400], after[400];
    const int count = bhi_limits_list(before, sizeof before);
    if (strstr(before, "ulimit -t")) {
        return;
    }
    BHT_EQ(setrlimit(RLIMIT_CPU, &seconds), 0);
    BHT_EQ(bhi_limits_list(after, sizeof after), count + 1);
    BHT_STR_HAS(after, "processor time of a worker 7 s (ulimit -t)");
    BHT_EQ(bhi_limit_of_workers(RLIMIT_CPU), 7);
}

/* The lower one of the user's limit and of those of the groups up to the root, v1 and v2. */
TEST(test_processes) {
    static const struct {
        const char *cgroup, *folder, *content;
        uint64_t user;
        const char *words;
    } rows[] = {
        {"0::/a/b\n", "a/b/pids.max", "max\n", 77, "limited to 77: raise that (ulimit -u)"},
        {"0::/a/b\n", "a/pids.max", "12\n", 77, "limited to 12: raise that (pids.max of cgroup)"},
        {"0::/\n", "pids.max", "12\n", 77, "limited to 12: raise that (pids.max of cgroup)"},
        {"0::/a/b\n", "pids.max", "12\n", 77, "limited to 12: raise that (pids.max of cgroup)"},
        {"8:pids:/a\n0::/\n", "pids/a/pids.max", "9\n", 77, "limited to 9: raise that (pids.max"},
        {"8:memory:/a\n", "pids/a/pids.max", "9\n", 77, "limited to 77: raise that (ulimit -u)"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char text[BHI_LIMIT_TEXT], cgroup[64];
        const char *folder = bht_folder();
        const struct rlimit limit = {rows[i].user, rows[i].user};
        bht_put(rows[i].cgroup, "%s/cgroup", folder);
        bht_put(rows[i].content, "%s/%s", folder, rows[i].folder);
        snprintf(cgroup, sizeof cgroup, "%s/cgroup", folder);
        BHT_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
        BHT_STR_HAS(bhi_limit_processes_from(cgroup, folder, text), rows[i].words);
    }
}
