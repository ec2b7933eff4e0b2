/* An NVRTC that compiles nothing: a kernel's PTX names the fake driver's kernel of the same name
 * (tests/fake_cuda/ptx.c). It reads of a source
 *
 *     [extern "C"] [template <class T>] __global__ void NAME(PARAMETERS)
 *     #include "NAME"              of the headers given, or a file, whose beginning it tells
 *     #error TEXT                  an error
 *     #pragma warn                 a warning
 *     #pragma needs OPTION         an error without this option
 *     #pragma crash|hang|eat|break it crashes, sleeps for ever, takes all memory, fails inside
 *     #pragma ptx TEXT             asm(): a line of the PTX
 *     #pragma connect              it makes a system call that no compiler needs
 *
 * and before it compiles it makes the system calls of the real one, which goes on without what they
 * refuse. A name that is not extern "C" is mangled: "_Z", its length, it, and the template's arguments. */
#include <ctype.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUILTINS "libnvrtc-builtins.so.12.8"
#define MOST     8

enum result {
    SUCCESS,
    OUT_OF_MEMORY = 1,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    BUILTIN = 7,
    NO_NAME = 10,
    INTERNAL = 11
};

struct expression {
    const char *text; /* the caller's */
    char name[128];   /* in the PTX; "": it is no kernel's */
};

struct program {
    const char *text, *name, *const *headers, *const *names; /* the caller's */
    int headers_count, option_count;
    const char *const *options;
    struct expression expressions[MOST];
    int expression_count, errors;
    char log[4096], ptx[8192];
};

#pragma GCC visibility push(default)
enum result nvrtcVersion(int *major, int *minor);
enum result nvrtcCreateProgram(struct program **out, const char *text, const char *name, int count,
                               const char *const *headers, const char *const *names);
enum result nvrtcDestroyProgram(struct program **program);
enum result nvrtcAddNameExpression(struct program *program, const char *text);
enum result nvrtcCompileProgram(struct program *program, int count, const char *const *options);
enum result nvrtcGetProgramLogSize(const struct program *program, size_t *bytes);
enum result nvrtcGetProgramLog(const struct program *program, char *log);
enum result nvrtcGetLoweredName(struct program *program, const char *text, const char **name);
enum result nvrtcGetPTXSize(const struct program *program, size_t *bytes);
enum result nvrtcGetPTX(const struct program *program, char *ptx);
const char *nvrtcGetErrorString(enum result result);
#pragma GCC visibility pop

static void __attribute__((format(printf, 3, 4))) put(char *text, size_t size, const char *format,
                                                      ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text + strlen(text), size - strlen(text), format, args);
    va_end(args);
}

#define LOG(...) put(program->log, sizeof program->log, __VA_ARGS__)
#define PTX(...) put(program->ptx, sizeof program->ptx, __VA_ARGS__)

static const char *option_of(const struct program *program, const char *begin) {
    for (int i = 0; i < program->option_count; i++) {
        if (strncmp(program->options[i], begin, strlen(begin)) == 0) {
            return program->options[i] + strlen(begin);
        }
    }
    return NULL;
}

/* -- kernels ---------------------------------------------------------------------------------- */

static void put_parameters(struct program *program, const char *at, const char *end) {
    const char *comma = "";
    int number = 0;
    while (at < end) {
        const char *next = memchr(at, ',', (size_t)(end - at));
        next = next ? next : end;
        const size_t length = (size_t)(next - at);
        PTX("%s.param %s p%d", comma,
            memchr(at, '*', length)          ? ".u64"
            : memmem(at, length, "float", 5) ? ".f32"
                                             : ".u32",
            number++);
        comma = ", ";
        at = next + 1;
    }
}

static void put_kernel(struct program *program, const char *mangled, const char *body, int length,
                       const char *parameters) {
    PTX(".visible .entry %s(", mangled);
    put_parameters(program, parameters, strchr(parameters, ')'));
    PTX(") .body %.*s\n", length, body);
}

/* |at| is behind "__global__ void "; |line| is the beginning of its line. */
static void take_kernel(struct program *program, const char *line, const char *at) {
    const int length = (int)strcspn(at, "(");
    const char *parameters = at + length + 1;
    const bool plain = memmem(line, (size_t)(at - line), "extern \"C\"", 10);
    const bool generic = memmem(line, (size_t)(at - line), "template", 8);
    char mangled[128];
    bool named = false;
    for (int i = 0; i < program->expression_count; i++) {
        struct expression *expression = &program->expressions[i];
        const char *arguments = expression->text + length;
        if (strncmp(expression->text, at, (size_t)length) != 0 ||
            (generic ? *arguments != '<' : *arguments != '\0')) {
            continue;
        }
        snprintf(mangled, sizeof mangled, plain ? "%.*s" : "_Z%1$d%2$.*1$s%3$s", length, at,
                 generic ? "I" : "v");
        for (const char *c = generic ? arguments + 1 : ""; *c && *c != '>'; c++) {
            put(mangled, sizeof mangled, "%c", isalnum((unsigned char)*c) ? *c : '_');
        }
        snprintf(expression->name, sizeof expression->name, "%s", mangled);
        put_kernel(program, mangled, at, length, parameters);
        named = true;
    }
    if (!named && !generic) {
        snprintf(mangled, sizeof mangled, plain ? "%.*s" : "_Z%1$d%2$.*1$sv", length, at);
        put_kernel(program, mangled, at, length, parameters);
    }
}

/* -- lines ------------------------------------------------------------------------------------ */

static enum result scan(struct program *program, const char *name, const char *text);

static enum result include(struct program *program, const char *file, int line, const char *at) {
    char wanted[128], begin[40] = "";
    snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(at + 1, "\">\n"), at + 1);
    for (int i = 0; i < program->headers_count; i++) {
        if (strcmp(program->names[i], wanted) == 0) {
            return scan(program, wanted, program->headers[i]);
        }
    }
    FILE *read = fopen(wanted, "re");
    if (read) {
        (void)!fgets(begin, sizeof begin, read);
        fclose(read);
        LOG("%s(1): error: it begins %s\n", wanted, begin);
    } else {
        LOG("%s(%d): catastrophic error: could not open source file \"%s\"\n", file, line, wanted);
    }
    program->errors++;
    return COMPILATION;
}

static enum result obey(struct program *program, const char *file, int line, const char *word) {
    if (strncmp(word, "crash", 5) == 0) {
        *(volatile int *)1 = 0;
    } else if (strncmp(word, "ptx ", 4) == 0) {
        PTX("%.*s\n", (int)strcspn(word + 4, "\n"), word + 4);
    } else if (strncmp(word, "connect", 7) == 0) {
        (void)socket(AF_INET, SOCK_STREAM, 0);
    } else if (strncmp(word, "hang", 4) == 0) {
        for (;;) {
            sleep(1000);
        }
    } else if (strncmp(word, "eat", 3) == 0) {
        for (void *block; (block = malloc(1 << 20));) {
            memset(block, 1, 1 << 20);
        }
        return OUT_OF_MEMORY;
    } else if (strncmp(word, "break", 5) == 0) {
        return INTERNAL;
    } else if (strncmp(word, "warn", 4) == 0) {
        LOG("%s(%d): warning #177-D: variable \"x\" was declared but never referenced\n\n", file,
            line);
    } else if (strncmp(word, "needs ", 6) == 0) {
        char option[128];
        snprintf(option, sizeof option, "%.*s", (int)strcspn(word + 6, "\n"), word + 6);
        const char *rest = option_of(program, option);
        if (!rest || *rest) {
            LOG("%s(%d): error: no option %s\n", file, line, option);
            program->errors++;
        }
    }
    return SUCCESS;
}

static enum result scan(struct program *program, const char *name, const char *text) {
    static const char kernel[] = "__global__ void ";
    enum result result = SUCCESS;
    int number = 1;
    for (const char *line = text; *line && result == SUCCESS; number++) {
        const char *end = strchrnul(line, '\n');
        const char *found = memmem(line, (size_t)(end - line), kernel, sizeof kernel - 1);
        if (strncmp(line, "#include ", 9) == 0) {
            result = include(program, name, number, line + 9);
        } else if (strncmp(line, "#pragma ", 8) == 0) {
            result = obey(program, name, number, line + 8);
        } else if (strncmp(line, "#error ", 7) == 0) {
            LOG("%s(%d): error: #error directive: %.*s\n  %.*s\n   ^\n\n", name, number,
                (int)(end - line - 7), line + 7, (int)(end - line), line);
            program->errors++;
        } else if (found) {
            take_kernel(program, line, found + sizeof kernel - 1);
        }
        line = *end ? end + 1 : end;
    }
    return result;
}

static enum result check_names(struct program *program) {
    for (int i = 0; i < program->expression_count; i++) {
        if (!program->expressions[i].name[0]) {
            LOG("__nv_name_map(2): error: identifier \"%s\" is undefined\n\n",
                program->expressions[i].text);
            program->errors++;
        }
    }
    return program->errors ? COMPILATION : SUCCESS;
}

/* -- the functions ---------------------------------------------------------------------------- */

enum result nvrtcVersion(int *major, int *minor) {
#ifdef FAKE_NVRTC_OLD
    *major = 7;
    *minor = 5;
#else
    *major = 12;
    *minor = 8;
#endif
    return SUCCESS;
}

enum result nvrtcCreateProgram(struct program **out, const char *text, const char *name, int count,
                               const char *const *headers, const char *const *names) {
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return OUT_OF_MEMORY;
    }
    **out = (struct program){
        .text = text, .name = name, .headers = headers, .names = names, .headers_count = count};
    return SUCCESS;
}

enum result nvrtcDestroyProgram(struct program **program) {
    free(*program);
    *program = NULL;
    return SUCCESS;
}

enum result nvrtcAddNameExpression(struct program *program, const char *text) {
    if (program->expression_count == MOST) {
        return OUT_OF_MEMORY;
    }
    program->expressions[program->expression_count++].text = text;
    return SUCCESS;
}

/* Returns false where the real one would read behind a block of the heap. */
static bool call_the_system(void) {
    char folder[256];
    struct rlimit limit;
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    if (getrlimit(RLIMIT_STACK, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_STACK, &limit);
    }
    FILE *zone = fopen("/etc/localtime", "re");
    if (zone) {
        fclose(zone);
    }
    return getcwd(folder, sizeof folder);
}

enum result nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    static const char *const known[] = {"-D", "--gpu-architecture=compute_",
                                        "--std=", "--device-debug", "--time=-"};
    program->option_count = count;
    program->options = options;
    if (!call_the_system()) {
        LOG("nvrtc: error: there is no folder.\n");
        return BUILTIN;
    }
    if (!dlopen(BUILTINS, RTLD_NOW)) {
        LOG("nvrtc: error: failed to open " BUILTINS ".\n");
        return BUILTIN;
    }
    for (int i = 0; i < count; i++) {
        bool good = false;
        for (size_t j = 0; j < sizeof known / sizeof known[0]; j++) {
            good = good || strncmp(options[i], known[j], strlen(known[j])) == 0;
        }
        if (!good) {
            LOG("nvrtc: error: unrecognized option %s found\n", options[i]);
            return INVALID_OPTION;
        }
    }
    const char *architecture = option_of(program, known[1]);
    PTX(".version 8.7\n.target sm_%s\n.address_size 64\n", architecture ? architecture : "52");
    const enum result result = scan(program, program->name, program->text);
    return result == SUCCESS ? check_names(program) : result;
}

enum result nvrtcGetProgramLogSize(const struct program *program, size_t *bytes) {
    *bytes = strlen(program->log) + 1;
    return SUCCESS;
}

enum result nvrtcGetProgramLog(const struct program *program, char *log) {
    strcpy(log, program->log);
    return SUCCESS;
}

#ifdef FAKE_NVRTC_ENDLESS
static void __attribute__((constructor)) never_ends(void) {
    for (;;) {
        pause();
    }
}
#endif

#ifndef FAKE_NVRTC_OLD
enum result nvrtcGetLoweredName(struct program *program, const char *text, const char **name) {
    for (int i = 0; i < program->expression_count; i++) {
        if (strcmp(program->expressions[i].text, text) == 0) {
            *name = program->expressions[i].name;
            return SUCCESS;
        }
    }
    return NO_NAME;
}
#endif

enum result nvrtcGetPTXSize(const struct program *program, size_t *bytes) {
    *bytes = strlen(program->ptx) + 1;
    return SUCCESS;
}

enum result nvrtcGetPTX(const struct program *program, char *ptx) {
    strcpy(ptx, program->ptx);
    return SUCCESS;
}

const char *nvrtcGetErrorString(enum result result) {
    return result == BUILTIN    ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
           : result == INTERNAL ? "NVRTC_ERROR_INTERNAL_ERROR"
                                : "NVRTC_ERROR_OTHER";
}
