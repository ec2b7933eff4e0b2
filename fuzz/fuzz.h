/* What the fuzz targets have in common. A target is one function, LLVMFuzzerTestOneInput: linked
 * with libFuzzer (preset fuzz), or with replay.c, which runs a corpus and simple mutations of it
 * in every build. What must not happen is a trap. */
#ifndef BULKHEAD_FUZZ_H
#define BULKHEAD_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

/* A reason is one line for a person: there when something is refused, and nothing of a peer's
 * bytes in it that a terminal would act on. */
static inline void fuzz_check_reason(const char *why, int refused) {
    FUZZ_CHECK((why[0] != '\0') == refused);
    for (; *why; why++) {
        FUZZ_CHECK(*why >= 0x20 && *why < 0x7f);
    }
}

#endif
