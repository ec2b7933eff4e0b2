/* Every driver that has a table, by the names that a refusal lists. */
#ifndef BHT_KNOWN_DRIVERS_H
#define BHT_KNOWN_DRIVERS_H

#include "harness.h"
#include "worker/sandbox/driver.h"

#include <string.h>

#define KNOWN_DRIVERS 8

/* Fills |out|, and returns how many there are. */
static inline size_t known_drivers(const struct bhi_driver_info *out[KNOWN_DRIVERS]) {
    struct bhi_driver driver;
    struct bhi_error failure = {0};
    size_t count = 0;
    BHT_NE(bhi_driver_pick(&driver, "?", &failure), 0);
    BHT_EQ(failure.told.reason, BH_REASON_DRIVER_NAME);
    char *names = failure.told.text;
    for (char *name; (name = strsep(&names, ", "));) {
        if (*name) {
            BHT_LT(count, KNOWN_DRIVERS);
            out[count] = bhi_driver_info(name);
            BHT_NE(out[count++], NULL);
        }
    }
    BHT_GT(count, 1);
    return count;
}

#endif
