/* Folders of a context that are not ours alone: whoever owns one, or can write it, could replace
 * what is made in it. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void) {
    strcpy(folder, "/tmp/bh-owners-XXXXXX");
    BHT_TRUE(mkdtemp(folder));
}

static void remove_folder(void) {
    BHT_EQ(rmdir(folder), 0);
}

static bh_context *create_in(const char *path) {
    bh_context_options options = fx_options();
    options.runtime_dir = path;
    return fx_context_with(options, NULL);
}

static bh_detail refused_in(const char *path, bh_status status) {
    bh_context_options options = fx_options();
    options.runtime_dir = path;
    bh_context *context = NULL;
    bh_detail detail = {0};
    BHT_EQ(bh_context_create(&options, &context, &detail), status);
    return detail;
}

/* What is refused; a user who is not root cannot give a folder away. */
static size_t spoil(int which) {
    static const mode_t modes[] = {0770, 0702, 0777};
    if (which < 3) {
        BHT_EQ(chmod(folder, modes[which]), 0);
        return 1;
    }
    /* 65534 is nobody's here, and not root's without a name. */
    const uid_t user = which == 5 ? 65534 : 1000;
    BHT_EQ(chmod(folder, which == 3 ? 0700 : 01777), 0);
    return geteuid() == 0 && chown(folder, user, user) == 0;
}

TEST(a_runtime_folder_that_is_not_ours) {
    for (int which = 0; which < 6; which++) {
        if (!spoil(which)) {
            continue;
        }
        const bh_detail detail = refused_in(folder, BH_SYSTEM);
        BHT_EQ(detail.sys_errno, EPERM);
        BHT_STR_HAS(detail.message, folder);
        BHT_STR_HAS(detail.message, "belongs to user");
        BHT_STR_HAS(detail.message, "options.runtime_dir");
    }
    BHT_EQ(chown(folder, geteuid(), getegid()), 0);
    static const mode_t good[] = {0700, 01777};
    for (size_t i = 0; i < BHT_COUNT(good); i++) {
        BHT_EQ(chmod(folder, good[i]), 0);
        bh_context_destroy(create_in(folder));
    }
}

/* Nothing is made in |xdg|, which is removed. */
static void expect_xdg_runtime_dir_ignored(const char *xdg) {
    BHT_EQ(setenv("XDG_RUNTIME_DIR", xdg, 1), 0);
    bh_context *context = fx_context(NULL);
    fx_ready(fx_stream(context, "s", FX_SECONDS));
    BHT_EQ(rmdir(xdg), 0);
    fx_release_all();
}

/* Whoever may rename in a runtime folder: what has the name of a context's own folder by the time
 * that the context ends is somebody else's. */
TEST(a_folder_that_took_the_name_stays) {
    fx_ready(fx_stream(create_in(folder), "s", FX_SECONDS));
    char name[NAME_MAX + 1] = "", path[NAME_MAX + 70], moved[NAME_MAX + 70];
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s", entry->d_name);
        }
    }
    closedir(entries);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    BHT_EQ(rename(path, moved), 0);
    BHT_EQ(mkdir(path, 0700), 0);
    fx_release_all();
    BHT_EQ(rmdir(path), 0);
    BHT_EQ(rmdir(moved), 0);
}

/* A path that no message to the warden or socket can carry: refused where it was chosen, ignored
 * where it is the default. */
TEST(a_runtime_folder_that_no_message_carries) {
    char odd[96];
    snprintf(odd, sizeof odd, "%s/\xff", folder);
    BHT_EQ(mkdir(odd, 0700), 0);
    bh_detail detail = refused_in(odd, BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_TEXT);
    BHT_STR_EQ(detail.subject_name, "options.runtime_dir");
    expect_xdg_runtime_dir_ignored(odd);
    memset(odd + strlen(folder) + 1, 'x', 57 - strlen(folder) - 1);
    odd[57] = '\0';
    BHT_EQ(mkdir(odd, 0700), 0);
    detail = refused_in(odd, BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_TOO_LONG);
    expect_xdg_runtime_dir_ignored(odd);
    odd[56] = '\0';
    BHT_EQ(mkdir(odd, 0700), 0);
    bh_context_destroy(create_in(odd));
    BHT_EQ(rmdir(odd), 0);
}

/* |folder| is sticky and everybody's; in it "way" is a link of |user| to |real|. */
static void plant(const char *real, uid_t user, char out_way[96]) {
    snprintf(out_way, 96, "%s/way", folder);
    BHT_EQ(symlink(real, out_way), 0);
    BHT_EQ(lchown(out_way, user, user), 0);
}

/* Not the last name of the path, which is a folder of ours: a link further up. */
TEST(a_planted_link_on_the_way) {
    if (geteuid() != 0) {
        return; /* nobody else can make another user's link */
    }
    char real[64] = "/tmp/bh-real-XXXXXX", way[96], inside[112], inner[96];
    BHT_TRUE(mkdtemp(real));
    snprintf(inner, sizeof inner, "%s/own", real);
    BHT_EQ(mkdir(inner, 0700), 0);
    BHT_EQ(chmod(folder, 01777), 0);
    for (uid_t user = 0; user <= 1000; user += 1000) {
        plant(real, user, way);
        snprintf(inside, sizeof inside, "%s/own", way);
        if (user == 0) { /* the folder's owner's */
            bh_context_destroy(create_in(inside));
        } else {
            const bh_detail detail = refused_in(inside, BH_SYSTEM);
            BHT_STR_HAS(detail.message, "a link on the way to it");
        }
        BHT_EQ(unlink(way), 0);
    }
    BHT_EQ(rmdir(inner), 0);
    BHT_EQ(rmdir(real), 0);
}

/* After su it is another user's: then it is as good as not set. */
TEST(another_users_xdg_runtime_dir) {
    for (int which = 0; which < 6; which++) {
        if (!spoil(which)) {
            continue;
        }
        expect_xdg_runtime_dir_ignored(folder);
        BHT_EQ(mkdir(folder, 0700), 0);
    }
}

int main(int argc, char **argv) {
    bht_around(make_folder, remove_folder);
    return bht_main(argc, argv, NULL, 0);
}
