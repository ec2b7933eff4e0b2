/* The table, and the same as one JSON object. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench.h"

struct bench_row {
    const char *id;    /* stable, for --json */
    const char *what;  /* for a person */
    double in_process; /* ns; negative: not measured, or there is no such thing. Of a death: the
                        * kernel's own news of it. */
    double polling;    /* ns, where the in-process side polls instead of sleeping; negative: none */
    double bulkhead;   /* ns; negative likewise */
    double target;     /* bound of the ratio; 0: none */
};

/* Against the better of the two in-process numbers; negative: none. */
double bench_ratio(const struct bench_row *row);
/* 1 within its target, 0 over, -1 no target or not measured. */
int bench_row_holds(const struct bench_row *row);
/* Returns how many rows are over their target. */
size_t bench_report(const struct bench_options *options, const struct bench_machine *machine,
                    const struct bench_row *rows, size_t count);

#endif
