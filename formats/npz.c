#include "formats/npz.h"

#include <string.h>

bool bhi_npz_take_name(struct bhi_zip_member *member) {
    static const char ending[] = ".npy";
    const size_t length = strlen(member->name), of_ending = strlen(ending);
    if (length < of_ending || strcmp(member->name + length - of_ending, ending) != 0) {
        return false;
    }
    member->name[length - of_ending] = 0;
    return true;
}

struct search {
    const char *name;
    struct bhi_zip_member *found;
    unsigned count;
};

static bool compare(void *user, const struct bhi_zip_member *member,
                    struct bhi_complaint *complaint) {
    struct search *search = user;
    struct bhi_zip_member one = *member;
    if (!bhi_npz_take_name(&one) || strcmp(one.name, search->name) != 0) {
        return true;
    }
    *search->found = one;
    return !search->count++ || bhi_refuse(complaint, "it is there twice");
}

bool bhi_npz_find(const struct bhi_readable *file, const char *name, struct bhi_zip_member *out,
                  struct bhi_complaint *complaint) {
    struct search search = {.name = name, .found = out};
    if (!bhi_zip_walk(file, compare, &search, complaint)) {
        return false;
    }
    if (!search.count) {
        return bhi_refuse(complaint, "no such array in the file");
    }
    return !out->packed ||
           bhi_refuse(complaint,
                      "it is compressed, which is not read: numpy.savez writes it uncompressed");
}
