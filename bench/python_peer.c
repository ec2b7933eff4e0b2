/* The C host beside bench/python: it launches a kernel and waits, as often as a line of standard
 * input says, and prints the median in nanoseconds. Usage: bench-python-peer SAXPY.SPV */
#include "base/sort.h"
#include "bench/common.h"

#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 64, MAX_CODE = 1 << 20, MAX_ROUNDS = 1000000 };

int main(int argc, char **argv) {
    static const char usage[] = "usage: bench-python-peer SAXPY.SPV\n"
                                "Reads numbers of rounds, and prints the median of each in ns.\n";
    static uint32_t code[MAX_CODE / 4];
    static uint64_t times[MAX_ROUNDS];
    const struct {
        float a;
        uint32_t n;
    } push = {1, ELEMENTS};
    bench_help(argc, argv, usage);
    if (argc != 2) {
        bench_bad_usage(argc > 2 ? argv[2] : "SAXPY.SPV", usage);
    }
    FILE *file = fopen(argv[1], "rb");
    const size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    if (!size) {
        bench_die("%s cannot be read", argv[1]);
    }
    fclose(file);
    bh_context *context = bench_context(NULL);
    bh_stream *stream = bench_stream(context, NULL);
    bh_kernel *kernel = bench_kernel(context, code, size, NULL);
    bh_buffer *x = bench_buffer(context, NULL, BH_MEMORY_HOST, ELEMENTS * sizeof(float));
    bh_buffer *y = bench_buffer(context, NULL, BH_MEMORY_HOST, ELEMENTS * sizeof(float));
    const bh_binding bound[] = {
        bh_bind_read(0, x),
        bh_bind_read_write(1, y),
    };
    for (unsigned rounds; scanf("%u", &rounds) == 1 && rounds > 0 && rounds <= MAX_ROUNDS;) {
        for (unsigned i = 0; i < rounds; i++) {
            const uint64_t began_ns = bench_now_ns();
            bench_finish(
                bench_launch(stream, kernel, (uint32_t[]){1, 1, 1}, bound, 2, &push, sizeof push));
            times[i] = bench_now_ns() - began_ns;
        }
        bhi_sort_u64(times, rounds);
        printf("%llu\n", (unsigned long long)times[rounds / 2]);
        fflush(stdout);
    }
    bh_buffer_release(x);
    bh_buffer_release(y);
    bh_kernel_release(kernel);
    bh_stream_release(stream);
    bh_context_destroy(context);
    return 0;
}
