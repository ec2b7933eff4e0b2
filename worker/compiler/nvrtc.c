#include "worker/compiler/nvrtc.h"

#include "base/format.h"
#include "base/owner.h"
#include "worker/compiler/answer.h"
#include "worker/error.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PTX runs on devices from its own compute capability on, and the driver compiles it for the one it
 * has. A kernel belongs to no device, so by default it is for the oldest that CUDA 13 knows. */
#define ARCHITECTURE "--gpu-architecture=compute_75"
#define LISTED       8u /* kernels that a message names */

typedef struct program *nvrtcProgram;

enum result { SUCCESS, OUT_OF_MEMORY = 1, INVALID_OPTION = 5, COMPILATION = 6 };

#define FUNCTIONS(X)                                                                               \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcCreateProgram, (nvrtcProgram * program, const char *text, const char *name, int count,  \
                           const char *const *headers, const char *const *names))                  \
    X(nvrtcDestroyProgram, (nvrtcProgram * program))                                               \
    X(nvrtcAddNameExpression, (nvrtcProgram program, const char *expression))                      \
    X(nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options))          \
    X(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *bytes))                               \
    X(nvrtcGetProgramLog, (nvrtcProgram program, char *log))                                       \
    X(nvrtcGetLoweredName, (nvrtcProgram program, const char *expression, const char **name))      \
    X(nvrtcGetPTXSize, (nvrtcProgram program, size_t *bytes))                                      \
    X(nvrtcGetPTX, (nvrtcProgram program, char *ptx))

struct nvrtc {
#define FIELD(name, parameters) enum result(*name) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
    const char *(*nvrtcGetErrorString)(enum result result);
    int major, minor;
};

static bool find(void *library, const char *name, void *out, const struct nvrtc *nvrtc,
                 struct bhi_error *error) {
    void *function = dlsym(library, name);
    memcpy(out, &function, sizeof function);
    if (!function && !nvrtc->major) {
        BHI_ERROR_SAY(
            error, BH_REASON_COMPILER,
            "compile CUDA C++: what was loaded is not NVRTC (BULKHEAD_NVRTC names it): it "
            "has no %s",
            name);
    } else if (!function) {
        BHI_ERROR_SAY(error, BH_REASON_COMPILER,
                      "compile CUDA C++: NVRTC %d.%d has no %s; CUDA 11 or later has it",
                      nvrtc->major, nvrtc->minor, name);
    }
    return function;
}

/* The version comes first: what is missing is said of it. */
static bool load(void *library, struct nvrtc *out, struct bhi_error *error) {
    *out = (struct nvrtc){.major = 0};
    if (!library) {
        BHI_ERROR(error, BH_REASON_COMPILER, .text = "compile CUDA C++: it has no NVRTC");
        return false;
    }
#define FIND(name, parameters)                                                                     \
    if (!find(library, #name, &out->name, out, error)) {                                           \
        return false;                                                                              \
    }                                                                                              \
    if (!out->major && out->nvrtcVersion(&out->major, &out->minor) != SUCCESS) {                   \
        out->major = 0;                                                                            \
    }
    FUNCTIONS(FIND)
#undef FIND
    return find(library, "nvrtcGetErrorString", &out->nvrtcGetErrorString, out, error);
}

/* -- one run of the compiler ------------------------------------------------------------------ */

/* What NVRTC is given besides the source. */
struct arguments {
    const char **options, **headers, **names;
    int option_count;
    char *texts; /* owned: what the options are in */
};

static void free_arguments(struct arguments *arguments) {
    free(arguments->options);
    free(arguments->headers);
    free(arguments->names);
    free(arguments->texts);
}

/* Options whose effect is outside the process, or another than PTX. NVRTC 13 would end in a forbidden
 * system call, abort, or speak of temporary files. It takes no abbreviations. */
static const struct refused {
    const char *name, *why;
    const char *but; /* a value that is good; NULL: none */
} refused[] = {
#define PRECOMPILED "precompiled headers are files, and the compiler has none"
#define TIMES       "it writes a file, and the compiler has none"
#define NO_PTX      "it makes no PTX, of which kernels are made"
    {"--pch", PRECOMPILED, NULL},
    {"-pch", PRECOMPILED, NULL},
    {"--create-pch", PRECOMPILED, NULL},
    {"-create-pch", PRECOMPILED, NULL},
    {"--use-pch", PRECOMPILED, NULL},
    {"-use-pch", PRECOMPILED, NULL},
    {"--pch-dir", PRECOMPILED, NULL},
    {"-pch-dir", PRECOMPILED, NULL},
    {"--time", TIMES "; --time=- puts the times into the log", "-"},
    {"-time", TIMES "; -time=- puts the times into the log", "-"},
    {"--fdevice-time-trace", TIMES, NULL},
    {"-fdevice-time-trace", TIMES, NULL},
    {"--dlink-time-opt", NO_PTX, NULL},
    {"-dlto", NO_PTX, NULL},
    {"--optix-ir", NO_PTX, NULL},
    {"-optix-ir", NO_PTX, NULL},
    {"--fdevice-syntax-only", NO_PTX, NULL},
    {"-fdevice-syntax-only", NO_PTX, NULL},
#undef PRECOMPILED
#undef TIMES
#undef NO_PTX
};

/* Returns the first option that is refused; NULL: none. */
static const struct refused *find_refused(const struct arguments *arguments) {
    for (int i = 0; i < arguments->option_count; i++) {
        const char *option = arguments->options[i];
        const size_t length = strcspn(option, "=");
        const char *value = option[length] == '=' ? option + length + 1 : NULL;
        for (size_t j = 0; j < sizeof refused / sizeof refused[0]; j++) {
            const struct refused *row = &refused[j];
            if (strncmp(option, row->name, length) == 0 && row->name[length] == '\0' &&
                !(row->but && value && strcmp(value, row->but) == 0)) {
                return row;
            }
        }
    }
    return NULL;
}

/* The options are separated by blanks. Returns false: out of memory. */
static bool take_arguments(const struct bhi_glsl *source, struct arguments *out) {
    /* N characters hold (N + 1) / 2 options at most; two more are ours. */
    const size_t most = source->define_count + (source->options.length + 1) / 2 + 2;
    size_t bytes = source->options.length + 1;
    for (size_t i = 0; i < source->define_count; i++) {
        bytes += source->defines[i].name.length + source->defines[i].text.length + sizeof "-D=";
    }
    *out = (struct arguments){.texts = malloc(bytes)};
    out->options = calloc(most, sizeof *out->options);
    out->headers = calloc(source->include_count + 1, sizeof *out->headers);
    out->names = calloc(source->include_count + 1, sizeof *out->names);
    if (!out->texts || !out->options || !out->headers || !out->names) {
        return false;
    }
    char *at = out->texts;
    for (size_t i = 0; i < source->define_count; i++) {
        const struct bhi_glsl_pair *define = &source->defines[i];
        out->options[out->option_count++] = at;
        at += sprintf(at, "-D%s=%s", define->name.bytes, define->text.bytes) + 1;
    }
    memcpy(at, source->options.bytes, source->options.length + 1);
    bool chosen = false; /* the architecture */
    for (char *option = strtok(at, " \t"); option; option = strtok(NULL, " \t")) {
        chosen |=
            strncmp(option, "--gpu-architecture", 18) == 0 || strncmp(option, "-arch", 5) == 0;
        out->options[out->option_count++] = option;
    }
    if (!chosen) {
        out->options[out->option_count++] = ARCHITECTURE;
    }
    if (!source->optimize) {
        out->options[out->option_count++] = "--device-debug";
    }
    for (size_t i = 0; i < source->include_count; i++) {
        out->headers[i] = source->includes[i].text.bytes;
        out->names[i] = source->includes[i].name.bytes;
    }
    return true;
}

struct run {
    enum result result;
    char *log, *ptx; /* owned; NULL: none */
    char *entry;     /* owned: the name of the wanted kernel in |ptx|; NULL: none was wanted */
};

static void free_run(struct run *run) {
    free(run->log);
    free(run->ptx);
    free(run->entry);
}

static char *copy_text(nvrtcProgram program, enum result (*size)(nvrtcProgram, size_t *),
                       enum result (*get)(nvrtcProgram, char *)) {
    size_t bytes = 0;
    char *text = size(program, &bytes) == SUCCESS ? calloc(1, bytes + 1) : NULL;
    if (text && bytes > 0 && get(program, text) != SUCCESS) {
        text[0] = '\0';
    }
    return text;
}

/* |wanted|: the kernel, as a C++ expression; NULL: only what the source instantiates itself. */
static void run_compiler(const struct nvrtc *nvrtc, const struct bhi_glsl *source,
                         const struct arguments *arguments, const char *wanted, struct run *out) {
    nvrtcProgram program = NULL;
    const char *entry = NULL;
    *out = (struct run){.result = SUCCESS};
    (void)((out->result = nvrtc->nvrtcCreateProgram(
                &program, source->text.bytes, source->name.bytes, (int)source->include_count,
                arguments->headers, arguments->names)) != SUCCESS ||
           (wanted && (out->result = nvrtc->nvrtcAddNameExpression(program, wanted)) != SUCCESS) ||
           (out->result = nvrtc->nvrtcCompileProgram(program, arguments->option_count,
                                                     arguments->options)) != SUCCESS ||
           (wanted &&
            (out->result = nvrtc->nvrtcGetLoweredName(program, wanted, &entry)) != SUCCESS));
    if (program) {
        out->log = copy_text(program, nvrtc->nvrtcGetProgramLogSize, nvrtc->nvrtcGetProgramLog);
    }
    if (out->result == SUCCESS) {
        out->ptx = copy_text(program, nvrtc->nvrtcGetPTXSize, nvrtc->nvrtcGetPTX);
        out->entry = entry ? strdup(entry) : NULL;
        if (!out->ptx || (entry && !out->entry)) {
            out->result = OUT_OF_MEMORY;
        }
    }
    if (program) {
        (void)nvrtc->nvrtcDestroyProgram(&program);
    }
}

/* -- the log ---------------------------------------------------------------------------------- */

/* "NAME(4): error: …" and "NAME(4): catastrophic error: …" become "NAME:4: error: …", as other compilers
 * write it. The result is no longer than the log. */
static void rewrite_places(char *log) {
    static const char end[] = "): ", catastrophic[] = "catastrophic ";
    char *out = log;
    bool placed = false; /* in this line */
    for (const char *at = log; *at;) {
        const size_t digits = *at == '(' && !placed ? strspn(at + 1, "0123456789") : 0;
        placed = *at != '\n' && placed;
        if (digits > 0 && strncmp(at + 1 + digits, end, sizeof end - 1) == 0) {
            *out++ = ':';
            memmove(out, at + 1, digits);
            out = stpcpy(out + digits, ": ");
            at += digits + sizeof end;
            at += strncmp(at, catastrophic, sizeof catastrophic - 1) ? 0 : sizeof catastrophic - 1;
            placed = true;
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
}

static void refuse(struct bhi_compile_answer *answer, const struct bhi_glsl *source,
                   const char *why) {
    char line[1400];
    bhi_format(line, sizeof line, "%.400s: error: %s\n", source->name.bytes, why);
    answer->refused = 1;
    bhi_answer_log(answer, line);
}

/* -- the kernels in PTX ----------------------------------------------------------------------- */

struct name {
    const char *at;
    size_t length;
};

static const char *skip_to(const char *at, const char *end) {
    const char *found = strstr(at, end);
    return found ? found + strlen(end) : at + strlen(at);
}

/* Skips blanks and comments. */
static const char *skip_blanks(const char *at) {
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (strncmp(at, "//", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            at = skip_to(at + 2, "*/");
        } else {
            return at;
        }
    }
}

/* |at| is a quotation mark. Returns what is behind the string. */
static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++) {
        at += *at == '\\' && at[1];
    }
    return at + (*at == '"');
}

/* Finds the next ".entry NAME(" behind |at|, in the code: a source can write anything into comments and
 * strings of its PTX, with asm(). */
static bool next_entry(const char *at, struct name *out) {
    static const char word[] = ".entry";
    while (*(at = skip_blanks(at))) {
        if (*at == '"') {
            at = skip_string(at);
        } else if (strncmp(at, word, sizeof word - 1) == 0) {
            const char *behind = at + sizeof word - 1;
            at = out->at = skip_blanks(behind);
            while (isalnum((unsigned char)*at) || (*at && strchr("_$.%", *at))) {
                at++;
            }
            out->length = (size_t)(at - out->at);
            if (out->at > behind && out->length > 0) {
                return true;
            }
        } else {
            at++;
        }
    }
    return false;
}

static bool has_entry(const char *ptx, const char *wanted) {
    struct name name = {.at = ptx};
    while (next_entry(name.at, &name)) {
        if (name.length == strlen(wanted) && memcmp(name.at, wanted, name.length) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes the names of the first kernels: "a, b, and 3 more". Returns how many there are. */
static size_t list_entries(const char *ptx, char *out, size_t size) {
    struct name name = {.at = ptx};
    size_t count = 0, used = 0;
    out[0] = '\0';
    while (next_entry(name.at, &name)) {
        if (count++ < LISTED) {
            used += bhi_format(out + used, size - used, "%s%.*s", count > 1 ? ", " : "",
                               name.length < 100 ? (int)name.length : 100, name.at);
        }
    }
    if (count > LISTED) {
        bhi_format(out + used, size - used, ", and %zu more", count - LISTED);
    }
    return count;
}

/* |wanted| is the name in the PTX; NULL: the only kernel. If it is not clear which one is meant, the
 * answer says what there is. */
static void choose_entry(struct bhi_compile_answer *answer, const struct bhi_glsl *source,
                         const char *ptx, const char *wanted) {
    char list[900], why[1000];
    struct name only = {.at = wanted, .length = wanted ? strlen(wanted) : 0};
    const size_t count = list_entries(ptx, list, sizeof list);
    if (wanted ? has_entry(ptx, wanted) : count == 1 && next_entry(ptx, &only)) {
        if (only.length < sizeof answer->entry) {
            memcpy(answer->entry, only.at, only.length);
            return;
        }
        snprintf(why, sizeof why,
                 "the kernel's mangled name has %zu characters, over %zu: extern \"C\" keeps the "
                 "name short",
                 only.length, sizeof answer->entry - 1);
    } else if (count == 0) {
        snprintf(
            why, sizeof why,
            "there is no kernel: no __global__ function, or only templates, of which the entry "
            "point names one, such as scale<float>");
    } else if (wanted) {
        bhi_format(why, sizeof why,
                   "there is no kernel '%.60s'; there %s %s; a template needs its arguments, as in "
                   "scale<float>",
                   source->entry.bytes, count == 1 ? "is" : "are", list);
    } else {
        bhi_format(why, sizeof why, "there are %zu kernels, choose the entry point: %s", count,
                   list);
    }
    refuse(answer, source, why);
}

/* -- the whole -------------------------------------------------------------------------------- */

/* Returns false if there is no answer. */
static bool take(const struct nvrtc *nvrtc, const struct bhi_glsl *source, const struct run *run,
                 const char *wanted, struct bhi_compile_answer *answer, char *code, uint64_t room,
                 struct bhi_error *error) {
    const char *log = run->log ? run->log : "";
    if (run->log) {
        rewrite_places(run->log);
    }
    if (run->result == SUCCESS) {
        bhi_answer_log(answer, log); /* the warnings */
        choose_entry(answer, source, run->ptx, wanted);
        if (!answer->refused) {
            bhi_answer_code(answer, run->ptx, strlen(run->ptx), code, room);
        }
        return true;
    }
    if (run->result == COMPILATION || run->result == INVALID_OPTION) {
        answer->refused = 1;
        bhi_answer_log(answer, log);
        return true;
    }
    if (run->result == OUT_OF_MEMORY) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the compiler");
    } else {
        BHI_ERROR_SAY(error, BH_REASON_COMPILER, "compile CUDA C++: NVRTC %d.%d says %.60s%s%.*s",
                      nvrtc->major, nvrtc->minor, nvrtc->nvrtcGetErrorString(run->result),
                      log[0] ? ": " : "", (int)strcspn(log, "\n"), log);
    }
    return false;
}

bool bhi_nvrtc_compile(void *library, const struct bhi_glsl *source,
                       struct bhi_compile_answer *answer, char *code, uint64_t room,
                       struct bhi_error *error) {
    struct nvrtc nvrtc;
    struct arguments arguments;
    struct run run;
    memset(answer, 0, sizeof *answer);
    if (!load(library, &nvrtc, error)) {
        return false;
    }
    answer->version = (uint32_t)(1000 * nvrtc.major + 10 * nvrtc.minor);
    if (strlen(source->text.bytes) < source->text.length) {
        refuse(answer, source, "the source has a NUL byte");
        return true;
    }
    if (!take_arguments(source, &arguments)) {
        free_arguments(&arguments);
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the compiler");
        return false;
    }
    const struct refused *option = find_refused(&arguments);
    if (option) {
        char why[200];
        snprintf(why, sizeof why, "option %s is not possible here: %s", option->name, option->why);
        refuse(answer, source, why);
        free_arguments(&arguments);
        return true;
    }
    const char *wanted = source->entry.length ? source->entry.bytes : NULL;
    run_compiler(&nvrtc, source, &arguments, wanted, &run);
    if (wanted && run.result == COMPILATION) {
        /* Either the source has errors, and then the log is without those of the name; or the name is
         * none of the source's, and may be one of the PTX. */
        free_run(&run);
        run_compiler(&nvrtc, source, &arguments, NULL, &run);
    }
    const bool good =
        take(&nvrtc, source, &run, run.entry ? run.entry : wanted, answer, code, room, error);
    free_run(&run);
    free_arguments(&arguments);
    return good;
}
