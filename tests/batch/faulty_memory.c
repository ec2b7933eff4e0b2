#include "faulty_memory.h"
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long seen, wanted;
static sqlite3_mem_methods inner; /* SQLite's own */

static bool fails(void) {
    const long number = atomic_fetch_add(&seen, 1) + 1;
    if (number != atomic_load(&wanted)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

BHT_WRAP(void *, malloc, size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

BHT_WRAP(void *, calloc, size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

BHT_WRAP(void *, realloc, void *old, size_t size) {
    return fails() ? NULL : __real_realloc(old, size);
}

BHT_WRAP(char *, strdup, const char *text) {
    return fails() ? NULL : __real_strdup(text);
}

BHT_WRAP(char *, getcwd, char *buffer, size_t size) {
    return fails() ? NULL : __real_getcwd(buffer, size);
}

BHT_WRAP(int, vasprintf, char **out, const char *format, va_list list) {
    return fails() ? -1 : __real_vasprintf(out, format, list);
}

int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
BHT_WRAP(int, asprintf, char **out, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = __wrap_vasprintf(out, format, list);
    va_end(list);
    return length;
}

BHT_WRAP(DIR *, fdopendir, int fd) {
    return fails() ? NULL : __real_fdopendir(fd);
}

static void *sqlite_malloc(int size) {
    return fails() ? NULL : inner.xMalloc(size);
}

static void *sqlite_realloc(void *old, int size) {
    return fails() ? NULL : inner.xRealloc(old, size);
}

void faulty_memory_set_up(void) {
    sqlite3_mem_methods outer;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &inner) != SQLITE_OK) {
        abort();
    }
    outer = inner;
    outer.xMalloc = sqlite_malloc;
    outer.xRealloc = sqlite_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &outer) != SQLITE_OK) {
        abort();
    }
}

void faulty_memory_fail(long at) {
    atomic_store(&seen, 0);
    atomic_store(&wanted, at);
}

long faulty_memory_seen(void) {
    return atomic_load(&seen);
}

bool faulty_memory_run(long at, void (*run)(long at)) {
    size_t before = 0, used = 1;
    bool reached = false;
    for (int tries = 0; used != before; tries++) { /* an allocator keeps some at first */
        BHT_LT(tries, 40);
        before = mallinfo2().uordblks;
        faulty_memory_fail(at);
        run(at);
        reached = faulty_memory_seen() >= at;
        faulty_memory_fail(0);
        used = mallinfo2().uordblks;
    }
    return reached;
}
