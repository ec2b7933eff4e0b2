/* Amounts for people to read. Each function writes to |out| and returns it. */
#ifndef BHI_TOOL_QUANTITY_H
#define BHI_TOOL_QUANTITY_H

#include <stdint.h>

enum { BHI_QUANTITY = 40 }; /* bytes that each of them needs at most */

/* "1,234,567" */
const char *bhi_quantity_count(char out[BHI_QUANTITY], uint64_t count);
/* "850 ns", "8.50 us", "12.3 ms", "4.56 s", "3 min 07 s", "2 h 05 min", "3 d 04 h" */
const char *bhi_quantity_time(char out[BHI_QUANTITY], uint64_t ns);
/* A label of an axis that ends at |end|: as bhi_quantity_time, or "5:07", "2:00:07" if |end| is a
 * minute or more. */
const char *bhi_quantity_tick(char out[BHI_QUANTITY], uint64_t ns, uint64_t end);
/* "813 a second", "0.25 a second", "1.50 a minute"; "-" if no time has passed. */
const char *bhi_quantity_rate(char out[BHI_QUANTITY], uint64_t count, uint64_t ns);
/* "12.3 MiB" */
const char *bhi_quantity_bytes(char out[BHI_QUANTITY], uint64_t bytes);
/* "2.5 Gop/s", "10 us": three digits, and a prefix from n to E. Without a unit ("") seven digits:
 * "65536", and from ten million three: "1.5e+09". */
const char *bhi_quantity_si(char out[BHI_QUANTITY], double value, const char *unit);
/* CLOCK_REALTIME as "2026-01-31 12:34:56 UTC"; "-" for 0. */
const char *bhi_quantity_date(char out[BHI_QUANTITY], uint64_t ns);

#endif
