/* SQLite on a disk that fails: counts what changes files, and at the chosen one fails, or kills the
 * process. Becomes SQLite's default once it is set up. */
#ifndef BULKHEAD_TEST_FAULTY_VFS_H
#define BULKHEAD_TEST_FAULTY_VFS_H

#include <stdbool.h>

enum faulty_mode {
    FAULTY_OFF,
    FAULTY_ONCE, /* fails with |code| */
    FAULTY_FROM, /* and so do all after it */
    FAULTY_KILL, /* SIGKILL, before it is done */
};

struct faulty {
    enum faulty_mode mode;
    int code;   /* an SQLite code */
    long at;    /* from 1 */
    long seen;  /* operations until now */
    long syncs; /* of them */
    bool hit;
};
extern struct faulty faulty;

void faulty_set_up(void);

#endif
