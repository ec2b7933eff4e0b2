/* What is remembered of the kernels that tenants use: which most, how many, for how long. */
#include "harness.h"
#include "supervisor/kernel/usage.h"

#include <stdio.h>

static struct bhi_usages usages;

static void begin(void) {
    bhi_usages_init(&usages);
}

static void end(void) {
    bhi_usages_fini(&usages);
    BHT_EQ(usages.count, 0);
}

BHT_AT_START(bht_around(begin, end))

static bool use(const char *tenant, uint64_t id) {
    struct bhi_used_kernel kernel = {.id = id, .compile_ns = 10 * id, .uses = 77, .barred = true};
    memcpy(kernel.hash, &id, sizeof id);
    snprintf(kernel.name, sizeof kernel.name, "k%llu", (unsigned long long)id);
    return bhi_usage_note(&usages, "d", tenant, &kernel);
}

static const struct bhi_used_kernel *find(const char *tenant, uint64_t id) {
    struct bhi_usage *usage = bhi_usage_find(&usages, "d", tenant);
    return usage ? bhi_usage_kernel(usage, id) : NULL;
}

/* Of all kernels of a tenant, by their own counts. */
static uint32_t sum(const struct bhi_usage *usage) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < usage->count; i++) {
        uses += usage->kernels[i].uses;
    }
    return uses;
}

TEST(uses_are_counted) {
    BHT_TRUE(!use("a", 1)); /* once is not worth a spare's time */
    BHT_TRUE(use("a", 1));
    BHT_TRUE(!use("a", 1)); /* no news */
    BHT_TRUE(!use("a", 2));
    const struct bhi_used_kernel *kernel = find("a", 1);
    BHT_TRUE(kernel);
    BHT_EQ(kernel->uses, 3);
    BHT_TRUE(!kernel->barred);
    BHT_EQ(kernel->compile_ns, 10);
    BHT_STR_HAS(kernel->name, "k1");
    BHT_EQ(bhi_usage_find(&usages, "d", "a")->uses, 4);
    /* Each tenant and each device has its own. */
    BHT_TRUE(!find("b", 1));
    BHT_TRUE(!bhi_usage_find(&usages, "e", "a"));
    BHT_TRUE(!use("b", 1));
    BHT_EQ(find("a", 1)->uses, 3);
}

/* Old uses count less and less, and what is not used any more is forgotten. */
TEST(uses_age) {
    use("a", 1);
    for (uint32_t i = 2; i < BHI_USAGE_PERIOD; i++) {
        use("a", 2);
    }
    BHT_EQ(find("a", 2)->uses, BHI_USAGE_PERIOD - 2);
    BHT_TRUE(use("a", 2)); /* the order may have changed */
    BHT_EQ(find("a", 2)->uses, (BHI_USAGE_PERIOD - 1) / 2);
    BHT_TRUE(!find("a", 1));
    const struct bhi_usage *usage = bhi_usage_find(&usages, "d", "a");
    BHT_EQ(usage->uses, sum(usage));
}

TEST(the_least_used_gives_way) {
    for (uint64_t id = 1; id <= BHI_USAGE_KERNELS; id++) {
        use("a", id);
        use("a", id);
    }
    use("a", 100);
    const struct bhi_usage *usage = bhi_usage_find(&usages, "d", "a");
    BHT_EQ(usage->count, BHI_USAGE_KERNELS);
    BHT_EQ(usage->uses, sum(usage));
    BHT_TRUE(find("a", 100));
    use("a", 101); /* of all, 100 has been used least */
    BHT_TRUE(!find("a", 100));
    BHT_TRUE(find("a", 101));
    BHT_EQ(usage->count, BHI_USAGE_KERNELS);
    for (uint64_t id = 2; id <= BHI_USAGE_KERNELS; id++) {
        BHT_TRUE(find("a", id));
    }
}

/* However many kernels and tenants there are. */
TEST(the_table_is_bounded) {
    for (int i = 0; i < 5000; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i % 500);
        use(tenant, (uint64_t)i + 1);
        use("steady", (uint64_t)i + 1);
    }
    uint32_t count = 0;
    BHI_LIST_EACH(node, &usages.all) {
        BHT_LE(BHI_CONTAINER(node, struct bhi_usage, link)->count, BHI_USAGE_KERNELS);
        count++;
    }
    BHT_EQ(count, BHI_USAGE_TENANTS);
    BHT_EQ(usages.count, BHI_USAGE_TENANTS);
    /* The one with the oldest news went first. */
    BHT_TRUE(find("steady", 5000));
    BHT_TRUE(bhi_usage_find(&usages, "d", "t499"));
    BHT_TRUE(!bhi_usage_find(&usages, "d", "t400"));
}

TEST(what_has_ended_spares_is_barred) {
    for (int i = 0; i < 6; i++) {
        use("a", 1);
        use("a", 2);
        use("b", 1);
    }
    struct bhi_usage *usage = bhi_usage_find(&usages, "d", "a");
    bhi_usage_ended_spare(usage, 1, true);
    BHT_TRUE(find("a", 1)->barred);
    BHT_TRUE(!find("b", 1)->barred); /* no tenant's business but its own */
    BHT_TRUE(!use("a", 1));
    BHT_TRUE(!use("a", 1)); /* never again worth it */
    /* A death that proves nothing costs its uses; the second one is too many. */
    bhi_usage_ended_spare(usage, 2, false);
    BHT_TRUE(!find("a", 2)->barred);
    BHT_EQ(find("a", 2)->uses, 0);
    BHT_TRUE(!use("a", 2));
    BHT_TRUE(use("a", 2));
    bhi_usage_ended_spare(usage, 2, false);
    BHT_TRUE(find("a", 2)->barred);
    BHT_EQ(usage->uses, sum(usage));
    bhi_usage_ended_spare(usage, 99, true); /* forgotten meanwhile */
    /* Bars outlive what ages and what comes. */
    for (uint64_t id = 10; id < 10 + 3 * BHI_USAGE_PERIOD; id++) {
        use("a", id);
    }
    BHT_TRUE(find("a", 1) && find("a", 1)->barred);
    BHT_TRUE(find("a", 2) && find("a", 2)->barred);
}

TEST(kernels_are_forgotten) {
    for (int i = 0; i < 3; i++) {
        use("a", 1);
        use("a", 2);
        use("a", 3);
        use("b", 1);
    }
    const uint64_t first = 1;
    uint8_t hash[32] = {0};
    memcpy(hash, &first, sizeof first);
    /* Refused: to one tenant. */
    bhi_usages_refuse(&usages, "a", hash);
    BHT_EQ(find("a", 1)->uses, 0);
    BHT_EQ(find("b", 1)->uses, 3);
    BHT_EQ(find("a", 2)->uses, 3);
    struct bhi_usage *usage = bhi_usage_find(&usages, "d", "a");
    BHT_EQ(usage->uses, 6);
    /* Gone: to all. */
    bhi_usage_ended_spare(usage, 1, true);
    bhi_usages_forget(&usages, 1);
    BHT_TRUE(!find("a", 1) && !find("b", 1));
    bhi_usages_forget(&usages, 3);
    BHT_TRUE(find("a", 2) && !find("a", 3));
    BHT_EQ(usage->uses, 3);
}
