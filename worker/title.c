#include "worker/title.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#define NAME_BYTES 16 /* TASK_COMM_LEN of the kernel, with the NUL */

static struct {
    char *at;
    size_t bytes;
} room;

void bhi_title_init(int argc, char **argv) {
    if (argc < 2) {
        return;
    }
    char *end = argv[1];
    for (int i = 1; i < argc && argv[i] == end; i++) {
        end += strlen(end) + 1;
    }
    room.at = argv[1];
    room.bytes = (size_t)(end - argv[1]);
}

void bhi_title_set(const char *name, const char *line) {
    char clean[NAME_BYTES];
    bhi_text_line(clean, sizeof clean, name, strlen(name));
    (void)prctl(PR_SET_NAME, clean);
    if (room.bytes > 0) {
        /* The last byte stays NUL: otherwise the kernel treats the whole room as one string. */
        memset(room.at, 0, room.bytes);
        bhi_text_line(room.at, room.bytes, line, strlen(line));
    }
}

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
