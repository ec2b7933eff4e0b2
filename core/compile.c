#include "core/compile.h"
#include "base/format.h"
#include "base/text.h"
#include "core/core.h"

#define BY_THE_CLOCK 4u               /* times the deadline */
#define LOOK_NS      (5ull * 1000000) /* least time between two looks */
#define LOOKS        64u              /* most in a deadline by the clock */
#define MS           UINT64_C(1000000)

void bhi_compile_begin(struct bhi_compile *compile, uint64_t cpu_ns) {
    *compile = (struct bhi_compile){.cpu_ns = cpu_ns};
}

static uint64_t most_ns(uint64_t limit_ns) {
    return limit_ns > BH_FOREVER / BY_THE_CLOCK ? BH_FOREVER : BY_THE_CLOCK * limit_ns;
}

uint64_t bhi_compile_due(struct bhi_compile *compile, uint64_t since_ns, uint64_t limit_ns,
                         uint64_t cpu_ns, uint64_t now_ns) {
    const uint64_t due_ns = bhi_after_ns(since_ns, limit_ns);
    if (compile->cpu_ns && cpu_ns > compile->cpu_ns) {
        compile->used_ns = cpu_ns - compile->cpu_ns;
    }
    if (due_ns > now_ns || compile->used_ns >= limit_ns) {
        return due_ns;
    }
    /* One busy thread uses what is missing in that time. A worker can keep a little missing. */
    const uint64_t missing_ns = limit_ns - compile->used_ns;
    const uint64_t least_ns = limit_ns / LOOKS > LOOK_NS ? limit_ns / LOOKS : LOOK_NS;
    const uint64_t look_ns = bhi_after_ns(now_ns, missing_ns > least_ns ? missing_ns : least_ns);
    const uint64_t last_ns = bhi_after_ns(since_ns, most_ns(limit_ns));
    return look_ns < last_ns ? look_ns : last_ns;
}

const char *bhi_compile_say(const struct bhi_compile *compile, uint64_t limit_ns,
                            char out[BHI_COMPILE_TEXT]) {
    char clock[BHI_TEXT_TIME], used[BHI_TEXT_TIME];
    out[0] = '\0';
    if (compile->cpu_ns && compile->used_ns < limit_ns) {
        bhi_format(out, BHI_COMPILE_TEXT, "; in %s it used %s of processor time",
                   bhi_text_time(most_ns(limit_ns), clock),
                   bhi_text_time(compile->used_ns / MS * MS, used));
    }
    return out;
}
