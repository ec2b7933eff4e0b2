#include "faults.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACE 0xA5

static void scribble(void *pointer, size_t bytes) {
    volatile unsigned char *at = pointer;
    for (size_t i = 0; i < bytes; i++) {
        at[i] = TRACE;
    }
}

static void map_and_scribble(int fd, size_t bytes) {
    void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pointer != MAP_FAILED) {
        scribble(pointer, bytes);
        munmap(pointer, bytes);
    }
}

static void reopen(int fd, size_t bytes) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again >= 0) {
        map_and_scribble(again, bytes);
        close(again);
    }
}

void bhi_tamper(enum bhi_tamper how, const struct bhi_tamper_target *target) {
    const int fd = target->fd;
    const size_t bytes = target->bytes;
    char trace[64];
    memset(trace, TRACE, sizeof trace);
    ssize_t ignored = 0;
    switch (how) {
    case BHI_TAMPER_SCRIBBLE:
        scribble(target->pointer, bytes);
        break;
    case BHI_TAMPER_MAP_WRITE:
        map_and_scribble(fd, bytes);
        break;
    case BHI_TAMPER_PROTECT:
        if (mprotect(target->pointer, bytes, PROT_READ | PROT_WRITE) == 0) {
            scribble(target->pointer, bytes);
        }
        break;
    case BHI_TAMPER_REMAP: {
        /* An old size of 0 maps the same pages a second time. */
        void *moved = mremap(target->pointer, 0, bytes, MREMAP_MAYMOVE);
        if (moved != MAP_FAILED && mprotect(moved, bytes, PROT_READ | PROT_WRITE) == 0) {
            scribble(moved, bytes);
        }
        break;
    }
    case BHI_TAMPER_REOPEN:
        reopen(fd, bytes);
        break;
    case BHI_TAMPER_WRITE:
        ignored = write(fd, trace, sizeof trace);
        break;
    case BHI_TAMPER_PWRITE:
        ignored = pwrite(fd, trace, sizeof trace, 0);
        break;
    case BHI_TAMPER_CUT:
        ignored = ftruncate(fd, 0);
        break;
    case BHI_TAMPER_PUNCH:
        ignored = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
        break;
    case BHI_TAMPER_REMOVE:
        ignored = madvise(target->pointer, bytes, MADV_REMOVE);
        break;
    case BHI_TAMPER_SEAL:
        ignored = fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
        break;
    case BHI_TAMPER_CHMOD:
        ignored = fchmod(fd, 0666);
        reopen(fd, bytes);
        break;
    case BHI_TAMPER_COUNT:
        break;
    }
    (void)ignored;
}
