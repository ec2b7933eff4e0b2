#include "supervisor/kernel/suspects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bhi_suspects_init(struct bhi_suspects *suspects, uint32_t most_deaths, uint64_t keep_ns) {
    suspects->most_deaths = most_deaths;
    suspects->keep_ns = keep_ns;
    suspects->count = 0;
    bhi_list_init(&suspects->ages);
    for (size_t i = 0; i < BHI_SUSPECT_CHAINS; i++)
        bhi_list_init(&suspects->chains[i]);
}

static void drop(struct bhi_suspects *suspects, struct bhi_suspect *suspect) {
    bhi_list_remove(&suspect->age);
    bhi_list_remove(&suspect->chain);
    suspects->count--;
    free(suspect);
}

void bhi_suspects_fini(struct bhi_suspects *suspects) {
    BHI_LIST_EACH_SAFE(node, &suspects->ages)
    drop(suspects, BHI_CONTAINER(node, struct bhi_suspect, age));
}

uint64_t bhi_suspects_expiry(const struct bhi_suspects *suspects,
                             const struct bhi_suspect *suspect) {
    uint64_t expires_ns = suspect->last_ns + suspects->keep_ns;
    return expires_ns < suspect->last_ns ? BH_FOREVER : expires_ns;
}

/* They expire in the order of their ages. */
static void expire(struct bhi_suspects *suspects, uint64_t now_ns) {
    while (!bhi_list_empty(&suspects->ages)) {
        struct bhi_suspect *oldest = BHI_CONTAINER(suspects->ages.next, struct bhi_suspect, age);
        if (bhi_suspects_expiry(suspects, oldest) > now_ns)
            break;
        drop(suspects, oldest);
    }
}

static struct bhi_suspect *find(struct bhi_suspects *suspects, const char *tenant,
                                const uint8_t hash[32]) {
    BHI_LIST_EACH(node, &suspects->chains[hash[0]]) {
        struct bhi_suspect *suspect = BHI_CONTAINER(node, struct bhi_suspect, chain);
        if (memcmp(suspect->hash, hash, sizeof suspect->hash) == 0 &&
            strcmp(suspect->tenant, tenant) == 0)
            return suspect;
    }
    return NULL;
}

static bool is_held(const struct bhi_suspects *suspects, const struct bhi_suspect *suspect) {
    return suspect->uncompilable ||
           (suspects->most_deaths && suspect->deaths >= suspects->most_deaths);
}

/* Who gives way first: what has ended nobody yet, what is not held, what is. */
static int weight(const struct bhi_suspects *suspects, const struct bhi_suspect *suspect) {
    return is_held(suspects, suspect) ? 2 : suspect->deaths > 0;
}

/* Room for one more: of the lightest the one that has been quiet for longest goes. */
static void make_room(struct bhi_suspects *suspects) {
    if (suspects->count < BHI_SUSPECTS)
        return;
    struct bhi_suspect *victim = BHI_CONTAINER(suspects->ages.next, struct bhi_suspect, age);
    BHI_LIST_EACH(node, &suspects->ages) {
        struct bhi_suspect *suspect = BHI_CONTAINER(node, struct bhi_suspect, age);
        if (weight(suspects, suspect) < weight(suspects, victim))
            victim = suspect;
    }
    drop(suspects, victim);
}

static struct bhi_suspect *add(struct bhi_suspects *suspects, const char *tenant,
                               const uint8_t hash[32], uint64_t now_ns) {
    struct bhi_suspect *suspect = calloc(1, sizeof *suspect);
    if (!suspect)
        return NULL;
    make_room(suspects);
    snprintf(suspect->tenant, sizeof suspect->tenant, "%s", tenant);
    memcpy(suspect->hash, hash, sizeof suspect->hash);
    suspect->first_ns = now_ns;
    bhi_list_init(&suspect->age);
    bhi_list_append(&suspects->chains[hash[0]], &suspect->chain);
    suspects->count++;
    return suspect;
}

/* The one to be noted; NULL: nothing is remembered. */
static struct bhi_suspect *obtain(struct bhi_suspects *suspects, const char *tenant,
                                  const uint8_t hash[32], uint64_t now_ns) {
    expire(suspects, now_ns);
    struct bhi_suspect *suspect = find(suspects, tenant, hash);
    return suspect ? suspect : add(suspects, tenant, hash, now_ns);
}

static void touch(struct bhi_suspects *suspects, struct bhi_suspect *suspect, uint64_t now_ns) {
    suspect->trial = true;
    suspect->last_ns = now_ns;
    bhi_list_remove(&suspect->age);
    bhi_list_append(&suspects->ages, &suspect->age);
}

void bhi_suspects_try(struct bhi_suspects *suspects, const char *tenant, const bh_verdict *verdict,
                      uint64_t now_ns) {
    struct bhi_suspect *suspect =
        suspects->keep_ns ? obtain(suspects, tenant, verdict->kernel_hash, now_ns) : NULL;
    /* What is held is not to be held for longer by what a liar says. */
    if (suspect && !suspect->deaths)
        touch(suspects, suspect, now_ns);
    else if (suspect)
        suspect->trial = true;
}

bool bhi_suspects_on_trial(struct bhi_suspects *suspects, const char *tenant,
                           const uint8_t hash[32], uint64_t now_ns) {
    if (!suspects->count)
        return false;
    expire(suspects, now_ns);
    const struct bhi_suspect *suspect = find(suspects, tenant, hash);
    return suspect && suspect->trial;
}

void bhi_suspects_tried(struct bhi_suspects *suspects, const char *tenant, const uint8_t hash[32]) {
    struct bhi_suspect *suspect = suspects->count ? find(suspects, tenant, hash) : NULL;
    if (suspect && !suspect->deaths)
        drop(suspects, suspect);
    else if (suspect)
        suspect->trial = false;
}

bool bhi_suspects_note(struct bhi_suspects *suspects, const char *tenant, const bh_verdict *verdict,
                       bool compiling, uint64_t now_ns) {
    if (!suspects->keep_ns || (!compiling && !suspects->most_deaths))
        return false;
    struct bhi_suspect *suspect = obtain(suspects, tenant, verdict->kernel_hash, now_ns);
    if (!suspect)
        return false;
    bool held = is_held(suspects, suspect);
    if (!suspect->deaths)
        suspect->first_ns = now_ns;
    suspect->deaths += suspect->deaths != UINT32_MAX;
    suspect->uncompilable |= compiling;
    suspect->cause = verdict->status;
    suspect->signal = verdict->signal;
    suspect->origin = verdict->event;
    memcpy(suspect->name, verdict->kernel_name, sizeof suspect->name);
    snprintf(suspect->message, sizeof suspect->message, "%.300s", verdict->message);
    touch(suspects, suspect, now_ns);
    return !held && is_held(suspects, suspect);
}

const struct bhi_suspect *bhi_suspects_held(struct bhi_suspects *suspects, const char *tenant,
                                            const uint8_t hash[32], uint64_t now_ns) {
    if (!suspects->count)
        return NULL;
    expire(suspects, now_ns);
    const struct bhi_suspect *suspect = find(suspects, tenant, hash);
    return suspect && is_held(suspects, suspect) ? suspect : NULL;
}

void bhi_suspects_forget(struct bhi_suspects *suspects, const char *tenant,
                         const uint8_t hash[32]) {
    BHI_LIST_EACH_SAFE(node, &suspects->ages) {
        struct bhi_suspect *suspect = BHI_CONTAINER(node, struct bhi_suspect, age);
        if (strcmp(suspect->tenant, tenant) == 0 &&
            (!hash || memcmp(suspect->hash, hash, sizeof suspect->hash) == 0))
            drop(suspects, suspect);
    }
}

size_t bhi_suspects_list(struct bhi_suspects *suspects, bh_quarantined *out, size_t capacity,
                         uint64_t now_ns) {
    size_t count = 0;
    expire(suspects, now_ns);
    BHI_LIST_EACH(node, &suspects->ages) {
        const struct bhi_suspect *suspect = BHI_CONTAINER(node, struct bhi_suspect, age);
        if (!is_held(suspects, suspect) || count++ >= capacity)
            continue;
        bh_quarantined *entry = &out[count - 1];
        *entry = (bh_quarantined){
            .status = suspect->uncompilable ? BH_COMPILE_FAILED : BH_QUARANTINED,
            .cause = suspect->cause,
            .signal = suspect->signal,
            .deaths = suspect->deaths,
            .origin = suspect->origin,
            .since_ns = suspect->first_ns,
            .expires_ns = bhi_suspects_expiry(suspects, suspect),
        };
        memcpy(entry->tenant, suspect->tenant, sizeof entry->tenant);
        memcpy(entry->kernel_name, suspect->name, sizeof entry->kernel_name);
        memcpy(entry->kernel_hash, suspect->hash, sizeof entry->kernel_hash);
        snprintf(entry->message, sizeof entry->message, "%s", suspect->message);
    }
    return count;
}
