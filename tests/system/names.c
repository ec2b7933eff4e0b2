/* What ps and top call the processes: each says what it is. */
#include "files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct title {
    char name[32], line[4200]; /* comm; the command line's second word */
};

static size_t read_file(pid_t pid, const char *what, char *out, size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, out, capacity - 1);
    if (fd >= 0) {
        close(fd);
    }
    out[length < 0 ? 0 : length] = '\0';
    return length < 0 ? 0 : (size_t)length;
}

static struct title title_of(pid_t pid) {
    struct title title = {.line = ""};
    char line[4200];
    read_file(pid, "comm", title.name, sizeof title.name);
    title.name[strcspn(title.name, "\n")] = '\0';
    size_t length = read_file(pid, "cmdline", line, sizeof line), first = strlen(line) + 1;
    /* What it was started as stays in front. */
    if (length > first) {
        snprintf(title.line, sizeof title.line, "%s", line + first);
    }
    return title;
}

static pid_t find(const char *name) {
    return bht_descendant_called(getpid(), name);
}

static void expect(const char *name, const char *line) {
    pid_t pid = 0;
    WAIT_UNTIL((pid = find(name)) != 0, 20000);
    WAIT_UNTIL(strcmp(title_of(pid).line, line) == 0, 20000);
}

static void *probe(void *argument) {
    bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    size_t count;
    BHT_EQ(bh_doctor(argument, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
    return NULL;
}

TEST(each_says_what_it_is) {
    enter_folder();
    fx_write_file("f", "0123456789abcdef", 16);
    bh_context_options options = fx_options();
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "matrix", FX_SECONDS);
    const pid_t pid = fx_ready(stream);
    fx_expect_healthy(context, stream);
    expect("bh-warden", "warden");
    expect("bh-zygote", "zygote");
    expect("bh:matrix", "worker of matrix");
    BHT_EQ(find("bh:matrix"), pid);
    expect("bh-spare", "spare worker");
    bh_file_source source = source_of("f", BH_FILE_RAW, NULL);
    bh_buffer *buffer = fx_load(context, &source);
    (void)fx_mapped(buffer);
    expect("bh-loader", "loader");
    expect("bh-opener", "opener");
    /* Probers are gone soon: one is looked for while there are some. */
    bht_start(probe, context);
    WAIT_UNTIL(find("bh-prober") != 0, 20000);
    bht_join();
}

/* A compiler lives for one call: it is stopped in it. */
static void *compile(void *context) {
    bh_source source = {.struct_size = sizeof source};
    source.text = "#version 450\nvoid main() {}\n";
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_source(context, &source, NULL, &kernel, NULL), BH_OK);
    bh_kernel_release(kernel);
    return NULL;
}

TEST(so_does_a_compiler) {
    bh_context *context = fx_context("*:compile:1=stop");
    bht_start(compile, context);
    const pid_t pid = fx_await_stopped();
    const struct title title = title_of(pid);
    BHT_STR_EQ(title.name, "bh-compiler");
    BHT_STR_EQ(title.line, "compiler");
    fx_kill(pid, SIGCONT);
    bht_join();
}

/* Cleaned, and cut at a character: in the kernel's 15 bytes, and in 64 of ours. */
TEST(a_stream_may_be_called_anything) {
    static const struct {
        const char *stream, *name, *line;
    } rows[] = {
        {"a\nb\x1b[31m", "bh:a b?[31m", "worker of a b?[31m"},
        {"\xe2\x80\xaetxt.exe", "bh:?txt.exe", "worker of ?txt.exe"},
        {"12345678901\xc3\xa9", "bh:12345678901", "worker of 12345678901\xc3\xa9"},
        {"a name of sixty-three bytes, which is as long as it can be, 123", "bh:a name of si",
         "worker of a name of sixty-three bytes, which is as long as it can be, 123"},
    };
    bh_context *context = fx_context(NULL);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_stream *stream = fx_stream(context, rows[i].stream, FX_SECONDS);
        fx_ready(stream);
        expect(rows[i].name, rows[i].line);
        bh_stream_release(stream);
        WAIT_UNTIL(find(rows[i].name) == 0, 20000);
    }
}
