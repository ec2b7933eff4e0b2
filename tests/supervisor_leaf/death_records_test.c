/* What is remembered of kernels that have ended workers. */
#include "harness.h"
#include "supervisor/kernel/suspects.h"

#define KEEP 1000u

static bh_verdict death_of(uint32_t kernel, uint64_t event) {
    bh_verdict verdict = {.status = BH_WORKER_SIGNAL, .signal = 11, .event = event};
    memcpy(verdict.kernel_hash, &kernel, sizeof kernel);
    strcpy(verdict.kernel_name, "k");
    strcpy(verdict.message, "it died");
    return verdict;
}

static const struct bhi_suspect *held(struct bhi_suspects *suspects, const char *tenant,
                                      uint32_t kernel, uint64_t now_ns) {
    bh_verdict verdict = death_of(kernel, 0);
    return bhi_suspects_held(suspects, tenant, verdict.kernel_hash, now_ns);
}

static bool note(struct bhi_suspects *suspects, const char *tenant, uint32_t kernel,
                 uint64_t now_ns) {
    bh_verdict verdict = death_of(kernel, 10 + now_ns);
    return bhi_suspects_note(suspects, tenant, &verdict, false, now_ns);
}

static void the_second_death_is_one_too_many(void) {
    struct bhi_suspects suspects;
    bhi_suspects_init(&suspects, 2, KEEP);
    BHT_TRUE(!note(&suspects, "a", 1, 0));
    BHT_TRUE(held(&suspects, "a", 1, 0) == NULL);
    BHT_TRUE(note(&suspects, "a", 1, 1));
    BHT_TRUE(!note(&suspects, "a", 1, 2)); /* it was held before */
    const struct bhi_suspect *suspect = held(&suspects, "a", 1, 2);
    BHT_TRUE(suspect != NULL);
    BHT_EQ(suspect->deaths, 3);
    BHT_EQ(suspect->origin, 12);
    BHT_EQ(suspect->signal, 11);
    BHT_EQ(bhi_suspects_expiry(&suspects, suspect), 2 + KEEP);
    /* Another kernel, whose hash begins alike, and another tenant are nothing to it. */
    BHT_TRUE(held(&suspects, "a", 1 | 1u << 8, 2) == NULL);
    BHT_TRUE(held(&suspects, "", 1, 2) == NULL);
    BHT_TRUE(!note(&suspects, "b", 1, 2));
    bhi_suspects_fini(&suspects);
}

static void one_compile_is_enough(void) {
    struct bhi_suspects suspects;
    bhi_suspects_init(&suspects, 0, KEEP); /* no quarantine */
    BHT_TRUE(!note(&suspects, "a", 1, 0));
    BHT_TRUE(!note(&suspects, "a", 1, 0));
    BHT_TRUE(!note(&suspects, "a", 1, 0));
    BHT_EQ(suspects.count, 0);
    bh_verdict verdict = death_of(1, 7);
    verdict.status = BH_COMPILE_FAILED;
    BHT_TRUE(bhi_suspects_note(&suspects, "a", &verdict, true, 0));
    bh_quarantined entry;
    BHT_EQ(bhi_suspects_list(&suspects, &entry, 1, 0), 1);
    BHT_EQ(entry.status, BH_COMPILE_FAILED);
    BHT_EQ(entry.cause, BH_COMPILE_FAILED);
    BHT_EQ(entry.origin, 7);
    BHT_EQ(entry.deaths, 1);
    bhi_suspects_fini(&suspects);
    bhi_suspects_init(&suspects, 2, 0); /* nothing is remembered */
    BHT_TRUE(!bhi_suspects_note(&suspects, "a", &verdict, true, 0));
    BHT_EQ(suspects.count, 0);
    bhi_suspects_fini(&suspects);
}

static void deaths_are_forgotten(void) {
    struct bhi_suspects suspects;
    bhi_suspects_init(&suspects, 2, KEEP);
    note(&suspects, "a", 1, 0);
    note(&suspects, "a", 1, 10);
    note(&suspects, "a", 2, 5);
    BHT_TRUE(held(&suspects, "a", 1, 9 + KEEP) != NULL);
    BHT_TRUE(held(&suspects, "a", 1, 10 + KEEP) == NULL);
    BHT_EQ(suspects.count, 0);
    /* Two that lie so far apart do not add up. */
    BHT_TRUE(!note(&suspects, "a", 2, 5 + 2 * KEEP));
    bhi_suspects_fini(&suspects);
    bhi_suspects_init(&suspects, 1, BH_FOREVER);
    note(&suspects, "a", 1, 100);
    BHT_EQ(bhi_suspects_expiry(&suspects, held(&suspects, "a", 1, 100)), BH_FOREVER);
    BHT_TRUE(held(&suspects, "a", 1, BH_FOREVER - 1) != NULL);
    bhi_suspects_fini(&suspects);
}

static void one_is_released_or_all_of_a_tenant(void) {
    struct bhi_suspects suspects;
    bhi_suspects_init(&suspects, 1, KEEP);
    for (uint32_t kernel = 1; kernel <= 3; kernel++) {
        note(&suspects, "a", kernel, kernel);
        note(&suspects, "b", kernel, kernel);
    }
    bh_quarantined entries[8];
    BHT_EQ(bhi_suspects_list(&suspects, entries, 8, 3), 6);
    BHT_STR_EQ(entries[5].tenant, "b");
    BHT_EQ(entries[5].kernel_hash[0], 3);
    BHT_EQ(bhi_suspects_list(&suspects, entries, 0, 3), 6);
    bh_verdict verdict = death_of(2, 0);
    bhi_suspects_forget(&suspects, "a", verdict.kernel_hash);
    BHT_TRUE(held(&suspects, "a", 2, 3) == NULL && held(&suspects, "a", 1, 3) != NULL &&
             held(&suspects, "b", 2, 3) != NULL);
    bhi_suspects_forget(&suspects, "b", NULL);
    BHT_EQ(bhi_suspects_list(&suspects, entries, 8, 3), 2);
    bhi_suspects_fini(&suspects);
}

/* What has died once gives way to others first, then the oldest. */
static void the_table_is_bounded(void) {
    struct bhi_suspects suspects;
    bhi_suspects_init(&suspects, 2, BH_FOREVER);
    note(&suspects, "a", 0, 0);
    note(&suspects, "a", 0, 0);
    for (uint32_t kernel = 1; kernel < 3 * BHI_SUSPECTS; kernel++)
        note(&suspects, "a", kernel, kernel);
    BHT_EQ(suspects.count, BHI_SUSPECTS);
    BHT_TRUE(held(&suspects, "a", 0, 0) != NULL);
    for (uint32_t kernel = 10000; kernel < 10000 + BHI_SUSPECTS; kernel++) {
        note(&suspects, "a", kernel, kernel);
        note(&suspects, "a", kernel, kernel);
    }
    BHT_EQ(suspects.count, BHI_SUSPECTS);
    BHT_TRUE(held(&suspects, "a", 0, 20000) == NULL);
    BHT_TRUE(held(&suspects, "a", 10000, 20000) != NULL);
    bhi_suspects_fini(&suspects);
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(the_second_death_is_one_too_many),
        BHT_TEST(one_compile_is_enough),
        BHT_TEST(deaths_are_forgotten),
        BHT_TEST(one_is_released_or_all_of_a_tenant),
        BHT_TEST(the_table_is_bounded),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
