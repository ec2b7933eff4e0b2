/* Folders of bulkhead judge --dump: whole or not at all. Judge and disk are scripted. */
#include "cli/judge_dump.h"

#include "harness.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "tool/outfile.h"

/* Two of them no file can have. */
static const char *const names[] = {"X", "a/b", "a:b"};
static const float elements[] = {1, 2, 3};
static bool runs;          /* the candidate runs to its end, this time */
static int commits, fails; /* the |fails|th commit fails; 0: none */

bh_status __wrap_bh_judge_repeat(bh_judge *judge, const bh_judge_candidate *candidate,
                                 const bh_judgement *judgement, bh_judge_arrays **out_arrays,
                                 bh_detail *detail);
bh_status __wrap_bh_judge_repeat(bh_judge *judge, const bh_judge_candidate *candidate,
                                 const bh_judgement *judgement, bh_judge_arrays **out_arrays,
                                 bh_detail *detail) {
    (void)judge, (void)candidate;
    *out_arrays = NULL;
    if (judgement->verdict != BH_JUDGE_FAILED && !runs) {
        snprintf(detail->message, sizeof detail->message, "the worker was killed");
        return BH_WORKER_SIGNAL;
    }
    *out_arrays = (void *)(judgement->verdict == BH_JUDGE_FAILED ? &names[0] : &names[1]);
    return BH_OK;
}

size_t __wrap_bh_judge_arrays_count(const bh_judge_arrays *arrays, bh_judge_part part);
size_t __wrap_bh_judge_arrays_count(const bh_judge_arrays *arrays, bh_judge_part part) {
    if (part == BH_JUDGE_ACTUAL) {
        return (const void *)arrays == &names[1] ? 1 : 0;
    }
    return part == BH_JUDGE_INPUTS ? 3 : 1;
}

bh_status __wrap_bh_judge_arrays_get(const bh_judge_arrays *arrays, bh_judge_part part,
                                     size_t index, bh_judge_view *out_view, bh_detail *detail);
bh_status __wrap_bh_judge_arrays_get(const bh_judge_arrays *arrays, bh_judge_part part,
                                     size_t index, bh_judge_view *out_view, bh_detail *detail) {
    (void)arrays, (void)part, (void)detail;
    *out_view = (bh_judge_view){.struct_size = sizeof *out_view,
                                .name = names[index],
                                .dtype = BH_DTYPE_F32,
                                .rank = 1,
                                .shape = {3},
                                .data = elements,
                                .size = sizeof elements};
    return BH_OK;
}

void __wrap_bh_judge_arrays_destroy(bh_judge_arrays *arrays);
void __wrap_bh_judge_arrays_destroy(bh_judge_arrays *arrays) {
    (void)arrays;
}

bool __real_bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool __wrap_bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool __wrap_bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint) {
    return ++commits == fails ? bhi_refuse(complaint, "the disk is full")
                              : __real_bhi_outfile_commit(file, complaint);
}

static const bh_judgement wrong = {.struct_size = sizeof wrong, .verdict = BH_JUDGE_WRONG};
static struct bhi_complaint why;
static char *made;

static const char *root(void) {
    static const char *folder;
    return folder ? folder : (folder = bht_folder());
}

static bool dump(const char *name) {
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate};
    free(made);
    why = (struct bhi_complaint){.text = ""};
    commits = 0;
    return bhi_judge_dump(root(), NULL, &candidate, name, &wrong, &made, &why);
}

static bool is_there(const char *name) {
    char path[512];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", root(), name);
    return stat(path, &status) == 0;
}

/* Arrays whose names differ in what a file's name cannot have are not in each other's place. */
TEST(each_array_has_a_file) {
    runs = true;
    BHT_TRUE(dump("k.comp"));
    BHT_STR_HAS(made, "/k.comp");
    static const char *const files[] = {"k.comp/inputs/X.npy", "k.comp/inputs/a_b.npy",
                                        "k.comp/inputs/a_b-2.npy", "k.comp/expected/X.npy",
                                        "k.comp/actual/X.npy"};
    for (size_t i = 0; i < BHT_COUNT(files); i++) {
        if (!is_there(files[i])) {
            BHT_FAIL("%s is not there", files[i]);
        }
    }
    BHT_EQ(commits, 5);
}

TEST(no_name_leads_elsewhere) {
    static const char *const bad[] = {"..", ".", "", "../../x", "/etc/x", ".\n", "./.x", "-"};
    runs = true;
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        BHT_TRUE(dump(bad[i]));
        const char *name = made + strlen(root()) + 1;
        BHT_TRUE(!strncmp(made, root(), strlen(root())));
        BHT_TRUE(*name && *name != '.' && !strchr(name, '/') && !strchr(name, '\n'));
        BHT_TRUE(is_there(name));
    }
}

TEST(a_folder_is_whole_or_not_there) {
    runs = true;
    for (int i = 1; i <= 5; i++) {
        fails = i;
        BHT_TRUE(!dump("k.comp"));
        BHT_TRUE(!made);
        BHT_STR_EQ(why.text, "the disk is full");
        BHT_TRUE(!is_there("k.comp") && !is_there(".unfinished"));
    }
    fails = 0;
    BHT_TRUE(dump("k.comp"));
}

TEST(one_that_crashes_this_time_has_no_outputs) {
    runs = false;
    BHT_TRUE(!dump("k.comp"));
    BHT_STR_EQ(why.text, "k.comp: the worker was killed");
    BHT_TRUE(is_there("k.comp/inputs/X.npy") && is_there("k.comp/expected/X.npy"));
    BHT_TRUE(!is_there("k.comp/actual"));
}

TEST(a_folder_of_another_run_is_refused) {
    char path[512];
    snprintf(path, sizeof path, "%s/new", root());
    BHT_TRUE(bhi_judge_dump_begin(path, &why));
    BHT_TRUE(bhi_judge_dump_begin(path, &why)); /* it is empty */
    bht_put("", "%s/.hidden", path);
    BHT_TRUE(!bhi_judge_dump_begin(path, &why));
    BHT_STR_HAS(why.text, "is not empty: give another folder");
}

static void end(void) {
    free(made);
    made = NULL;
}

int main(int argc, char **argv) {
    bht_end_with(end);
    return bht_main(argc, argv, NULL, 0);
}
