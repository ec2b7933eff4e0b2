/* State that is not ours alone is not gone by: the jobs in it would run with our rights. Who "we"
 * are is what geteuid says: these tests say it. */
#include "few_jobs.h"

static bool somebody_else; /* than who made the files */
BHT_WRAP(uid_t, geteuid, void) {
    return __real_geteuid() + (somebody_else ? 4242 : 0);
}

static void expect_refused_state(const char *words) {
    expect_no_open(true, BHI_QUEUE_ENVIRON, words);
    expect_no_open(false, BHI_QUEUE_ENVIRON, words);
}

static void expect_taken(void) {
    again();
    take("a");
}

TEST(test_a_folder_of_somebody_else) {
    fresh("a");
    somebody_else = true;
    expect_refused_state("state belongs to user");
    somebody_else = false;
    static const mode_t modes[] = {0770, 0702, 01777};
    for (size_t i = 0; i < BHT_COUNT(modes); i++) {
        char words[64];
        sprintf(words, "state can be written by others (mode %04o)", modes[i]);
        BHT_EQ(chmod(place.folder, modes[i]), 0);
        expect_refused_state(words);
    }
    BHT_EQ(chmod(place.folder, 0755), 0);
    expect_taken();
}

/* An empty folder of somebody else is as bad: what they put into it later is believed. */
TEST(test_an_empty_folder_of_somebody_else) {
    BHT_EQ(mkdir(place.folder, 0700), 0);
    somebody_else = true;
    expect_no_open(false, BHI_QUEUE_ENVIRON, "state belongs to user");
    somebody_else = false;
    BHT_EQ(size_of("lock"), -1);
}

/* Each file, though the folder is ours: it was open to others once. */
TEST(test_files_of_somebody_else) {
    static const char *const names[] = {"lock", "batch.db", "batch.db-wal", "batch.db-shm",
                                        "batch.db-journal"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        char path[128], aside[136], words[64];
        renew_place();
        fresh("a");
        close_queue();
        path_of(names[i], path);
        sprintf(aside, "%s.aside", path);
        const bool had = access(path, F_OK) == 0;
        if (!had) {
            write_file(path, "", 0);
        }
        sprintf(words, "%s can be written by others (mode 0620)", names[i]);
        BHT_EQ(chmod(path, 0620), 0);
        expect_refused_state(words);
        if (geteuid() == 0) {
            BHT_EQ(chmod(path, 0600), 0);
            BHT_EQ(chown(path, 1000, 1000), 0);
            sprintf(words, "%s belongs to user 1000", names[i]);
            expect_refused_state(words);
        }
        BHT_EQ(rename(path, aside), 0);
        BHT_EQ(symlink(aside, path), 0);
        sprintf(words, "%s is a link", names[i]);
        expect_refused_state(words);
        BHT_EQ(unlink(path), 0);
        if (had) {
            BHT_EQ(rename(aside, path), 0);
            BHT_EQ(chown(path, geteuid(), getegid()), 0);
            BHT_EQ(chmod(path, 0600), 0);
        }
        expect_taken();
    }
}

/* A folder may be reached by links that are ours: SQLite, which takes none, is given its real path.
 */
TEST(test_a_folder_behind_our_own_link) {
    fresh("a");
    close_queue();
    snprintf(place.folder, sizeof place.folder, "%s/link", place.root);
    BHT_EQ(symlink("state", place.folder), 0);
    expect_taken();
    strcat(place.folder, "/");
    expect_taken();
}

/* Not by one that somebody has put where everybody can. */
TEST(test_a_folder_behind_a_planted_link) {
    fresh("a");
    close_queue();
    if (geteuid() == 0) {
        snprintf(place.folder, sizeof place.folder, "%s/shared", place.root);
        BHT_EQ(mkdir(place.folder, 0700), 0);
        BHT_EQ(chmod(place.folder, 01777), 0);
        strcat(place.folder, "/link");
    } else {
        snprintf(place.folder, sizeof place.folder, "/tmp/bulkhead-%ld", (long)getpid());
    }
    char state[96];
    snprintf(state, sizeof state, "%s/state", place.root);
    BHT_EQ(symlink(state, place.folder), 0);
    if (geteuid() == 0) {
        BHT_EQ(lchown(place.folder, 1000, 1000), 0);
    }
    somebody_else = geteuid() != 0;
    expect_refused_state("is a link of user");
    somebody_else = false;
    BHT_EQ(unlink(place.folder), 0);
}
