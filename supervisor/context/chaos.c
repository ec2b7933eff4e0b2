#include "supervisor/context/chaos.h"
#include "base/detail.h"
#include "ipc/lane.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE   "BULKHEAD_CHAOS"
#define MILLION    1000000u
#define LONGEST_MS 60000u

/* |own|: it is one of the faults of a submission, which gets one of them at most. */
static const struct {
    const char *name;
    bh_status status;
    uint64_t flags;
    bool lasts, own;
} faults[BHI_CHAOS_NONE] = {
    [BHI_CHAOS_DEVICE_LOST] = {"device_lost", BH_DEVICE_LOST, BHI_RECORD_LOSES_DEVICE, false, true},
    [BHI_CHAOS_OUT_OF_MEMORY] = {"out_of_memory", BH_OUT_OF_DEVICE_MEMORY, BHI_RECORD_NO_MEMORY,
                                 false, true},
    [BHI_CHAOS_UNAVAILABLE] = {"unavailable", BH_UNAVAILABLE, 0, false, true},
    [BHI_CHAOS_LATE] = {"late", BH_DEADLINE, 0, true, true},
    [BHI_CHAOS_SPAWN] = {"spawn", BH_OK, 0, false, false},
    [BHI_CHAOS_SLOW_LOAD] = {"slow_load", BH_DEADLINE, 0, true, false},
};

const char *bhi_chaos_name(enum bhi_chaos_fault fault) {
    return faults[fault].name;
}

bh_status bhi_chaos_status(enum bhi_chaos_fault fault) {
    return faults[fault].status;
}

uint64_t bhi_chaos_flags(const struct bhi_chaos *chaos, enum bhi_chaos_fault fault) {
    return faults[fault].flags | BHI_RECORD_LATE_MS(chaos->lasts_ms[fault]) | BHI_RECORD_ALONE;
}

/* -- the text ---------------------------------------------------------------------------------- */

/* Takes digits. Returns false if there are none, or their number is over |most|. */
static bool take_number(const char **at, uint64_t most, uint64_t *out) {
    const char *from = *at;
    for (*out = 0; **at >= '0' && **at <= '9'; (*at)++) {
        const uint64_t digit = (uint64_t)(**at - '0');
        if (*out > (most - digit) / 10) {
            return false;
        }
        *out = *out * 10 + digit;
    }
    return *at > from;
}

/* Takes "0.25%": up to four decimals, so that it is a whole number of millionths. */
static bool take_share(const char **at, uint32_t *out) {
    uint64_t whole, decimals = 0, unit = MILLION / 100;
    if (!take_number(at, 100, &whole)) {
        return false;
    }
    if (**at == '.') {
        const char *from = ++*at;
        if (!take_number(at, 9999, &decimals) || *at - from > 4) {
            return false;
        }
        for (const char *digit = from; digit < *at; digit++) {
            unit /= 10;
        }
    }
    *out = (uint32_t)(whole * (MILLION / 100) + decimals * unit);
    return *out <= MILLION && *(*at)++ == '%';
}

/* Takes "200ms" or "2s". */
static bool take_time(const char **at, uint32_t *out_ms) {
    uint64_t number;
    if (!take_number(at, LONGEST_MS, &number)) {
        return false;
    }
    const bool seconds = **at == 's';
    if (!seconds && strncmp(*at, "ms", 2) != 0) {
        return false;
    }
    *at += seconds ? 1 : 2;
    number *= seconds ? 1000 : 1;
    *out_ms = (uint32_t)number;
    return number > 0 && number <= LONGEST_MS;
}

static bool is_end(char byte) {
    return byte == '\0' || byte == ' ';
}

/* Takes one "name=value". Returns what is wrong with it, or NULL. */
static const char *take_item(struct bhi_chaos *chaos, const char **at, uint32_t *seen) {
    const size_t length = strcspn(*at, "= ");
    uint32_t fault = 0;
    while (fault < BHI_CHAOS_NONE &&
           (strlen(faults[fault].name) != length || memcmp(*at, faults[fault].name, length) != 0)) {
        fault++;
    }
    const bool seed = length == 4 && memcmp(*at, "seed", 4) == 0;
    if ((fault == BHI_CHAOS_NONE && !seed) || (*at)[length] != '=') {
        return "takes seed=, device_lost=, out_of_memory=, unavailable=, late=, spawn= and "
               "slow_load=";
    }
    if (*seen & 1u << fault) {
        return "says this twice";
    }
    *seen |= 1u << fault;
    *at += length + 1;
    if (seed) {
        return take_number(at, UINT64_MAX, &chaos->seed) && is_end(**at) ? NULL
                                                                         : "needs a number here";
    }
    if (!take_share(at, &chaos->shares[fault])) {
        return "needs a share here, such as 0.5%, of at most 100% and four decimals";
    }
    if (faults[fault].lasts &&
        (*(*at)++ != '/' || !take_time(at, &chaos->lasts_ms[fault]) || !is_end(**at))) {
        return "needs a time after the share, such as 1%/200ms, of at most 60s";
    }
    return is_end(**at) ? NULL : "needs a blank or its end here";
}

/* Returns what is wrong with |text|, or NULL. *out_at: where. */
static const char *parse(struct bhi_chaos *chaos, const char *text, const char **out_at) {
    uint32_t seen = 0, all = 0;
    const char *at = text + strspn(text, " ");
    while (*at) {
        *out_at = at;
        const char *wrong = take_item(chaos, &at, &seen);
        if (wrong) {
            return wrong;
        }
        at += strspn(at, " ");
    }
    for (uint32_t fault = 0; fault < BHI_CHAOS_NONE; fault++) {
        all += faults[fault].own ? chaos->shares[fault] : 0;
    }
    return all > MILLION ? "has shares of a submission's faults that are over 100% together" : NULL;
}

bh_status bhi_chaos_parse(struct bhi_chaos *out, const char *text, bool environment,
                          const char *call, bh_detail *detail) {
    *out = (struct bhi_chaos){.from = NULL};
    const char *variable = environment ? secure_getenv(VARIABLE) : NULL, *at = NULL;
    text = variable ? variable : text;
    if (!text) {
        return BH_OK;
    }
    const char *from = variable ? VARIABLE : "options.chaos", *wrong = parse(out, text, &at);
    if (wrong) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, from, .value = (uint64_t)(at - text),
                        .text = BHI_SAY("%s (byte %zu: \"%.*s\")", wrong, (size_t)(at - text),
                                        (int)strcspn(at, " "), at));
    }
    for (uint32_t fault = 0; fault < BHI_CHAOS_NONE; fault++) {
        out->from = out->shares[fault] ? from : out->from;
    }
    return BH_OK;
}

/* -- drawing ----------------------------------------------------------------------------------- */

/* The last steps of splitmix64. */
static uint64_t mix(uint64_t z) {
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns a number below a million. */
static uint32_t draw(const struct bhi_chaos *chaos, const char *whose, uint64_t number) {
    uint64_t value = mix(chaos->seed);
    for (; *whose; whose++) {
        value = mix(value ^ (uint8_t)*whose);
    }
    return (uint32_t)(mix(value ^ number) % MILLION);
}

enum bhi_chaos_fault bhi_chaos_submission(const struct bhi_chaos *chaos, const char *name,
                                          uint64_t number) {
    uint32_t left = draw(chaos, name, number);
    for (uint32_t fault = 0; fault < BHI_CHAOS_NONE; fault++) {
        const uint32_t share = faults[fault].own ? chaos->shares[fault] : 0;
        if (left < share) {
            return (enum bhi_chaos_fault)fault;
        }
        left -= share;
    }
    return BHI_CHAOS_NONE;
}

enum bhi_chaos_fault bhi_chaos_load(struct bhi_chaos *chaos) {
    return draw(chaos, "a load", ++chaos->loads) < chaos->shares[BHI_CHAOS_SLOW_LOAD]
               ? BHI_CHAOS_SLOW_LOAD
               : BHI_CHAOS_NONE;
}

bool bhi_chaos_spawn(struct bhi_chaos *chaos) {
    return draw(chaos, "a start", ++chaos->spawns) < chaos->shares[BHI_CHAOS_SPAWN];
}
