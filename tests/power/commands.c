#include "commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/mains.h"
#include "cli/run/steps.h"

char root[64];
static char printed[96]; /* beside it */

static void make_root(void) {
    strcpy(root, "/dev/shm/bulkhead-power-XXXXXX");
    BHT_TRUE(mkdtemp(root));
    snprintf(printed, sizeof printed, "%s.printed", root);
    setenv("SCRIPT_ADD", "1", 1);
}

static void end_root(void) {
    power_end();
    BHT_TRUE(bht_remove(root));
    unlink(printed);
}

BHT_AT_START(bht_around(make_root, end_root))

static int run_words(char **words, size_t count) {
    struct bhi_complaint complaint;
    struct bhi_args args;
    const struct bhi_command *named = bhi_command_find(words[0]);
    if (!bhi_args_parse(named, words + 1, count - 1, &args, &complaint)) {
        fprintf(stderr, "%s\n", complaint.text);
        return 2;
    }
    const int status = named->id == BHI_COMMAND_RUN ? bhi_run_main(&args) : bhi_batch_main(&args);
    bhi_args_free(&args);
    fflush(NULL);
    return status;
}

int command(const char *line) {
    int status;
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        char *words[32], *copy = strdup(line);
        size_t count = 0;
        const int out = open(printed, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (chdir(root) != 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) {
            _exit(99);
        }
        for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
            words[count++] = word;
        }
        _exit(run_words(words, count));
    }
    BHT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        power_say(line);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

const char *printed_text(void) {
    static char text[8192];
    const int fd = open(printed, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

const char *expect(const char *line) {
    const int status = command(line);
    if (status != 0) {
        BHT_FAIL("%s: exit status %d: %s", line, status, printed_text());
    }
    return printed_text();
}

void put_array(const char *name, int value) {
    char path[128], array[128 + 5];
    snprintf(path, sizeof path, "%s/%s", root, name);
    memset(array, ' ', 128);
    memcpy(array, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(array + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 57);
    array[127] = '\n';
    memset(array + 128, value, 4);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_EQ(write(fd, array, 132), 132);
    close(fd);
}

int value_of(const char *name) {
    char path[128];
    unsigned char array[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    const ssize_t size = read(fd, array, sizeof array);
    close(fd);
    const bool whole = size == 132 && !memcmp(array, "\x93NUMPY", 6) && array[128] == array[129] &&
                       array[128] == array[130] && array[128] == array[131];
    return whole ? array[128] : -2;
}
