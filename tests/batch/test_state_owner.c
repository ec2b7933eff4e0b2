/* State that is not ours alone is not gone by: the jobs in it would run with our rights. Who "we"
 * are is what geteuid says: these tests say it. */
#include "journal_fixture.h"

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
static bool somebody_else; /* than who made the files */
uid_t __wrap_geteuid(void) {
    return __real_geteuid() + (somebody_else ? 4242 : 0);
}

static void make_state(struct place *place) {
    make_place(place);
    struct bhi_queue *queue = fresh(place);
    add(queue, "a");
    bhi_queue_close(queue);
}

static void expect_refused(const struct place *place, const char *words) {
    expect_no_open(place, true, BHI_QUEUE_ENVIRON, words);
    expect_no_open(place, false, BHI_QUEUE_ENVIRON, words);
}

static void expect_taken(const struct place *place) {
    struct bhi_queue *queue = again(place);
    take(queue, "a");
    bhi_queue_close(queue);
}

static void test_a_folder_of_somebody_else(void) {
    struct place place;
    make_state(&place);
    somebody_else = true;
    expect_refused(&place, "state belongs to user");
    somebody_else = false;
    BHT_EQ(chmod(place.folder, 0770), 0);
    expect_refused(&place, "state can be written by others (mode 0770)");
    BHT_EQ(chmod(place.folder, 0702), 0);
    expect_refused(&place, "state can be written by others (mode 0702)");
    BHT_EQ(chmod(place.folder, 01777), 0);
    expect_refused(&place, "state can be written by others (mode 1777)");
    BHT_EQ(chmod(place.folder, 0755), 0);
    expect_taken(&place);
    remove_place(&place);
}

/* An empty folder of somebody else is as bad: what they put into it later is believed. */
static void test_an_empty_folder_of_somebody_else(void) {
    struct place place;
    make_place(&place);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    somebody_else = true;
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "state belongs to user");
    somebody_else = false;
    struct stat status;
    char path[112];
    path_of(&place, "lock", path);
    BHT_EQ(stat(path, &status), -1);
    remove_place(&place);
}

/* Each file, though the folder is ours: it was open to others once. */
static void test_files_of_somebody_else(void) {
    static const char *const names[] = {"lock", "batch.db", "batch.db-wal", "batch.db-shm",
                                        "batch.db-journal"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct place place;
        char path[112], aside[128], words[64];
        make_state(&place);
        path_of(&place, names[i], path);
        sprintf(aside, "%s.aside", path);
        const bool had = access(path, F_OK) == 0;
        if (!had) {
            write_file(path, "", 0);
        }
        sprintf(words, "%s can be written by others (mode 0620)", names[i]);
        BHT_EQ(chmod(path, 0620), 0);
        expect_refused(&place, words);
        if (geteuid() == 0) {
            BHT_EQ(chmod(path, 0600), 0);
            BHT_EQ(chown(path, 1000, 1000), 0);
            sprintf(words, "%s belongs to user 1000", names[i]);
            expect_refused(&place, words);
        }
        BHT_EQ(rename(path, aside), 0);
        BHT_EQ(symlink(aside, path), 0);
        sprintf(words, "%s is a link", names[i]);
        expect_refused(&place, words);
        BHT_EQ(unlink(path), 0);
        if (had) {
            BHT_EQ(rename(aside, path), 0);
            BHT_EQ(chown(path, geteuid(), getegid()), 0);
            BHT_EQ(chmod(path, 0600), 0);
        }
        expect_taken(&place);
        remove_place(&place);
    }
}

/* A folder may be reached by links that are ours: SQLite, which takes none, is given its real path.
 */
static void test_a_folder_behind_our_own_link(void) {
    struct place place, linked;
    make_state(&place);
    linked = place;
    snprintf(linked.folder, sizeof linked.folder, "%s/link", place.root);
    BHT_EQ(symlink("state", linked.folder), 0);
    expect_taken(&linked);
    strcat(linked.folder, "/");
    expect_taken(&linked);
    remove_place(&place);
}

/* Not by one that somebody has put where everybody can. */
static void test_a_folder_behind_a_planted_link(void) {
    struct place place, linked;
    make_state(&place);
    linked = place;
    if (geteuid() == 0) {
        snprintf(linked.folder, sizeof linked.folder, "%s/shared", place.root);
        BHT_EQ(mkdir(linked.folder, 0700), 0);
        BHT_EQ(chmod(linked.folder, 01777), 0);
        strcat(linked.folder, "/link");
    } else {
        snprintf(linked.folder, sizeof linked.folder, "/tmp/bulkhead-%ld", (long)getpid());
    }
    BHT_EQ(symlink(place.folder, linked.folder), 0);
    if (geteuid() == 0) {
        BHT_EQ(lchown(linked.folder, 1000, 1000), 0);
    }
    somebody_else = geteuid() != 0;
    expect_refused(&linked, "is a link of user");
    somebody_else = false;
    BHT_EQ(unlink(linked.folder), 0);
    remove_place(&place);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_a_folder_of_somebody_else),
        BHT_TEST(test_an_empty_folder_of_somebody_else),
        BHT_TEST(test_files_of_somebody_else),
        BHT_TEST(test_a_folder_behind_our_own_link),
        BHT_TEST(test_a_folder_behind_a_planted_link),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
