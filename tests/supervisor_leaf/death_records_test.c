/* What is remembered of kernels that have ended workers. */
#include "harness.h"
#include "supervisor/kernel/death_records.h"

#define KEEP 1000u

static struct bhi_death_records records;

static void set_up(void) {
    bhi_death_records_init(&records, 2, KEEP);
}

/* Anew. */
static void begin(uint32_t most_deaths, uint64_t keep_ns) {
    bhi_death_records_fini(&records);
    bhi_death_records_init(&records, most_deaths, keep_ns);
}

static void end(void) {
    bhi_death_records_fini(&records);
}

BHT_AT_START(bht_around(set_up, end))

static bh_verdict death_of(uint32_t kernel, uint64_t event) {
    bh_verdict verdict = {.status = BH_WORKER_SIGNAL, .signal = 11, .event = event};
    memcpy(verdict.kernel_hash, &kernel, sizeof kernel);
    strcpy(verdict.kernel_name, "k");
    strcpy(verdict.message, "it died");
    return verdict;
}

static const struct bhi_death_record *held(const char *tenant, uint32_t kernel, uint64_t now_ns) {
    bh_verdict verdict = death_of(kernel, 0);
    return bhi_death_records_held(&records, tenant, verdict.kernel_hash, now_ns);
}

static bool note(const char *tenant, uint32_t kernel, uint64_t now_ns) {
    bh_verdict verdict = death_of(kernel, 10 + now_ns);
    return bhi_death_records_note(&records, tenant, &verdict, false, now_ns);
}

TEST(the_second_death_is_one_too_many) {
    BHT_TRUE(!note("a", 1, 0));
    BHT_TRUE(!held("a", 1, 0));
    BHT_TRUE(note("a", 1, 1));
    BHT_TRUE(!note("a", 1, 2)); /* it was held before */
    const struct bhi_death_record *record = held("a", 1, 2);
    BHT_TRUE(record);
    BHT_EQ(record->deaths, 3);
    BHT_EQ(record->origin, 12);
    BHT_EQ(record->signal, 11);
    BHT_EQ(bhi_death_records_expiry(&records, record), 2 + KEEP);
    /* Another kernel, whose hash begins alike, and another tenant are nothing to it. */
    BHT_TRUE(!held("a", 1 | 1u << 8, 2));
    BHT_TRUE(!held("", 1, 2));
    BHT_TRUE(!note("b", 1, 2));
}

TEST(one_compile_is_enough) {
    begin(0, KEEP); /* no quarantine */
    BHT_TRUE(!note("a", 1, 0));
    BHT_TRUE(!note("a", 1, 0));
    BHT_TRUE(!note("a", 1, 0));
    BHT_EQ(records.count, 0);
    bh_verdict verdict = death_of(1, 7);
    verdict.status = BH_COMPILE_FAILED;
    BHT_TRUE(bhi_death_records_note(&records, "a", &verdict, true, 0));
    bh_quarantined entry = {.struct_size = sizeof entry};
    BHT_EQ(bhi_death_records_list(&records, &entry, 1, 0), 1);
    BHT_EQ(entry.status, BH_COMPILE_FAILED);
    BHT_EQ(entry.cause, BH_COMPILE_FAILED);
    BHT_EQ(entry.origin, 7);
    BHT_EQ(entry.deaths, 1);
    begin(2, 0); /* nothing is remembered */
    BHT_TRUE(!bhi_death_records_note(&records, "a", &verdict, true, 0));
    BHT_EQ(records.count, 0);
}

TEST(deaths_are_forgotten) {
    note("a", 1, 0);
    note("a", 1, 10);
    note("a", 2, 5);
    BHT_TRUE(held("a", 1, 9 + KEEP));
    BHT_TRUE(!held("a", 1, 10 + KEEP));
    BHT_EQ(records.count, 0);
    /* Two that lie so far apart do not add up. */
    BHT_TRUE(!note("a", 2, 5 + 2 * KEEP));
    BHT_TRUE(!note("a", 2, 5 + 3 * KEEP));
    begin(1, BH_FOREVER);
    note("a", 1, 100);
    BHT_EQ(bhi_death_records_expiry(&records, held("a", 1, 100)), BH_FOREVER);
    BHT_TRUE(held("a", 1, BH_FOREVER - 1));
}

TEST(one_is_released_or_all_of_a_tenant) {
    begin(1, KEEP);
    for (uint32_t kernel = 1; kernel <= 3; kernel++) {
        note("a", kernel, kernel);
        note("b", kernel, kernel);
    }
    bh_quarantined entries[8] = {{.struct_size = sizeof entries[0]}};
    BHT_EQ(bhi_death_records_list(&records, entries, 8, 3), 6);
    BHT_STR_EQ(entries[5].tenant, "b");
    BHT_EQ(entries[5].kernel_hash[0], 3);
    BHT_EQ(bhi_death_records_list(&records, entries, 0, 3), 6);
    bh_verdict verdict = death_of(2, 0);
    bhi_death_records_forget(&records, "a", verdict.kernel_hash);
    BHT_TRUE(!held("a", 2, 3) && held("a", 1, 3) && held("b", 2, 3));
    bhi_death_records_forget(&records, "b", NULL);
    BHT_EQ(bhi_death_records_list(&records, entries, 8, 3), 2);
}

/* What has died once gives way to others first, then the oldest. */
TEST(the_table_is_bounded) {
    begin(2, BH_FOREVER);
    note("a", 0, 0);
    note("a", 0, 0);
    for (uint32_t kernel = 1; kernel < 3 * BHI_DEATH_RECORDS; kernel++) {
        note("a", kernel, kernel);
    }
    BHT_EQ(records.count, BHI_DEATH_RECORDS);
    BHT_TRUE(held("a", 0, 0));
    for (uint32_t kernel = 10000; kernel < 10000 + BHI_DEATH_RECORDS; kernel++) {
        note("a", kernel, kernel);
        note("a", kernel, kernel);
    }
    BHT_EQ(records.count, BHI_DEATH_RECORDS);
    BHT_TRUE(!held("a", 0, 20000));
    BHT_TRUE(held("a", 10000, 20000));
}

/* T1: who has enough kernels that kill workers cannot have those of others forgotten. */
TEST(a_tenant_gives_up_its_own) {
    begin(2, BH_FOREVER);
    const uint32_t others = BHI_DEATH_RECORDS / 2;
    for (uint32_t kernel = 0; kernel < others; kernel++) {
        note("b", kernel, kernel);
        note("b", kernel, kernel);
    }
    for (uint32_t kernel = 0; kernel < 2 * BHI_DEATH_RECORDS; kernel++) {
        note("a", kernel, others + kernel);
        note("a", kernel, others + kernel);
    }
    BHT_EQ(records.count, BHI_DEATH_RECORDS);
    for (uint32_t kernel = 0; kernel < others; kernel++) {
        BHT_TRUE(held("b", kernel, 20000));
    }
    BHT_TRUE(held("a", 2 * BHI_DEATH_RECORDS - 1, 20000));
    /* One that has less gets room all the same. */
    note("c", 1, 20000);
    note("c", 1, 20000);
    BHT_TRUE(held("c", 1, 20000));
    note("c", 2, 20000);
    BHT_TRUE(held("c", 1, 20000));
}

/* What is held, as it was at the last death, until it expires. */
TEST(what_is_held_is_listed) {
    bh_quarantined entry = {.struct_size = sizeof entry};
    bh_verdict verdict = death_of(1, 7);
    BHT_TRUE(bhi_death_records_note(&records, "a", &verdict, true, 0));
    strcpy(verdict.kernel_name, "renamed");
    strcpy(verdict.message, "it died again");
    verdict.signal = 6;
    BHT_TRUE(!bhi_death_records_note(&records, "a", &verdict, false, 5));
    note("a", 2, 6); /* once is not enough */
    BHT_EQ(bhi_death_records_list(&records, &entry, 1, 6), 1);
    BHT_EQ(entry.status, BH_COMPILE_FAILED); /* no later death makes that good */
    BHT_STR_EQ(entry.kernel_name, "renamed");
    BHT_STR_EQ(entry.message, "it died again");
    BHT_EQ(entry.signal, 6);
    BHT_EQ(entry.since_ns, 0);
    BHT_EQ(entry.expires_ns, 5 + KEEP);
    BHT_EQ(bhi_death_records_list(&records, &entry, 1, 5 + KEEP), 0);
}

static void suspect(uint32_t kernel, uint64_t now_ns) {
    const bh_verdict verdict = death_of(kernel, 0);
    bhi_death_records_try(&records, "a", &verdict, now_ns);
}

static bool on_trial(const char *tenant, uint32_t kernel, uint64_t now_ns) {
    const bh_verdict verdict = death_of(kernel, 0);
    return bhi_death_records_on_trial(&records, tenant, verdict.kernel_hash, now_ns);
}

static void acquit(uint32_t kernel) {
    const bh_verdict verdict = death_of(kernel, 0);
    bhi_death_records_tried(&records, "a", verdict.kernel_hash);
}

/* T2. A suspicion is no death: it puts on trial, until it has expired or the trial is passed. */
TEST(a_suspect_is_on_trial) {
    BHT_TRUE(!on_trial("a", 1, 0));
    suspect(1, 0);
    suspect(1, 10);
    BHT_TRUE(on_trial("a", 1, 10) && !on_trial("b", 1, 10) && !on_trial("a", 2, 10));
    BHT_TRUE(!held("a", 1, 10));
    BHT_TRUE(on_trial("a", 1, 9 + KEEP));
    BHT_TRUE(!on_trial("a", 1, 10 + KEEP));
    BHT_EQ(records.count, 0);
    suspect(1, 0);
    suspect(1, KEEP); /* a new one */
    BHT_TRUE(on_trial("a", 1, 2 * KEEP - 1));
    acquit(2);
    BHT_TRUE(on_trial("a", 1, KEEP));
    acquit(1);
    BHT_EQ(records.count, 0);
    acquit(1);
    begin(2, 0);
    suspect(1, 0);
    BHT_EQ(records.count, 0);
}

/* A worker can forge a death that is suspected: that prolongs no quarantine, and costs no death. */
TEST(a_suspicion_changes_no_death) {
    note("a", 1, 0);
    BHT_TRUE(on_trial("a", 1, 0)); /* it may have been another's */
    acquit(1);
    BHT_TRUE(!on_trial("a", 1, 0));
    suspect(1, 10);
    BHT_TRUE(on_trial("a", 1, 10));
    BHT_TRUE(note("a", 1, 20)); /* the first one still counts */
    suspect(1, 30);
    BHT_TRUE(held("a", 1, 19 + KEEP));
    BHT_TRUE(!held("a", 1, 20 + KEEP));
    BHT_EQ(records.count, 0);
}

/* Who is only suspected gives way to others first. */
TEST(suspects_give_way_first) {
    begin(2, BH_FOREVER);
    note("a", 0, 0);
    for (uint32_t kernel = 1; kernel <= BHI_DEATH_RECORDS; kernel++) {
        suspect(kernel, kernel);
    }
    BHT_EQ(records.count, BHI_DEATH_RECORDS);
    BHT_TRUE(!on_trial("a", 1, 20000) && on_trial("a", 2, 20000));
    BHT_TRUE(note("a", 0, 20000));
}

static bool late(uint32_t kernel, uint64_t now_ns) {
    bh_verdict verdict = death_of(kernel, 10 + now_ns);
    verdict.status = BH_DEADLINE;
    verdict.signal = 0;
    return bhi_death_records_late(&records, "a", &verdict, now_ns);
}

TEST(deadlines_in_a_row_are_counted_where_they_should_be) {
    const bh_verdict verdict = death_of(1, 0);
    BHT_TRUE(!late(1, 0));
    BHT_EQ(records.count, 0); /* by default they are not */
    records.most_deadlines = 3;
    BHT_TRUE(!late(1, 1));
    BHT_TRUE(!late(1, 2));
    BHT_TRUE(!bhi_death_records_on_trial(&records, "a", verdict.kernel_hash, 2)); /* no suspect */
    bhi_death_records_in_time(&records, "a", verdict.kernel_hash);
    BHT_EQ(records.count, 0);
    BHT_TRUE(!late(1, 3));
    BHT_TRUE(!late(1, 4));
    BHT_TRUE(!held("a", 1, 4));
    BHT_TRUE(late(1, 5));
    BHT_TRUE(!late(1, 6));
    bh_quarantined entry = {.struct_size = sizeof entry};
    BHT_EQ(bhi_death_records_list(&records, &entry, 1, 6), 1);
    BHT_EQ(entry.status, BH_QUARANTINED);
    BHT_EQ(entry.cause, BH_DEADLINE);
    BHT_EQ(entry.deadlines, 4);
    BHT_EQ(entry.deaths, 0);
    BHT_EQ(entry.since_ns, 3);
    BHT_TRUE(bhi_death_records_only_late(&records, held("a", 1, 6)));
    /* A launch in time takes no death back. */
    note("a", 1, 7);
    note("a", 1, 8);
    bhi_death_records_in_time(&records, "a", verdict.kernel_hash);
    BHT_TRUE(held("a", 1, 8));
    BHT_EQ(held("a", 1, 8)->deadlines, 0);
    BHT_TRUE(!bhi_death_records_only_late(&records, held("a", 1, 8)));
}

/* T2. Nor does a launch in time end a trial: it may have run on a worker that knew others. */
TEST(a_launch_in_time_is_no_trial) {
    const bh_verdict verdict = death_of(1, 0);
    records.most_deadlines = 2;
    BHT_TRUE(!late(1, 0));
    suspect(1, 1);
    bhi_death_records_in_time(&records, "a", verdict.kernel_hash);
    BHT_TRUE(on_trial("a", 1, 2));
    BHT_TRUE(!late(1, 2)); /* the first in a row */
    BHT_TRUE(late(1, 3));
}
