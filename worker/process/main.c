/* bulkhead-worker: the zygote and the workers of one context. Executed by bulkhead-warden, inside the
 * namespaces of the sandbox; never by hand.
 *
 * ARCHITECTURE.md lists the processes. The order of reading is warden.c, zygote.c, worker.c,
 * session.c. worker/sandbox/ has one file for each mechanism; driver.c has what differs between
 * drivers. docs/sandbox.md explains order and reasons. */
#include "worker/process/zygote.h"
#include "worker/title.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "bulkhead-worker runs GPU kernels for a program that uses libbulkhead.\n"
    "\n"
    "It is executed by bulkhead-warden, inside the sandbox:\n"
    "    bulkhead-worker zygote    loads the driver, and forks the processes that run kernels\n"
    "There is nothing to be done with it by hand. To run a kernel: bulkhead run --help.\n"
    "To see what its sandbox does on this machine: bulkhead doctor.\n";

int main(int argc, char **argv) {
    /* The dots make room for the titles of processes that are forked from here (title.h). */
    const bool mode = argc == 2 || (argc == 3 && argv[2][strspn(argv[2], ".")] == '\0');
    if (mode && strcmp(argv[1], "zygote") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-zygote", "zygote");
        bhi_zygote_run();
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("bulkhead-worker " BHI_VERSION);
        return 0;
    }
    fprintf(stderr,
            "bulkhead-worker: it is started by bulkhead-warden; see bulkhead-worker --help\n");
    return 2;
}
