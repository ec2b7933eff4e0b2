#include "supervisor/kernel/death_records.h"
#include "base/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 8u /* a tenant that has this part of the table gives up records of its own */

void bhi_death_records_init(struct bhi_death_records *death_records, uint32_t most_deaths,
                            uint64_t keep_ns) {
    death_records->most_deaths = most_deaths;
    death_records->most_deadlines = 0;
    death_records->keep_ns = keep_ns;
    death_records->count = 0;
    death_records->map = (struct bhi_map){0};
    bhi_list_init(&death_records->ages);
}

static void drop(struct bhi_death_records *death_records, struct bhi_death_record *record) {
    bhi_list_remove(&record->age);
    bhi_map_unlink(&death_records->map, &record->chain);
    death_records->count--;
    free(record);
}

void bhi_death_records_fini(struct bhi_death_records *death_records) {
    BHI_LIST_EACH_SAFE(node, &death_records->ages)
    drop(death_records, BHI_CONTAINER(node, struct bhi_death_record, age));
    bhi_map_fini(&death_records->map);
}

uint64_t bhi_death_records_expiry(const struct bhi_death_records *death_records,
                                  const struct bhi_death_record *record) {
    uint64_t expires_ns = record->last_ns + death_records->keep_ns;
    return expires_ns < record->last_ns ? BH_FOREVER : expires_ns;
}

/* All records are kept for the same time, so they expire in the order of |ages|. */
static void expire(struct bhi_death_records *death_records, uint64_t now_ns) {
    while (!bhi_list_empty(&death_records->ages)) {
        struct bhi_death_record *oldest =
            BHI_CONTAINER(death_records->ages.next, struct bhi_death_record, age);
        if (bhi_death_records_expiry(death_records, oldest) > now_ns) {
            break;
        }
        drop(death_records, oldest);
    }
}

static uint64_t key_of(const uint8_t hash[32]) {
    uint64_t key;
    memcpy(&key, hash, sizeof key);
    return key;
}

static struct bhi_death_record *find(struct bhi_death_records *death_records, const char *tenant,
                                     const uint8_t hash[32]) {
    for (struct bhi_chain *node = bhi_map_get(&death_records->map, key_of(hash)); node;
         node = node->next) {
        struct bhi_death_record *record = BHI_CONTAINER(node, struct bhi_death_record, chain);
        if (memcmp(record->hash, hash, sizeof record->hash) == 0 &&
            strcmp(record->tenant, tenant) == 0) {
            return record;
        }
    }
    return NULL;
}

static bool is_deadly(const struct bhi_death_records *death_records,
                      const struct bhi_death_record *record) {
    return record->uncompilable ||
           (death_records->most_deaths && record->deaths >= death_records->most_deaths);
}

static bool is_held(const struct bhi_death_records *death_records,
                    const struct bhi_death_record *record) {
    return is_deadly(death_records, record) ||
           (death_records->most_deadlines && record->deadlines >= death_records->most_deadlines);
}

bool bhi_death_records_only_late(const struct bhi_death_records *death_records,
                                 const struct bhi_death_record *record) {
    return is_held(death_records, record) && !is_deadly(death_records, record);
}

static bool has_strikes(const struct bhi_death_record *record) {
    return record->deaths || record->deadlines;
}

/* How important a record is. 0: its kernel is only on trial. 1: it has strikes, but its kernel is
 * not held. 2: its kernel is held. */
static int weight(const struct bhi_death_records *death_records,
                  const struct bhi_death_record *record) {
    return is_held(death_records, record) ? 2 : has_strikes(record);
}

static uint32_t count_of(const struct bhi_death_records *death_records, const char *tenant) {
    uint32_t count = 0;
    BHI_LIST_EACH(node, &death_records->ages)
    count += strcmp(BHI_CONTAINER(node, struct bhi_death_record, age)->tenant, tenant) == 0;
    return count;
}

/* Makes room for one more record of |tenant|. Drops the oldest of the least important ones; of this
 * tenant's, if it has its share, so that nobody ends the quarantine of others. */
static void make_room(struct bhi_death_records *death_records, const char *tenant) {
    struct bhi_death_record *victim = NULL;
    if (death_records->count < BHI_DEATH_RECORDS) {
        return;
    }
    const bool own = count_of(death_records, tenant) >= BHI_DEATH_RECORDS / SHARE;
    BHI_LIST_FOR(struct bhi_death_record, record, &death_records->ages, age) {
        if (own && strcmp(record->tenant, tenant) != 0) {
            continue;
        }
        if (!victim || weight(death_records, record) < weight(death_records, victim)) {
            victim = record;
        }
    }
    drop(death_records, victim);
}

static struct bhi_death_record *add(struct bhi_death_records *death_records, const char *tenant,
                                    const uint8_t hash[32], uint64_t now_ns) {
    struct bhi_death_record *record = calloc(1, sizeof *record);
    if (!record || !bhi_map_reserve(&death_records->map, 1)) {
        free(record);
        return NULL;
    }
    make_room(death_records, tenant);
    bhi_format(record->tenant, sizeof record->tenant, "%s", tenant);
    memcpy(record->hash, hash, sizeof record->hash);
    record->first_ns = now_ns;
    bhi_list_init(&record->age);
    bhi_map_link(&death_records->map, key_of(hash), &record->chain);
    death_records->count++;
    return record;
}

/* Returns the record of the kernel, a new one if there is none. NULL: out of memory. */
static struct bhi_death_record *obtain(struct bhi_death_records *death_records, const char *tenant,
                                       const uint8_t hash[32], uint64_t now_ns) {
    expire(death_records, now_ns);
    struct bhi_death_record *record = find(death_records, tenant, hash);
    return record ? record : add(death_records, tenant, hash, now_ns);
}

static void touch(struct bhi_death_records *death_records, struct bhi_death_record *record,
                  uint64_t now_ns) {
    record->last_ns = now_ns;
    bhi_list_remove(&record->age);
    bhi_list_append(&death_records->ages, &record->age);
}

void bhi_death_records_try(struct bhi_death_records *death_records, const char *tenant,
                           const bh_verdict *verdict, uint64_t now_ns) {
    struct bhi_death_record *record =
        death_records->keep_ns ? obtain(death_records, tenant, verdict->kernel_hash, now_ns) : NULL;
    /* A worker can forge the death that a suspicion is about. So a suspicion does not make a record
     * of certain deaths expire later. */
    if (record && !has_strikes(record)) {
        touch(death_records, record, now_ns);
    }
    if (record) {
        record->trial = true;
    }
}

bool bhi_death_records_on_trial(struct bhi_death_records *death_records, const char *tenant,
                                const uint8_t hash[32], uint64_t now_ns) {
    if (!death_records->count) {
        return false;
    }
    expire(death_records, now_ns);
    const struct bhi_death_record *record = find(death_records, tenant, hash);
    return record && record->trial;
}

void bhi_death_records_tried(struct bhi_death_records *death_records, const char *tenant,
                             const uint8_t hash[32]) {
    struct bhi_death_record *record =
        death_records->count ? find(death_records, tenant, hash) : NULL;
    if (record && !has_strikes(record)) {
        drop(death_records, record);
    } else if (record) {
        record->trial = false;
    }
}

/* Another strike: what the record says is about that one. */
static void begin(struct bhi_death_record *record, const bh_verdict *verdict, uint64_t now_ns) {
    if (!has_strikes(record)) {
        record->first_ns = now_ns;
    }
    record->cause = verdict->status;
    record->signal = verdict->signal;
    record->origin = verdict->event;
    memcpy(record->name, verdict->kernel_name, sizeof record->name);
    bhi_format(record->message, sizeof record->message, "%.300s", verdict->message);
}

bool bhi_death_records_note(struct bhi_death_records *death_records, const char *tenant,
                            const bh_verdict *verdict, bool compiling, uint64_t now_ns) {
    if (!death_records->keep_ns || (!compiling && !death_records->most_deaths)) {
        return false;
    }
    struct bhi_death_record *record = obtain(death_records, tenant, verdict->kernel_hash, now_ns);
    if (!record) {
        return false;
    }
    const bool held = is_held(death_records, record);
    begin(record, verdict, now_ns);
    record->deaths += record->deaths != UINT32_MAX;
    record->uncompilable |= compiling;
    record->trial = true;
    touch(death_records, record, now_ns);
    return !held && is_held(death_records, record);
}

bool bhi_death_records_late(struct bhi_death_records *death_records, const char *tenant,
                            const bh_verdict *verdict, uint64_t now_ns) {
    struct bhi_death_record *record =
        death_records->keep_ns && death_records->most_deadlines
            ? obtain(death_records, tenant, verdict->kernel_hash, now_ns)
            : NULL;
    if (!record) {
        return false;
    }
    const bool held = is_held(death_records, record);
    begin(record, verdict, now_ns);
    record->deadlines++;
    touch(death_records, record, now_ns);
    return !held && is_held(death_records, record);
}

void bhi_death_records_in_time(struct bhi_death_records *death_records, const char *tenant,
                               const uint8_t hash[32]) {
    struct bhi_death_record *record = death_records->count && death_records->most_deadlines
                                          ? find(death_records, tenant, hash)
                                          : NULL;
    if (record && record->deadlines) {
        record->deadlines = 0;
        if (!record->deaths && !record->trial) {
            drop(death_records, record);
        }
    }
}

const struct bhi_death_record *bhi_death_records_held(struct bhi_death_records *death_records,
                                                      const char *tenant, const uint8_t hash[32],
                                                      uint64_t now_ns) {
    if (!death_records->count) {
        return NULL;
    }
    expire(death_records, now_ns);
    const struct bhi_death_record *record = find(death_records, tenant, hash);
    return record && is_held(death_records, record) ? record : NULL;
}

void bhi_death_records_forget(struct bhi_death_records *death_records, const char *tenant,
                              const uint8_t hash[32]) {
    BHI_LIST_FOR_SAFE(struct bhi_death_record, record, &death_records->ages, age) {
        if (strcmp(record->tenant, tenant) == 0 &&
            (!hash || memcmp(record->hash, hash, sizeof record->hash) == 0)) {
            drop(death_records, record);
        }
    }
}

size_t bhi_death_records_list(struct bhi_death_records *death_records, bh_quarantined *out,
                              size_t capacity, uint64_t now_ns) {
    size_t count = 0;
    expire(death_records, now_ns);
    BHI_LIST_FOR(const struct bhi_death_record, record, &death_records->ages, age) {
        if (!is_held(death_records, record) || count++ >= capacity) {
            continue;
        }
        bh_quarantined *entry = &out[count - 1];
        *entry = (bh_quarantined){
            .status = record->uncompilable ? BH_COMPILE_FAILED : BH_QUARANTINED,
            .cause = record->cause,
            .signal = record->signal,
            .deaths = record->deaths,
            .origin = record->origin,
            .since_ns = record->first_ns,
            .expires_ns = bhi_death_records_expiry(death_records, record),
            .deadlines = record->deadlines,
        };
        memcpy(entry->tenant, record->tenant, sizeof entry->tenant);
        memcpy(entry->kernel_name, record->name, sizeof entry->kernel_name);
        memcpy(entry->kernel_hash, record->hash, sizeof entry->kernel_hash);
        bhi_format(entry->message, sizeof entry->message, "%s", record->message);
    }
    return count;
}
