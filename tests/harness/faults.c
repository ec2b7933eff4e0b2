#include "faults.h"
#include "harness.h"
#include "worker/faults/notes.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTS 64

static struct {
    pid_t pid; /* the test's */
    size_t count;
    struct {
        char path[48], list[512];
    } noted[LISTS];
} faults;

void bht_faults_begin(void) {
    faults.pid = getpid();
}

void bht_faults_note(const char *list, char *out, size_t size) {
    if (faults.pid != getpid()) {
        snprintf(out, size, "%s", list);
        return;
    }
    BHT_LT(faults.count, LISTS);
    char *path = faults.noted[faults.count].path;
    snprintf(path, sizeof faults.noted->path, "/tmp/bulkhead-test-notes-XXXXXX");
    const int fd = mkstemp(path);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, sizeof(struct bhi_fault_notes)), 0);
    BHT_EQ(fchmod(fd, 0666), 0); /* the zygote opens it as whoever it is in its namespace */
    close(fd);
    BHT_LT(snprintf(faults.noted[faults.count].list, sizeof faults.noted->list, "%s", list),
           sizeof faults.noted->list);
    BHT_LT(snprintf(out, size, "%s,notes=%s", list, path), size);
    faults.count++;
}

void bht_faults_forget(void) {
    if (faults.pid != getpid()) {
        return;
    }
    for (size_t i = 0; i < faults.count; i++) {
        unlink(faults.noted[i].path);
    }
    faults.count = 0;
}

/* The next item of |list| that has not happened and has to, or NULL. The list is taken apart, as
 * worker/faults/faults.c does it. */
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

static struct bhi_fault_notes read_notes(size_t i) {
    struct bhi_fault_notes notes;
    const int fd = open(faults.noted[i].path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(read(fd, &notes, sizeof notes), sizeof notes);
    close(fd);
    return notes;
}

bool bht_faults_happened(void) {
    for (size_t i = 0; i < faults.count; i++) {
        const struct bhi_fault_notes notes = read_notes(i);
        char list[sizeof faults.noted->list];
        memcpy(list, faults.noted[i].list, sizeof list);
        if (missing(list, &notes)) {
            return false;
        }
    }
    return faults.count > 0;
}

void bht_faults_check(void) {
    for (size_t i = 0; i < faults.count; i++) {
        const struct bhi_fault_notes notes = read_notes(i);
        if (notes.refused[0] != '\0') {
            BHT_FAIL("this build knows no fault %.*s", (int)sizeof notes.refused, notes.refused);
        }
        const char *item = missing(faults.noted[i].list, &notes);
        if (item) {
            BHT_FAIL("the fault %s has never happened", item);
        }
    }
    bht_faults_forget();
}
