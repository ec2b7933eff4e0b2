/* The checker: what a run leaves on its device. */
#include "chaos/history/device_memory.h"
#include "tale.h"

#include <stdio.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* The two looks of a good run at a device. */
static struct bhi_record *before, *after;

static void look(void) {
    tell(KILLED "memory gpu:1; memory gpu:1 last");
    after = last();
    before = after - 1;
}

static void fine(void) {
    BHT_TRUE(bhi_device_clean(before, after)); /* and nobody waits */
    valid(NULL);
}

static void leaks(const char *words) {
    BHT_TRUE(!bhi_device_clean(before, after));
    found(BHI_ANOMALY_LEAK, 0, words, NULL);
}

static void is_not_judged(void) {
    BHT_TRUE(!bhi_device_clean(before, after));
    found(BHI_ANOMALY_UNKNOWN, 0, "leaks on gpu:1 cannot be judged: it reported fewer numbers",
          NULL);
}

/* -- memory -------------------------------------------------------------------------------------
 */

/* What another program takes meanwhile is no leak of the run. */
static void look_as_others_take_some(void) {
    look();
    after->memory.unused -= 3 * GIB;
    after->memory.used += 3 * GIB;
    after->memory.others += 3 * GIB;
    after->memory.other_processes = 1;
}

/* Another program has ended, and given back what it had. */
static void look_as_others_end(void) {
    look();
    before->memory.others = 512 * MIB;
    before->memory.other_processes = 1;
    after->memory.unused += 512 * MIB;
    after->memory.used -= 512 * MIB;
}

TEST(memory_is_back) {
    look();
    fine();
    look(); /* but for a little */
    after->memory.unused -= 64 * MIB;
    after->memory.used += 64 * MIB;
    fine();
    look(); /* and more */
    after->memory.unused += GIB;
    after->memory.used = 0;
    fine();
    look_as_others_take_some();
    fine();
    look_as_others_end();
    fine();
}

TEST(memory_leaks) {
    look();
    after->memory.unused -= 64 * MIB + 1;
    after->memory.waited_ns = 10250000000;
    leaks(
        "device memory leaked: gpu:1 has 64 MiB more in use than before the run, says its driver, "
        "still after 10.2 s");
    look();
    after->memory.used += 200 * MIB;
    leaks("gpu:1 has 200 MiB more in use than before the run, says NVML");
    look_as_others_take_some();
    after->memory.others -= 100 * MIB;
    leaks("gpu:1 has 100 MiB more");
    look_as_others_take_some(); /* nobody knows of whom it is */
    after->memory.listed = false;
    leaks("gpu:1 has 3072 MiB more");
    look_as_others_end(); /* in what they gave back something of the run is hidden */
    after->memory.used += 100 * MIB;
    leaks("gpu:1 has 100 MiB more");
    look(); /* a file may say what it likes */
    before->memory.others = before->memory.unused = before->memory.total = UINT64_MAX;
    after->memory.total = UINT64_MAX;
    after->memory.unused = 0;
    leaks("device memory leaked: gpu:1 has 8796093022207 MiB more");
}

/* -- utilisation --------------------------------------------------------------------------------
 */

TEST(the_device_rests) {
    look();
    before->memory.utilisation = 90;
    after->memory.utilisation = 95;
    fine();
    for (uint32_t others = 0; others < 2; others++) {
        look();
        after->memory.utilisation = 7 + 6;
        after->memory.waited_ns = 10000000000;
        after->memory.other_processes = others;
        if (others) {
            fine();
        } else {
            leaks("gpu:1 is still busy 10.0 s after the run: 13 % of the time, before it 7 %");
        }
    }
}

/* -- what is not known --------------------------------------------------------------------------
 */

TEST(what_is_not_known) {
    look();
    for (int i = 0; i < 2; i++) {
        struct bhi_record *record = i ? after : before;
        record->memory.budget = record->memory.nvml = record->memory.utilised = false;
        record->memory.used = i * 5 * GIB; /* means nothing */
        record->memory.unused = 0;
        record->memory.utilisation = (uint32_t)i * 100;
    }
    fine();
    look(); /* the budget alone */
    before->memory.nvml = before->memory.utilised = before->memory.listed = false;
    after->memory.used += 5 * GIB;
    after->memory.utilisation = 100;
    fine();
    look();
    after->memory.budget = false;
    is_not_judged();
    look();
    after->memory.nvml = false;
    is_not_judged();
    look();
    after->memory.utilised = false;
    is_not_judged();
    found(BHI_ANOMALY_UNKNOWN, 0,
          "leaks on gpu:1 cannot be judged: its memory was not read after the run",
          KILLED "memory gpu:1; memory gpu:2 last"); /* another one */
}

/* Each with itself. */
TEST(two_devices) {
    for (int leaking = 0; leaking < 3; leaking++) {
        tell(KILLED);
        for (int i = 0; i < 4; i++) {
            tell("memory gpu:%d %s", i % 2, i > 1 ? "last" : "");
            last()->memory.unused =
                (i % 2 ? 1 : 5) * GIB - (i > 1 && i - 1 == leaking ? 100 * MIB : 0);
        }
        if (leaking) {
            found(BHI_ANOMALY_LEAK, 0, leaking == 1 ? "gpu:0 has 100" : "gpu:1 has 100", NULL);
        } else {
            valid(NULL);
        }
    }
}
