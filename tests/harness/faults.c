#include "faults.h"
#include "harness.h"
#include "tests/hostile/notes.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTS 64

/* Shared with all that a test forks: a list that a host had, which has been killed, is looked at
 * like any other. */
struct faults {
    _Atomic size_t count;
    struct noted {
        char path[48], list[512];
        _Atomic bool whole; /* both are written: false where a kill came between */
    } noted[LISTS];
};

static struct faults *faults;

void bht_faults_begin(void) {
    if (!faults) {
        faults =
            mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        BHT_NE(faults, MAP_FAILED);
    }
    memset(faults, 0, sizeof *faults);
}

void bht_faults_note(const char *list, char *out, size_t size) {
    BHT_TRUE(faults);
    const size_t at = atomic_fetch_add(&faults->count, 1);
    BHT_LT(at, LISTS);
    struct noted *noted = &faults->noted[at];
    snprintf(noted->path, sizeof noted->path, "/tmp/bulkhead-test-notes-XXXXXX");
    const int fd = mkstemp(noted->path);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, sizeof(struct bhi_fault_notes)), 0);
    BHT_EQ(fchmod(fd, 0666), 0); /* the zygote opens it as whoever it is in its namespace */
    close(fd);
    BHT_LT(snprintf(noted->list, sizeof noted->list, "%s", list), sizeof noted->list);
    BHT_LT(snprintf(out, size, "%s,notes=%s", list, noted->path), size);
    atomic_store(&noted->whole, true);
}

static size_t count(void) {
    const size_t given = !faults ? 0 : atomic_load(&faults->count);
    return given < LISTS ? given : LISTS;
}

void bht_faults_end(void) {
    for (size_t i = 0; i < count(); i++) {
        unlink(faults->noted[i].path);
    }
}

/* The next item of |list| that has not happened and has to, or NULL. The list is taken apart, as
 * tests/hostile/faults.c does it. */
static const char *missing(char *list, const struct bhi_fault_notes *notes) {
    size_t rule = 0;
    char *state = NULL;
    for (const char *item = strtok_r(list, ",", &state); item; item = strtok_r(NULL, ",", &state)) {
        if (strncmp(item, "plan=", 5) == 0) {
            continue;
        }
        BHT_LT(rule, BHI_FAULT_RULES);
        if (atomic_load(&notes->fired[rule++]) == 0 && item[0] != '?') {
            return item;
        }
    }
    return NULL;
}

/* False: there is none. */
static bool read_notes(size_t i, struct bhi_fault_notes *out) {
    if (!atomic_load(&faults->noted[i].whole)) {
        return false;
    }
    const int fd = open(faults->noted[i].path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(read(fd, out, sizeof *out), sizeof *out);
    close(fd);
    return true;
}

bool bht_faults_happened(void) {
    for (size_t i = 0; i < count(); i++) {
        struct bhi_fault_notes notes;
        char list[sizeof faults->noted->list];
        memcpy(list, faults->noted[i].list, sizeof list);
        if (!read_notes(i, &notes) || missing(list, &notes)) {
            return false;
        }
    }
    return count() > 0;
}

void bht_faults_check(void) {
    for (size_t i = 0; i < count(); i++) {
        struct bhi_fault_notes notes;
        if (!read_notes(i, &notes)) {
            continue;
        }
        if (notes.refused[0] != '\0') {
            BHT_FAIL("this build knows no fault %.*s", (int)sizeof notes.refused, notes.refused);
        }
        const char *item = missing(faults->noted[i].list, &notes);
        if (item) {
            BHT_FAIL("the fault %s has never happened", item);
        }
    }
}
