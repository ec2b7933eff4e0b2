/* The kernels as glslc wrote them, both sides use the same words. */
#include "bench.h"

static const uint32_t EMPTY[] =
#include "empty.inc"
    ;
static const uint32_t COUNT[] =
#include "count.inc"
    ;
static const uint32_t SAXPY[] =
#include "saxpy.inc"
    ;
static const uint32_t BUSY[] =
#include "busy.inc"
    ;

const struct bench_code BENCH_CODE[BENCH_KERNELS] = {
    [BENCH_EMPTY] = {"empty", EMPTY, sizeof EMPTY},
    [BENCH_COUNT] = {"count", COUNT, sizeof COUNT},
    [BENCH_SAXPY] = {"saxpy", SAXPY, sizeof SAXPY},
    [BENCH_BUSY] = {"busy", BUSY, sizeof BUSY},
};
