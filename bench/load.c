/* bench-load: what a file costs on its way into a buffer, against dd of the same bytes into a
 * memfd, in one run, from the page cache. Each number is the least of several rounds: both sides
 * are measured in turn, so that a noisy moment hits both. */
#include "common.h"

#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ROUNDS = 5 };

/* A .safetensors with one tensor of |bytes|, in the page cache when it is written. */
static void make_file(const char *path, uint64_t bytes, size_t *out_header) {
    static char block[1 << 20];
    char header[256];
    int length = snprintf(header + 8, sizeof header - 8,
                          "{\"w\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}",
                          (unsigned long long)bytes, (unsigned long long)bytes);
    for (int i = 0; i < 8; i++) {
        header[i] = (char)((uint64_t)length >> 8 * i);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, header, (size_t)length + 8) != length + 8) {
        bench_die("%s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (char)(i * 2654435761u >> 11);
    }
    for (uint64_t at = 0; at < bytes; at += sizeof block) {
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block) {
            bench_die("%s: %s", path, strerror(errno));
        }
    }
    close(fd);
    *out_header = (size_t)length + 8;
}

static uint64_t run_dd(const char *path) {
    char in[300], out[64];
    int fd = memfd_create("bench-load", 0); /* inherited: dd opens it through /proc */
    if (fd < 0) {
        bench_die("%s: %s", "memfd_create", strerror(errno));
    }
    snprintf(in, sizeof in, "if=%s", path);
    snprintf(out, sizeof out, "of=/proc/self/fd/%d", fd);
    char dd[] = "dd", bs[] = "bs=1M", notrunc[] = "conv=notrunc", quiet[] = "status=none";
    char *argv[] = {dd, in, out, bs, notrunc, quiet, NULL};
    pid_t pid;
    int status;
    uint64_t began = bench_now_ns();
    if (posix_spawnp(&pid, "dd", NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        bench_die("%s: %s", "dd", "it failed");
    }
    uint64_t took = bench_now_ns() - began;
    close(fd);
    return took;
}

/* From the call to READY; *out_call: until the call has returned. */
static uint64_t run_load(bh_context *context, const char *path, uint64_t bytes,
                         uint64_t *out_call) {
    const bh_file_source source = {
        .struct_size = sizeof source, .path = path, .format = BH_FILE_SAFETENSORS, .tensor = "w"};
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    uint64_t began = bench_now_ns();
    BENCH_MUST(bh_buffer_create(context, 0, BENCH_WITH(bh_buffer_options, .file = &source), &buffer,
                                &bench_why));
    *out_call = bench_now_ns() - began;
    BENCH_MUST(bh_buffer_load_event(buffer, &event, &bench_why));
    BENCH_MUST(bh_event_wait(event, BH_FOREVER));
    uint64_t took = bench_now_ns() - began;
    if (bh_buffer_size(buffer) != bytes) {
        bench_die("%s: %s", "the load", "its size is wrong");
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
    return took;
}

static const char usage[] =
    "Usage: bench-load [--quick]\n"
    "Loads a .safetensors of 1 GiB in $TMPDIR, or /tmp, and compares with dd of the same bytes.\n"
    "  --quick   64 MiB: does it work\n";

int main(int argc, char **argv) {
    bool quick = false;
    const struct bench_option options[] = {{"--quick", .flag = &quick}, {0}};
    bench_parse(argc, argv, options, usage);
    const uint64_t bytes = quick ? 64u << 20 : 1u << 30;
    const char *folder = getenv("TMPDIR");
    char path[256];
    size_t header;
    snprintf(path, sizeof path, "%.200s/bench-load-%d.safetensors", folder ? folder : "/tmp",
             (int)getpid());
    make_file(path, bytes, &header);
    bh_context *context = bench_context(NULL);
    uint64_t call, dd = UINT64_MAX, load = UINT64_MAX, least_call = UINT64_MAX;
    run_load(context, path, bytes, &call); /* the loader starts */
    run_dd(path);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t took = run_dd(path);
        dd = took < dd ? took : dd;
        took = run_load(context, path, bytes, &call);
        load = took < load ? took : load;
        least_call = call < least_call ? call : least_call;
    }
    bh_context_destroy(context);
    unlink(path);
    printf("%llu MiB from the page cache, least of %d rounds\n", (unsigned long long)(bytes >> 20),
           ROUNDS);
    printf("dd bs=1M into a memfd   %8.1f ms\n", (double)dd / 1e6);
    printf("load, call to READY     %8.1f ms (the call returns after %.1f ms)\n",
           (double)load / 1e6, (double)least_call / 1e6);
    printf("ratio                   %8.2f (goal: at most 1.15)\n", (double)load / (double)dd);
    return 0;
}
