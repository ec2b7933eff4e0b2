/* The checker: what a run leaves on its device. */
#include "chaos/history/device_memory.h"
#include "harness.h"
#include "judge.h"

#include <stdio.h>
#include <string.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* A good run whose two looks at a device |change| makes others of. */
struct looks {
    struct bhi_record *first, *last;
};

static struct scene scene_of_looks(struct looks *looks) {
    struct scene s;
    const uint64_t count = 2;
    killed_by_signal(&s);
    for (uint64_t i = 0; i < count; i++) {
        tale_memory(&s.tale, "gpu:1", i == 1);
    }
    /* The second note may have moved the first. */
    looks->last = tale_last(&s.tale);
    looks->first = looks->last - 1;
    return s;
}

typedef void change_function(const struct looks *looks);

static void fine_with(change_function *change) {
    struct looks looks;
    struct scene s = scene_of_looks(&looks);
    change(&looks);
    BHT_TRUE(bhi_device_clean(looks.first, looks.last)); /* and nobody waits */
    valid(&s.tale);
}

static void leaks_with(change_function *change, const char *words) {
    struct looks looks;
    struct scene s = scene_of_looks(&looks);
    change(&looks);
    BHT_TRUE(!bhi_device_clean(looks.first, looks.last));
    found(&s.tale, BHI_ANOMALY_LEAK, 0, words);
}

/* -- memory -------------------------------------------------------------------------------------
 */

static void nothing(const struct looks *looks) {
    (void)looks;
}

static void a_little(const struct looks *looks) {
    looks->last->memory.unused -= 64 * MIB;
    looks->last->memory.used += 64 * MIB;
}

static void less_than_before(const struct looks *looks) {
    looks->last->memory.unused += GIB;
    looks->last->memory.used = 0;
}

static void by_the_budget(const struct looks *looks) {
    looks->last->memory.unused -= 64 * MIB + 1;
    looks->last->memory.waited_ns = 10250000000;
}

static void by_nvml(const struct looks *looks) {
    looks->last->memory.used += 200 * MIB;
}

/* What another program takes meanwhile is no leak of the run. */
static void of_others(const struct looks *looks) {
    looks->last->memory.unused -= 3 * GIB;
    looks->last->memory.used += 3 * GIB;
    looks->last->memory.others += 3 * GIB;
    looks->last->memory.other_processes = 1;
}

static void more_than_others(const struct looks *looks) {
    of_others(looks);
    looks->last->memory.others -= 100 * MIB;
}

/* Nobody knows of whom it is. */
static void of_others_not_listed(const struct looks *looks) {
    of_others(looks);
    looks->last->memory.listed = false;
}

/* Another program has ended, and given back what it had. */
static void others_have_ended(const struct looks *looks) {
    looks->first->memory.others = 512 * MIB;
    looks->first->memory.other_processes = 1;
    looks->last->memory.unused += 512 * MIB;
    looks->last->memory.used -= 512 * MIB;
}

/* In what it gave back something of the run is hidden. */
static void behind_others(const struct looks *looks) {
    others_have_ended(looks);
    looks->last->memory.used += 100 * MIB;
}

/* A file may say what it likes. */
static void absurd_numbers(const struct looks *looks) {
    looks->first->memory.others = looks->first->memory.unused = looks->first->memory.total =
        UINT64_MAX;
    looks->last->memory.total = UINT64_MAX;
    looks->last->memory.unused = 0;
}

static void memory_is_back(void) {
    fine_with(nothing);
    fine_with(a_little);
    fine_with(less_than_before);
    fine_with(of_others);
    fine_with(others_have_ended);
}

static void memory_leaks(void) {
    leaks_with(by_the_budget, "device memory leaked: gpu:1 has 64 MiB more in use than before the "
                              "run, says its driver, still after 10.2 s");
    leaks_with(by_nvml, "gpu:1 has 200 MiB more in use than before the run, says NVML");
    leaks_with(more_than_others, "gpu:1 has 100 MiB more");
    leaks_with(of_others_not_listed, "gpu:1 has 3072 MiB more");
    leaks_with(behind_others, "gpu:1 has 100 MiB more");
    leaks_with(absurd_numbers, "device memory leaked: gpu:1 has 8796093022207 MiB more");
}

/* -- utilisation --------------------------------------------------------------------------------
 */

static void busy_before(const struct looks *looks) {
    looks->first->memory.utilisation = 90;
    looks->last->memory.utilisation = 95;
}

static void busy(const struct looks *looks) {
    looks->last->memory.utilisation = 7 + 6;
    looks->last->memory.waited_ns = 10000000000;
}

static void busy_with_others(const struct looks *looks) {
    busy(looks);
    looks->last->memory.other_processes = 1;
}

static void the_device_rests(void) {
    fine_with(busy_before);
    fine_with(busy_with_others);
    leaks_with(busy, "gpu:1 is still busy 10.0 s after the run: 13 % of the time, before it 7 %");
}

/* -- what is not known --------------------------------------------------------------------------
 */

static void silent(const struct looks *looks) {
    for (int i = 0; i < 2; i++) {
        struct bhi_record *record = i ? looks->last : looks->first;
        record->memory.budget = record->memory.nvml = record->memory.utilised = false;
        record->memory.used = i * 5 * GIB; /* means nothing */
        record->memory.unused = 0;
        record->memory.utilisation = (uint32_t)i * 100;
    }
}

static void budget_alone(const struct looks *looks) {
    looks->first->memory.nvml = looks->first->memory.utilised = looks->first->memory.listed = false;
    looks->last->memory.used += 5 * GIB;
    looks->last->memory.utilisation = 100;
}

static void budget_is_gone(const struct looks *looks) {
    looks->last->memory.budget = false;
}

static void nvml_is_gone(const struct looks *looks) {
    looks->last->memory.nvml = false;
}

static void utilisation_is_gone(const struct looks *looks) {
    looks->last->memory.utilised = false;
}

static void not_judged(change_function *change) {
    struct looks looks;
    struct scene s = scene_of_looks(&looks);
    change(&looks);
    BHT_TRUE(!bhi_device_clean(looks.first, looks.last));
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0,
          "leaks on gpu:1 cannot be judged: it reported fewer numbers");
}

static void what_is_not_known(void) {
    fine_with(silent);
    fine_with(budget_alone);
    not_judged(budget_is_gone);
    not_judged(nvml_is_gone);
    not_judged(utilisation_is_gone);
    struct scene s;
    killed_by_signal(&s);
    tale_memory(&s.tale, "gpu:1", false);
    tale_memory(&s.tale, "gpu:2", true); /* another one */
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0,
          "leaks on gpu:1 cannot be judged: its memory was not read after the run");
}

/* Each with itself. */
static void two_devices(void) {
    for (int leaks = 0; leaks < 3; leaks++) {
        struct scene s;
        killed_by_signal(&s);
        for (int i = 0; i < 4; i++) {
            tale_memory(&s.tale, i % 2 ? "gpu:1" : "gpu:0", i > 1);
            tale_last(&s.tale)->memory.unused = (i % 2 ? 1 : 5) * GIB;
            if (i > 1 && i - 1 == leaks) {
                tale_last(&s.tale)->memory.unused -= 100 * MIB;
            }
        }
        if (leaks) {
            found(&s.tale, BHI_ANOMALY_LEAK, 0, leaks == 1 ? "gpu:0 has 100" : "gpu:1 has 100");
        } else {
            valid(&s.tale);
        }
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(memory_is_back),    BHT_TEST(memory_leaks), BHT_TEST(the_device_rests),
        BHT_TEST(what_is_not_known), BHT_TEST(two_devices),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
