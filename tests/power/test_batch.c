/* A batch loses power, or is killed, or its disk fails, and goes on. What it had said is true; nothing
 * is half there; nothing is computed twice. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char jobs[] =
    "{`id`:`a`,`kernel`:`k.spv`,`groups`:[1],`in`:{`0`:`x.npy`},`out`:{`1`:`made/deep/"
    "a.npy:u8[4]`}}\n"
    "{`id`:`b`,`kernel`:`k.spv`,`groups`:[1],`inout`:{`0`:`in/counter.npy`}}\n"
    "{`id`:`c`,`kernel`:`k.spv`,`groups`:[1],`depends_on`:[`a`],`in`:{`0`:`made/deep/a.npy`},"
    "`out`:{`1`:`c.npy:u8[4]`}}\n";

static const char batch[] = "batch jobs.jsonl --mkdir --resume --retry-failed --state in/own/state";

static void make_batch(void) {
    bht_put(bht_quoted(jobs), "%s/jobs.jsonl", root);
    bht_put("\x03\x02\x23\x07", "%s/k.spv", root);
    bht_put("", "%s/in/own/nothing", root);
    put_array("x.npy", 1);
    put_array("in/counter.npy", 7);
    put_array("c.npy", 0); /* of an earlier batch */
}

/* An output that is not as it was before is whole. */
static void expect_whole(void) {
    const int a = value_of("made/deep/a.npy"), b = value_of("in/counter.npy"),
              c = value_of("c.npy");
    if ((a != -1 && a != 2) || (b != 7 && b != 8) || (c != 0 && c != 3)) {
        BHT_FAIL("a %d, b %d, c %d", a, b, c);
    }
}

/* Each job has run once. */
static void expect_outputs(void) {
    BHT_EQ(value_of("made/deep/a.npy"), 2);
    BHT_EQ(value_of("in/counter.npy"), 8);
    BHT_EQ(value_of("c.npy"), 3);
}

/* The state is known to be that of a batch, whatever becomes of its database. */
static void expect_marked(void) {
    char path[128], text[5] = "";
    snprintf(path, sizeof path, "%s/in/own/state/lock", root);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_EQ(read(fd, text, 5), 5);
    BHT_MEM_EQ(text, "used ", 5);
    close(fd);
}

static void go_on(const char *said) {
    expect_whole();
    if (*said) {
        expect_outputs();
        expect_marked();
    }
    const char *printed = expect(batch);
    if (*said) {
        BHT_STR_HAS(printed, "0 attempts now");
    }
    expect_outputs();
}

TEST(loses_power) {
    make_batch();
    power_begin(root);
    expect(batch);
    power_end();
    expect_outputs();
    power_lose_everywhere(go_on);
}

/* A process that goes on where one was killed makes durable, too, what that one had not. */
TEST(loses_power_after_a_kill) {
    for (long at = 1;; at++) {
        power_empty(root);
        make_batch();
        bht_put("", "%s/made/deep/nothing", root); /* else a killed process may have made it */
        power_begin(root);
        power->mode = POWER_KILL;
        power->only_syncs = true;
        power->at = at;
        const int status = command(batch);
        power->mode = POWER_GOOD;
        if (status == 0) {
            BHT_GT(at, 10);
            return;
        }
        BHT_EQ(status, 256 + SIGKILL);
        expect(batch);
        power_end();
        power_lose_after(power_steps(), go_on);
    }
}

/* What could not be made durable is not said to be. */
TEST(a_sync_fails) {
    bool hit = true;
    for (long at = 1; hit; at++) {
        power_empty(root);
        make_batch();
        power_begin(root);
        power->mode = POWER_ONCE;
        power->only_syncs = true;
        power->error = EIO;
        power->at = at;
        (void)command(batch);
        hit = power->hit;
        power_end();
        /* What was to be recorded next counts on it; and so does what was said in the end. */
        const long steps[] = {power_before_sync(at + 2), power_steps()};
        for (size_t i = 0; i < BHT_COUNT(steps); i++) {
            for (enum power_outcome outcome = 0; outcome <= POWER_DATA; outcome++) {
                if (power_lose(steps[i], outcome)) {
                    go_on(power_said(steps[i]));
                }
            }
        }
    }
}

/* It is a matter of the jobs with outputs in it. */
TEST(a_folder_is_not_synced) {
    char text[1024] = "", file[32];
    make_batch();
    bht_put("", "%s/good/nothing", root);
    bht_put("", "%s/bad/nothing", root);
    for (int i = 0; i < 10; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "{`id`:%d,`kernel`:`k.spv`,`groups`:[1],`in`:{`0`:`x.npy`},"
                 "`out`:{`1`:`%s/%d.npy:u8[4]`}}\n",
                 i, i % 2 ? "bad" : "good", i);
        strcat(text, line);
    }
    bht_put(bht_quoted(text), "%s/jobs.jsonl", root);
    power_begin(root);
    *power = (struct power){
        .mode = POWER_FROM, .error = EPERM, .name = "bad", .only_syncs = true, .at = 1};
    BHT_EQ(command(batch), 1);
    BHT_STR_HAS(printed_text(), "10 jobs: 5 done, 5 failed");
    BHT_STR_HAS(printed_text(),
                "its folder cannot be written to disk (fsync): Operation not permitted");
    power_end();
    for (int i = 0; i < 10; i++) {
        snprintf(file, sizeof file, "%s/%d.npy", i % 2 ? "bad" : "good", i);
        BHT_EQ(value_of(file), i % 2 ? -1 : 2);
    }
}

/* The lock of a batch that goes on is made anew. */
TEST(a_lost_lock_is_marked_again) {
    char path[128];
    make_batch();
    expect(batch);
    snprintf(path, sizeof path, "%s/in/own/state/lock", root);
    BHT_EQ(unlink(path), 0);
    power_begin(root);
    expect(batch);
    power_end();
    power_lose_everywhere(go_on);
}

/* -- run ---------------------------------------------------------------------------------------- */

static void expect_run(const char *said) {
    const int value = value_of("y.npy");
    if (value != 2 && (*said || value != 9)) {
        BHT_FAIL("y is %d", value);
    }
}

static const char run[] = "run k.spv --groups 1 --in 0=x.npy --out 1=y.npy:u8[4]";

static void begin_run(void) {
    power_empty(root);
    make_batch();
    put_array("y.npy", 9);
    setenv("SCRIPT_BINDINGS", "0.0:r:x,0.1:w:y", 1);
    power_begin(root);
}

TEST(an_output_of_run_is_replaced) {
    begin_run();
    expect(run);
    power_end();
    power_lose_everywhere(expect_run);
}

TEST(a_step_of_run_fails) {
    bool hit = true;
    for (long at = 1; hit; at++) {
        begin_run();
        *power = (struct power){.mode = POWER_ONCE, .error = ENOSPC, .at = at};
        (void)command(run);
        hit = power->hit;
        power_end();
        power_lose_after(power_steps(), expect_run);
    }
}
