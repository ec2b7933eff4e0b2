/* bulkhead-worker: the warden, the zygote and the workers of one context. Started by libbulkhead,
 * never by hand.
 *
 *   host (libbulkhead)
 *     └─ posix_spawn ─▶ bulkhead-worker warden      host's privileges, watches the host
 *                         └─ clone ─▶ zygote        all namespaces, driver loaded, pid 1 there
 *                                       ├─ fork ─▶ worker   one for each stream: sandbox, filters,
 *                                       ├─ fork ─▶ worker   a Vulkan device
 *                                       └─ fork ─▶ prober   tests a layer, then ends
 *     └─ posix_spawn ─▶ bulkhead-worker opener      host's privileges, opens files for loaders
 *
 *   The order of reading is warden.c, zygote.c, worker.c, session.c. worker/sandbox/ has one file
 *   for each mechanism; driver.c has what differs between drivers. docs/sandbox.md explains order
 *   and reasons. */
#include "worker/opener/opener.h"
#include "worker/process/warden.h"
#include "worker/title.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "bulkhead-worker runs GPU kernels for a program that uses libbulkhead.\n"
    "\n"
    "It is started by the library, with a socket as descriptor 3:\n"
    "    bulkhead-worker warden    watches over the processes that run kernels\n"
    "    bulkhead-worker opener    opens files, which may take for ever\n"
    "There is nothing to be done with it by hand. To run a kernel: bulkhead run --help.\n"
    "To see what its sandbox does on this machine: bulkhead doctor.\n";

#if BHI_SANITIZED && defined(__SANITIZE_ADDRESS__)
/* In the sandbox a sanitizer has no files, no /proc and no exec, and a crash must show as its own
 * signal. Leaks do not matter, because the process ends with _exit(). */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) {
    return "detect_leaks=0:symbolize=0:handle_segv=0:handle_sigbus=0:handle_abort=0:"
           "handle_sigfpe=0:handle_sigill=0:use_sigaltstack=0:abort_on_error=1:"
           "allocator_may_return_null=1";
}
#endif

int main(int argc, char **argv) {
    /* The dots make room for the titles of processes that are forked from here (title.h). */
    const bool mode = argc == 2 || (argc == 3 && argv[2][strspn(argv[2], ".")] == '\0');
    if (mode && strcmp(argv[1], "warden") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-warden", "warden");
        return bhi_warden_run();
    }
    if (mode && strcmp(argv[1], "opener") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-opener", "opener");
        return bhi_opener_run();
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("bulkhead-worker " BHI_VERSION);
        return 0;
    }
    fprintf(stderr, "bulkhead-worker: it is started by libbulkhead; see bulkhead-worker --help\n");
    return 2;
}
