#include "report.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

double bench_ratio(const struct bench_row *row) {
    const bool polls = row->polling > 0 && row->polling < row->in_process;
    const double better = polls ? row->polling : row->in_process;
    return better > 0 && row->bulkhead >= 0 ? row->bulkhead / better : -1;
}

int bench_row_holds(const struct bench_row *row) {
    double value = bench_ratio(row);
    if (row->target <= 0 || value < 0) {
        return -1;
    }
    return value <= row->target;
}

static void show_time(char *out, size_t size, double ns) {
    if (ns < 0) {
        snprintf(out, size, "-");
    } else if (ns < 1e6) {
        snprintf(out, size, "%.1f us", ns / 1e3);
    } else {
        snprintf(out, size, "%.2f ms", ns / 1e6);
    }
}

static void print_table(const struct bench_options *options, const struct bench_machine *machine,
                        const struct bench_row *rows, size_t count) {
    printf("device %s, driver %s, %ld processors\n", machine->device, machine->driver,
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("%u rounds, interleaved; medians over rounds\n\n", options->rounds);
    printf("%-58s %12s %12s %12s %7s %10s  %s\n", "what", "in-process", "polling", "bulkhead",
           "ratio", "target", "");
    for (size_t i = 0; i < count; i++) {
        char in_process[32], polling[32], bulkhead[32], ratio[32] = "-", target[32] = "-";
        show_time(in_process, sizeof in_process, rows[i].in_process);
        show_time(polling, sizeof polling, rows[i].polling);
        show_time(bulkhead, sizeof bulkhead, rows[i].bulkhead);
        if (bench_ratio(&rows[i]) >= 0) {
            snprintf(ratio, sizeof ratio, "%.2f", bench_ratio(&rows[i]));
        }
        if (rows[i].target > 0) {
            snprintf(target, sizeof target, "%.2f", rows[i].target);
        }
        int holds = bench_row_holds(&rows[i]);
        printf("%-58s %12s %12s %12s %7s %10s  %s\n", rows[i].what, in_process, polling, bulkhead,
               ratio, target,
               holds < 0 ? ""
               : holds   ? "ok"
                         : "over");
    }
}

static void print_string(const char *text) {
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            printf("\\%c", *c);
        } else if (*c < 0x20) {
            printf("\\u%04x", *c);
        } else {
            putchar(*c);
        }
    }
    putchar('"');
}

static void print_number(const char *key, double value) {
    if (value < 0) {
        printf(", \"%s\": null", key);
    } else {
        printf(", \"%s\": %.10g", key, value);
    }
}

static void print_json(const struct bench_options *options, const struct bench_machine *machine,
                       const struct bench_row *rows, size_t count) {
    struct utsname system;
    printf("{\"benchmark\": \"dispatch\", \"schema\": 1, \"version\": \"%d.%d.%d\", \"device\": ",
           BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
    print_string(machine->device);
    printf(", \"driver\": ");
    print_string(machine->driver);
    printf(", \"kernel\": ");
    print_string(uname(&system) == 0 ? system.release : "");
    printf(", \"processors\": %ld, \"rounds\": %u, \"quick\": %s, \"rows\": [",
           sysconf(_SC_NPROCESSORS_ONLN), options->rounds, options->quick ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"id\": ", i > 0 ? ", " : "");
        print_string(rows[i].id);
        printf(", \"what\": ");
        print_string(rows[i].what);
        print_number("in_process_ns", rows[i].in_process);
        print_number("polling_ns", rows[i].polling);
        print_number("bulkhead_ns", rows[i].bulkhead);
        print_number("ratio", bench_ratio(&rows[i]));
        print_number("target_ratio", rows[i].target > 0 ? rows[i].target : -1);
        int holds = bench_row_holds(&rows[i]);
        printf(", \"ok\": %s}", holds < 0 ? "null" : holds ? "true" : "false");
    }
    printf("]}\n");
}

size_t bench_report(const struct bench_options *options, const struct bench_machine *machine,
                    const struct bench_row *rows, size_t count) {
    if (options->json) {
        print_json(options, machine, rows, count);
    } else {
        print_table(options, machine, rows, count);
    }
    size_t over = 0;
    for (size_t i = 0; i < count; i++) {
        over += bench_row_holds(&rows[i]) == 0;
    }
    return over;
}
