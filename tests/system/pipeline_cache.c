/* Pipeline caches on disk: written when a worker that ran one kernel ends, read by the next one of
 * the same tenant, device and kernel, unless that is to be fresh; and nothing that anybody has done
 * to the files does any harm. lavapipe's caches are a
 * header and nothing behind it, which is enough to tell them apart. */
#include "dead_fuse.h"
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BIGGEST = 1 << 16 }; /* file of one small kernel */

/* -- folders ----------------------------------------------------------------------------------- */

static char folder[256];

static const char *inside(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/bulkhead-cache-XXXXXX");
    BHT_TRUE(mkdtemp(folder));
}

static void empty_folder(void) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') {
            BHT_EQ(unlink(inside(entry->d_name)), 0);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void drop_folder(void) {
    empty_folder();
    BHT_EQ(rmdir(folder), 0);
}

/* The caches in it are put into |names|; nothing but them may be there. Returns how many there are.
 */
static char names[72][80];
static size_t list(void) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    BHT_TRUE(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        BHT_STR_HAS(entry->d_name, ".cache");
        BHT_LT(count, BHT_COUNT(names));
        snprintf(names[count++], 80, "%.70s", entry->d_name);
    }
    closedir(dir);
    return count;
}

static size_t read_file(const char *path, uint8_t *out, size_t capacity) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t length = read(fd, out, capacity);
    BHT_GE(length, 0);
    close(fd);
    return (size_t)length;
}

/* -- runs -------------------------------------------------------------------------------------- */

static bh_context *open_at(const char *path, const char *faults) {
    bh_context_options options = fx_options();
    options.cache_dir = path;
    fx_keep_log(&options);
    return fx_context_with(options, faults);
}

static bh_stream *stream_of(bh_context *context, const char *tenant) {
    bh_stream_options options = fx_stream_options();
    options.tenant = tenant;
    return fx_stream_with(context, options);
}

/* A context of its own, in which |tenant| compiles something. */
static void run_at(const char *path, const char *tenant) {
    bh_context *context = open_at(path, NULL);
    fx_expect_healthy(context, stream_of(context, tenant)); /* with the kernel "square" */
    fx_release_all();
}

/* Another kernel, which ends at once. */
static void pass_gate(bh_context *context, bh_stream *stream) {
    bh_buffer *word = fx_words(context, 2, FX_GATE_OPEN);
    fx_expect(fx_gate(stream, fx_kernel(context, "gate"), word), BH_OK);
}

static void run(const char *tenant) {
    fx_forget_log();
    run_at(folder, tenant);
}

#define READ    " bytes read"
#define WRITTEN " bytes written"

TEST(it_is_written_and_read_again) {
    run("alice");
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_TRUE(!fx_logged(READ));
    struct stat st;
    BHT_EQ(list(), 1);
    BHT_EQ(stat(inside(names[0]), &st), 0);
    BHT_EQ(st.st_mode & 07777, 0600);
    BHT_GT(st.st_size, 88);
    run("alice");
    BHT_TRUE(fx_logged(READ));
    BHT_TRUE(!fx_logged(WRITTEN)); /* a file is what a worker has left that began with nothing */
    BHT_EQ(list(), 1);
    /* A folder that is missing is made; its parent is not. */
    char below[300];
    snprintf(below, sizeof below, "%s/new", folder);
    fx_forget_log();
    run_at(below, NULL);
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_EQ(stat(below, &st), 0);
    BHT_EQ(st.st_mode & 07777, 0700);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/new");
    drop_folder();
    *strrchr(folder, '/') = 0;
}

/* The worker stops with its result published, before it can have had nothing to do: what it has
 * compiled is there already. */
TEST(it_is_there_before_the_result) {
    bh_context *context = open_at(folder, "1:after_record:1=stop");
    bh_stream *stream = stream_of(context, NULL);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_event *event = fx_square(stream, square, x, y);
    fx_await_stopped();
    fx_expect(event, BH_OK);
    fx_release_all();
    BHT_EQ(list(), 1);
}

TEST(tenants_have_their_own) {
    run("alice");
    BHT_EQ(list(), 1);
    char alice[80];
    strcpy(alice, names[0]);
    run("carol");
    BHT_TRUE(!fx_logged(READ));
    BHT_EQ(list(), 2);
    const char *carol = strcmp(names[0], alice) ? names[0] : names[1];
    /* Whoever calls alice's file carol's has given her nothing. */
    uint8_t bytes[BIGGEST];
    size_t count = read_file(inside(alice), bytes, sizeof bytes);
    fx_write_file(inside(carol), bytes, count);
    run("carol");
    BHT_TRUE(fx_logged("it is ignored: it belongs to another tenant"));
    BHT_TRUE(!fx_logged(READ));
    BHT_TRUE(fx_logged(WRITTEN));
    run("carol");
    BHT_TRUE(!fx_logged("ignored"));
    BHT_TRUE(fx_logged(READ));
}

/* Torn, foreign and forged files; each is ignored, and replaced by a good one. */
TEST(bad_files_are_ignored_and_replaced) {
    run(NULL);
    BHT_EQ(list(), 1);
    uint8_t good[BIGGEST], bad[BIGGEST];
    size_t count = read_file(inside(names[0]), good, sizeof good);
    static const struct {
        size_t cut; /* 0: nothing */
        size_t flip;
        const char *why;
    } bads[] = {
        {1, 0, "shorter than its header"},    {100, 0, "not the one in its header"},
        {0, 0, "not a pipeline cache"},       {0, 8, "another version"},
        {0, 16, "not the one in its header"}, {0, 24, "another tenant"},
        {0, 56, "has changed since"},         {0, 88, "has changed since"},
        {0, 119, "has changed since"},
    };
    for (size_t i = 0; i < BHT_COUNT(bads); i++) {
        memcpy(bad, good, count);
        if (!bads[i].cut) {
            bad[bads[i].flip] ^= 0x40;
        }
        fx_write_file(inside(names[0]), bad, bads[i].cut ? bads[i].cut : count);
        run(NULL);
        BHT_TRUE(fx_logged(bads[i].why));
        BHT_TRUE(fx_logged(WRITTEN));
        BHT_EQ(list(), 1);
    }
    /* What is no file at all. */
    BHT_EQ(unlink(inside(names[0])), 0);
    BHT_EQ(mkfifo(inside(names[0]), 0600), 0);
    run(NULL);
    BHT_TRUE(fx_logged("ignored"));
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_EQ(unlink(inside(names[0])), 0);
    char target[600];
    snprintf(target, sizeof target, "%s", inside("key"));
    BHT_EQ(symlink(target, inside(names[0])), 0);
    run(NULL);
    BHT_TRUE(fx_logged("cannot be read"));
    BHT_TRUE(fx_logged(WRITTEN));
    run(NULL);
    BHT_TRUE(fx_logged(READ));
}

/* What a worker leaves that had two kernels may be the first one's doing, whichever compiled it. */
TEST(each_kernel_has_its_own) {
    for (int kernels = 1; kernels <= 2; kernels++) {
        bh_context *context = open_at(folder, NULL);
        bh_stream *stream = stream_of(context, NULL);
        pass_gate(context, stream);
        if (kernels == 2) {
            fx_expect_healthy(context, stream);
        }
        fx_release_all();
        BHT_EQ(list(), kernels == 1);
        if (kernels == 1) {
            empty_folder();
        }
    }
    run(NULL);
    bh_context *context = open_at(folder, NULL);
    fx_forget_log();
    pass_gate(context, stream_of(context, NULL));
    fx_release_all();
    BHT_TRUE(!fx_logged(READ));
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_EQ(list(), 2);
}

static bh_event *square_alone(bh_stream *stream, bh_kernel *square, bh_buffer *x, bh_buffer *y) {
    const bh_binding bindings[] = {bh_bind_read(0, x), bh_bind_write(1, y)};
    const bh_command command = fx_dispatch(square, bindings, 2);
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1, .alone = true};
    return fx_submit(stream, &info);
}

/* T3: nothing that another worker has left. */
TEST(what_is_to_be_fresh_gets_none) {
    static const bh_isolation isolations[] = {BH_ISOLATION_KERNEL, BH_ISOLATION_SUBMISSION,
                                              BH_ISOLATION_STREAM};
    run(NULL);
    for (int stored = 1; stored >= 0; stored--) {
        for (size_t i = 0; i < BHT_COUNT(isolations); i++) {
            fx_forget_log();
            bh_context *context = open_at(folder, NULL);
            bh_stream_options options = fx_stream_options();
            options.isolation = isolations[i];
            bh_stream *stream = fx_stream_with(context, options);
            bh_kernel *square = fx_kernel(context, "square");
            bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
            fx_expect(isolations[i] == BH_ISOLATION_STREAM ? square_alone(stream, square, x, y)
                                                           : fx_square(stream, square, x, y),
                      BH_OK);
            fx_release_all();
            BHT_TRUE(!fx_logged(READ));
            BHT_TRUE(!fx_logged(WRITTEN));
        }
        BHT_EQ(list(), stored);
        empty_folder();
    }
}

/* T2: the file may be what killed it. The kernel is tried, without the file, before it counts. */
TEST(what_a_file_may_have_done_is_only_suspected) {
    run(NULL);
    fx_forget_log();
    bh_context_options options = fx_options();
    options.cache_dir = folder;
    fx_keep_log(&options);
    options.quarantine_deaths = 1;
    options.quarantine_ns = BH_FOREVER;
    bh_context *context = fx_context_with(options, "1:started:1=segv,2:started:1=segv");
    bh_stream *stream = stream_of(context, NULL);
    bh_kernel *square = fx_kernel(context, "square");
    static const bh_blame blames[] = {BH_BLAME_SUSPECTED, BH_BLAME_CERTAIN};
    for (size_t i = 0; i < BHT_COUNT(blames); i++) {
        bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
        bh_event *event = fx_square(stream, square, x, y);
        const bh_verdict verdict = fx_expect(event, BH_WORKER_SIGNAL);
        BHT_EQ(verdict.blame, blames[i]);
        BHT_EQ(fx_quarantined(context), i);
        BHT_EQ(fx_logged(READ), i == 0);
        fx_forget_log();
    }
    fx_release_all();
}

/* Makes a file that is used last in |second|: the |number|th that begins as |name| does. */
static void plant(const char *name, size_t begins, unsigned number, time_t second) {
    char path[512];
    uint8_t byte = 0;
    snprintf(path, sizeof path, "%s/%.*s%0*u.cache", folder, (int)begins, name, 64 - (int)begins,
             number);
    fx_write_file(path, &byte, 1);
    const struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};
    BHT_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

TEST(the_longest_unused_give_way) {
    enum { MOST = 64, MORE = 5 };
    run(NULL);
    BHT_EQ(list(), 1);
    char square[80], path[600];
    strcpy(square, names[0]);
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    BHT_EQ(utimensat(AT_FDCWD, inside(square), old, 0), 0);
    for (unsigned i = 0; i < MOST + MORE; i++) {
        plant(square, 16, i, 100 + i);
    }
    plant("another tenant's", 16, 0, 2);
    run(NULL);
    BHT_TRUE(fx_logged(READ)); /* so it is not the longest unused any more */
    bh_context *context = open_at(folder, NULL);
    pass_gate(context, stream_of(context, NULL));
    fx_release_all();
    BHT_EQ(list(), MOST + 1);
    BHT_EQ(access(inside(square), F_OK), 0);
    for (unsigned i = 0; i < MOST + MORE; i++) {
        snprintf(path, sizeof path, "%s/%.16s%048u.cache", folder, square, i);
        BHT_EQ(access(path, F_OK) == 0, i >= MORE + 2);
    }
}

TEST(a_folder_that_cannot_be_had_is_a_line_in_the_log) {
    uint8_t byte = 0;
    fx_write_file(inside("file"), &byte, 1);
    char path[512];
    snprintf(path, sizeof path, "%s", inside("file"));
    run_at(path, NULL); /* run_at: what was submitted is READY */
    BHT_TRUE(fx_logged("Not a directory"));
    fx_forget_log();
    snprintf(path, sizeof path, "%s/a/b", folder);
    run_at(path, NULL);
    BHT_TRUE(fx_logged("No such file"));
    BHT_EQ(unlink(inside("file")), 0);
}

/* What a worker that crashed has left is not kept: nobody knows what it had in mind. What was
 * killed for its deadline may have been compiling well. */
TEST(a_crash_is_not_kept) {
    for (int orderly = 0; orderly < 2; orderly++) {
        bh_context *context = open_at(folder, NULL);
        bh_stream *stream = stream_of(context, NULL);
        pass_gate(context, stream);
        pid_t pid = fx_ready(stream);
        bh_event *event = fx_hold(context, stream).event;
        if (orderly) {
            BHT_EQ(bh_event_cancel(event), BH_OK);
        } else {
            fx_kill(pid, SIGSEGV);
        }
        fx_expect(event, orderly ? BH_CANCELLED : BH_WORKER_SIGNAL);
        fx_ready(stream);
        fx_release_all();
        BHT_EQ(list(), orderly);
    }
}

/* A worker that does not survive its file gets a successor without it, whose file replaces it. */
TEST(a_file_that_kills_is_given_once) {
    run(NULL);
    fx_forget_log();
    bh_context *context = open_at(folder, "1:started:1=segv");
    bh_stream *stream = stream_of(context, NULL);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    fx_expect(fx_square(stream, square, x, y), BH_WORKER_SIGNAL);
    BHT_TRUE(fx_logged(READ));
    fx_forget_log();
    fx_expect_healthy(context, stream); /* a trial, which has no cache at all */
    fx_expect_healthy(context, stream_of(context, NULL));
    BHT_TRUE(!fx_logged(READ));
    fx_release_all();
    BHT_TRUE(fx_logged(WRITTEN));
}

/* Several streams, spares, more work than one compile: all of them end with a good file. */
TEST(many_at_once) {
    bh_context_options options = fx_options();
    options.cache_dir = folder;
    fx_keep_log(&options);
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *streams[6];
    for (int i = 0; i < 6; i++) {
        streams[i] = stream_of(context, i % 2 ? "alice" : NULL);
    }
    for (int i = 0; i < 6; i++) {
        fx_expect_healthy(context, streams[i]);
    }
    fx_release_all();
    BHT_TRUE(!fx_logged("ignored"));
    BHT_TRUE(!fx_logged("cannot"));
    BHT_EQ(list(), 2);
    run("alice");
    BHT_TRUE(fx_logged(READ));
    BHT_TRUE(!fx_logged("ignored"));
}

/* What others can put there, or in its place, is not for us. */
TEST(a_folder_that_is_not_ours_alone) {
    static const mode_t modes[] = {0720, 0702, 0777, 0700};
    for (size_t i = 0; i < BHT_COUNT(modes); i++) {
        BHT_EQ(chmod(folder, modes[i]), 0);
        if (modes[i] == 0700 && (geteuid() != 0 || chown(folder, 1000, 1000) != 0)) {
            continue; /* another user's: only root can give one away */
        }
        fx_forget_log();
        run(NULL);
        BHT_TRUE(fx_logged("must belong to user"));
        BHT_TRUE(!fx_logged(WRITTEN));
        BHT_EQ(list(), 0);
    }
    BHT_EQ(chown(folder, geteuid(), getegid()), 0);
    BHT_EQ(chmod(folder, 0700), 0);
    run(NULL);
    BHT_TRUE(fx_logged(WRITTEN));
}

/* It leads to a folder of ours, which is the planter's choice. */
TEST(a_folder_behind_a_planted_link) {
    if (geteuid() != 0) {
        return; /* nobody else can make another user's link */
    }
    char shared[] = "/tmp/bulkhead-shared-XXXXXX", way[64];
    BHT_TRUE(mkdtemp(shared));
    BHT_EQ(chmod(shared, 01777), 0);
    snprintf(way, sizeof way, "%s/way", shared);
    BHT_EQ(symlink(folder, way), 0);
    BHT_EQ(lchown(way, 1000, 1000), 0);
    run_at(way, NULL);
    BHT_TRUE(fx_logged("way is a link of another user"));
    BHT_TRUE(!fx_logged(WRITTEN));
    char missing[80];
    BHT_EQ(list(), 0);
    snprintf(missing, sizeof missing, "%s/new", way); /* a folder that is to be made behind it */
    fx_forget_log();
    run_at(missing, NULL);
    BHT_TRUE(fx_logged("way/new is a link of another user"));
    BHT_EQ(access(inside("new"), F_OK), -1);
    BHT_EQ(lchown(way, 0, 0), 0); /* the shared folder's owner's */
    fx_forget_log();
    run_at(way, NULL);
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_EQ(unlink(way), 0);
    BHT_EQ(rmdir(shared), 0);
}

TEST(a_full_disk_is_a_line_in_the_log) {
    BHT_TRUE(bht_own_mounts());
    char options[64];
    snprintf(options, sizeof options, "size=%ld,mode=700", sysconf(_SC_PAGESIZE));
    BHT_EQ(mount("full", folder, "tmpfs", 0, options), 0);
    const uint8_t byte = 0;
    fx_write_file(inside(".all"), &byte, 1);
    run(NULL);
    BHT_TRUE(fx_logged("No space left on device"));
    BHT_TRUE(!fx_logged(WRITTEN));
    BHT_EQ(list(), 0); /* nor is a part of it left */
    snprintf(options, sizeof options, "size=%ld,mode=700", 16 * sysconf(_SC_PAGESIZE));
    BHT_EQ(mount("full", folder, "tmpfs", MS_REMOUNT, options), 0);
    run(NULL);
    BHT_TRUE(fx_logged(WRITTEN));
    BHT_EQ(list(), 1);
    BHT_EQ(umount(folder), 0);
}

/* A folder on a mount that does not answer costs a second, once, and hangs nothing. */
TEST(a_dead_mount_hangs_nothing) {
    dead_mount();
    dead_set(DEAD_IN_LOOKUP, false);
    char path[512];
    snprintf(path, sizeof path, "%s", dead_path("caches"));
    fx_forget_log();
    bh_context *context = open_at(path, NULL);
    fx_expect_healthy(context, stream_of(context, NULL));
    fx_expect_healthy(context, stream_of(context, "alice"));
    fx_release_all();
    BHT_TRUE(fx_logged("in time"));
    dead_end();
    WAIT_UNTIL(fx_nobody_left(), 20000);
}

int main(int argc, char **argv) {
    bht_around(make_folder, drop_folder);
    return bht_main(argc, argv, NULL, 0);
}
