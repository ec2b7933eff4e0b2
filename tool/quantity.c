#include "tool/quantity.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *bhi_quantity_count(char out[BHI_QUANTITY], uint64_t count) {
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

/* Writes three significant digits. */
static void three_digits(char *out, size_t capacity, double value, const char *unit) {
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out, capacity, "%.*f %s", decimals, value, unit);
}

const char *bhi_quantity_time(char out[BHI_QUANTITY], uint64_t ns) {
    unsigned long long seconds = ns / 1000000000u + (ns % 1000000000u >= 500000000u);
    if (ns < 1000) {
        snprintf(out, BHI_QUANTITY, "%u %s", (unsigned)ns, ns ? "ns" : "us");
    } else if (ns < 999500) {
        three_digits(out, BHI_QUANTITY, (double)ns / 1e3, "us");
    } else if (ns < 999500000) {
        three_digits(out, BHI_QUANTITY, (double)ns / 1e6, "ms");
    } else if (ns < 59950000000u) {
        three_digits(out, BHI_QUANTITY, (double)ns / 1e9, "s");
    } else if (seconds < 3600) {
        snprintf(out, BHI_QUANTITY, "%llu min %02llu s", seconds / 60, seconds % 60);
    } else if (seconds < 86400) {
        snprintf(out, BHI_QUANTITY, "%llu h %02llu min", seconds / 3600, seconds / 60 % 60);
    } else {
        snprintf(out, BHI_QUANTITY, "%llu d %02llu h", seconds / 86400, seconds / 3600 % 24);
    }
    return out;
}

const char *bhi_quantity_tick(char out[BHI_QUANTITY], uint64_t ns, uint64_t end) {
    unsigned long long seconds = ns / 1000000000u + (ns % 1000000000u >= 500000000u);
    if (ns == 0) {
        return strcpy(out, "0");
    }
    if (end < 60000000000u) {
        return bhi_quantity_time(out, ns);
    }
    if (end < 3600000000000u) {
        snprintf(out, BHI_QUANTITY, "%llu:%02llu", seconds / 60, seconds % 60);
    } else {
        snprintf(out, BHI_QUANTITY, "%llu:%02llu:%02llu", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
    }
    return out;
}

const char *bhi_quantity_rate(char out[BHI_QUANTITY], uint64_t count, uint64_t ns) {
    char number[BHI_QUANTITY];
    if (ns == 0) {
        return strcpy(out, "-");
    }
    const double rate = (double)count / ((double)ns / 1e9);
    if (count > 0 && rate < 0.0995) {
        three_digits(out, BHI_QUANTITY, 60 * rate, "a minute");
    } else if (rate < 999.5) {
        three_digits(out, BHI_QUANTITY, rate, "a second");
    } else if (rate < 1e15) {
        snprintf(out, BHI_QUANTITY, "%s a second",
                 bhi_quantity_count(number, (uint64_t)(rate + 0.5)));
    } else {
        snprintf(out, BHI_QUANTITY, "%.3g a second", rate);
    }
    return out;
}

const char *bhi_quantity_bytes(char out[BHI_QUANTITY], uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(out, BHI_QUANTITY, "%llu bytes", (unsigned long long)bytes);
        return out;
    }
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
        value /= 1024;
    }
    three_digits(out, BHI_QUANTITY, value, units[unit]);
    return out;
}

const char *bhi_quantity_si(char out[BHI_QUANTITY], double value, const char *unit) {
    static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    size_t prefix = 3;
    double scaled = value;
    if (!*unit) {
        snprintf(out, BHI_QUANTITY, value < 1e7 ? "%.7g" : "%.3g", value);
        return out;
    }
    for (; scaled >= 999.5 && prefix + 1 < sizeof prefixes / sizeof prefixes[0]; prefix++) {
        scaled /= 1000;
    }
    for (; scaled < 0.9995 && prefix; prefix--) {
        scaled *= 1000;
    }
    snprintf(out, BHI_QUANTITY, "%.3g %s%.20s", scaled, prefixes[prefix], unit);
    return out;
}

const char *bhi_quantity_date(char out[BHI_QUANTITY], uint64_t ns) {
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    if (ns == 0 || !gmtime_r(&seconds, &parts) ||
        strftime(out, BHI_QUANTITY, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
        strcpy(out, "-");
    }
    return out;
}
