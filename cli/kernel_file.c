#include "kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exit_status.h"
#include "interrupt.h"
#include "session.h"
#include "task.h"
#include "text.h"

enum { MAX_KERNEL = 64 << 20, LOG_SIZE = 33 << 10 };

/* -- reading it ---------------------------------------------------------------------------------
 */

/* Reads to the end, growing as data arrives; one byte over the limit tells that it is too long. */
static bool read_code(int fd, uint8_t **out_code, size_t *out_size,
                      struct bhi_complaint *complaint) {
    uint8_t *code = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        if (size + 1 >= capacity) { /* there is room for a NUL, always */
            capacity = capacity ? capacity * 2 : 1 << 16;
            if (capacity > MAX_KERNEL + 2)
                capacity = MAX_KERNEL + 2;
            uint8_t *grown = realloc(code, capacity);
            if (!grown) {
                free(code);
                return bhi_refuse(complaint, "out of memory");
            }
            code = grown;
        }
        ssize_t n = read(fd, code + size, capacity - 1 - size);
        if (n < 0 && errno == EINTR && !bhi_interrupt_signal())
            continue;
        if (n < 0) {
            free(code);
            return bhi_refuse(complaint, "cannot be read: %s", strerror(errno));
        }
        size += (size_t)n;
        if (size > MAX_KERNEL) {
            free(code);
            return bhi_refuse(complaint, "longer than %d MiB, not a kernel", MAX_KERNEL >> 20);
        }
        if (n == 0)
            break;
    }
    code[size] = '\0';
    *out_code = code;
    *out_size = size;
    return true;
}

static bool open_kernel(const char *path, int *out_fd, struct bhi_complaint *complaint) {
    struct stat status;
    *out_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*out_fd < 0)
        return bhi_refuse(complaint, "%s", strerror(errno));
    if (fstat(*out_fd, &status) == 0 && S_ISREG(status.st_mode))
        return true;
    close(*out_fd);
    return bhi_refuse(complaint, "not a regular file (use - for a stream)");
}

bool bhi_kernel_file_read(const char *path, void **out_code, size_t *out_size,
                          struct bhi_complaint *complaint) {
    uint8_t *code = NULL;
    bool is_stdin = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    if (!is_stdin && !open_kernel(path, &fd, complaint))
        return false;
    bool good = read_code(fd, &code, out_size, complaint);
    if (!is_stdin)
        close(fd);
    *out_code = code;
    return good;
}

static bool ends_in(const char *text, size_t length, const char *ending) {
    size_t tail = strlen(ending);
    return length > tail && !strncmp(text + length - tail, ending, tail);
}

void bhi_kernel_file_name(const char *path, char out[64]) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    if (ends_in(base, length, ".spv"))
        length -= 4;
    else if (ends_in(base, length, ".comp") || ends_in(base, length, ".glsl"))
        length -= 5;
    if (!strcmp(base, "-")) {
        base = "stdin";
        length = strlen(base);
    }
    char name[256];
    snprintf(name, sizeof name, "%.*s", length > 255 ? 255 : (int)length, base);
    bhi_text_clean(out, 64, name);
}

static bool is_glsl(const struct bhi_kernel_file *file) {
    static const uint8_t magics[2][4] = {{3, 2, 0x23, 7}, {7, 0x23, 2, 3}};
    size_t length = strlen(file->path);
    if (strcmp(file->path, "-") != 0)
        return ends_in(file->path, length, ".comp") || ends_in(file->path, length, ".glsl");
    return file->size < 4 || (memcmp(file->code, magics[0], 4) && memcmp(file->code, magics[1], 4));
}

/* -- compiling it -------------------------------------------------------------------------------
 */

struct compile {
    bh_context *context;
    bh_glsl_source source;
    const bh_kernel_options *options;
    bh_kernel *kernel;
    bh_status status;
    bh_detail detail;
    char log[LOG_SIZE];
};

static void run_compile(void *argument) {
    struct compile *compile = argument;
    compile->status = bh_kernel_create_glsl(compile->context, &compile->source, compile->options,
                                            &compile->kernel, &compile->detail);
}

/* A line each, cleaned: a source can put anything there. */
static void print_log(const char *log) {
    char line[1024], clean[1024];
    while (*log) {
        size_t length = strcspn(log, "\n");
        snprintf(line, sizeof line, "%.*s", length > 1000 ? 1000 : (int)length, log);
        fprintf(stderr, "%s\n", bhi_text_clean(clean, sizeof clean, line));
        log += length + (log[length] == '\n');
    }
}

static int end_compile(const char *command, const char *path, struct compile *compile,
                       bh_kernel **out_kernel) {
    static const char call[] = "bh_kernel_create_glsl: ";
    print_log(compile->log);
    if (compile->status == BH_OK) {
        *out_kernel = compile->kernel;
        return BHI_EXIT_READY;
    }
    bh_detail *detail = &compile->detail;
    if (compile->status == BH_COMPILE_FAILED && compile->log[0])
        snprintf(detail->message, sizeof detail->message, "it does not compile");
    else if (!strncmp(detail->message, call, strlen(call)))
        memmove(detail->message, detail->message + strlen(call),
                strlen(detail->message) - strlen(call) + 1);
    /* The library names the source, too. */
    size_t named = strlen(compile->source.name);
    if (!strncmp(detail->message, compile->source.name, named) &&
        !strncmp(detail->message + named, ": ", 2))
        memmove(detail->message, detail->message + named + 2,
                strlen(detail->message + named + 2) + 1);
    return bhi_session_fail(command, path, compile->status, detail);
}

static int make_glsl(const char *command, const struct bhi_kernel_file *file, bh_context **context,
                     const bh_kernel_options *options, bh_kernel **out_kernel) {
    struct compile *compile = calloc(1, sizeof *compile);
    int exit_status = BHI_EXIT_ENVIRON;
    if (compile) {
        compile->context = *context;
        compile->options = options;
        bh_glsl_source_init(&compile->source);
        compile->source.text = file->code;
        compile->source.length = file->size;
        compile->source.name = strcmp(file->path, "-") ? file->path : "stdin";
        compile->source.defines = file->source.defines;
        compile->source.define_count = file->source.define_count;
        compile->source.includes = file->source.includes;
        compile->source.include_count = file->source.include_count;
        compile->source.log = compile->log;
        compile->source.log_size = sizeof compile->log;
    }
    if (!compile) {
        bhi_complain(command, "out of memory");
    } else if (bhi_task_run(command, context, run_compile, compile, &exit_status)) {
        exit_status = end_compile(command, file->path, compile, out_kernel);
    } else {
        (void)bh_kernel_release(compile->kernel);
    }
    free(compile);
    return exit_status;
}

int bhi_kernel_file_make(const char *command, const struct bhi_kernel_file *file,
                         bh_context **context, const bh_kernel_options *options,
                         bh_kernel **out_kernel) {
    if (is_glsl(file))
        return make_glsl(command, file, context, options, out_kernel);
    if (file->source.define_count || file->source.include_count) {
        bhi_complain(command, "%s is SPIR-V: -D and -I are for GLSL (.comp, .glsl)", file->path);
        return BHI_EXIT_USAGE;
    }
    bh_detail detail = {0};
    bh_status status =
        bh_kernel_create_spirv(*context, file->code, file->size, options, out_kernel, &detail);
    if (status == BH_OK)
        return BHI_EXIT_READY;
    const size_t used = strlen(detail.message);
    if (strstr(detail.message, "SPIR-V")) /* it is none, and perhaps was not meant to be */
        snprintf(detail.message + used, sizeof detail.message - used,
                 "; GLSL needs a name that ends in .comp or .glsl");
    return bhi_session_fail(command, file->path, status, &detail);
}
