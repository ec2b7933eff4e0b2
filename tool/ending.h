/* How a command ended, where it did not end well: its last complaint and what belongs to it. This
 * is what --json says of an end that has no verdict. Complaints come from everywhere, so they are
 * taken where they are printed (text.c): none can be forgotten. */
#ifndef BHI_TOOL_ENDING_H
#define BHI_TOOL_ENDING_H

#include <bulkhead/status.h>
#include <stdint.h>

struct bhi_ending {
    bh_status status; /* BH_OK: the complaint has none; the exit status tells the kind */
    char message[1024];
    /* Of a source that has been compiled. */
    char *log;      /* owned: what the compiler said; NULL: nothing */
    char file[512]; /* of the log's first error that names a line, else of the first; empty: none */
    uint32_t line;  /* 0: no error names one */
};

/* From now on complaints are kept in |ending|, which the caller frees with bhi_ending_fini; NULL:
 * they are not kept. For commands that complain on one thread. */
void bhi_ending_watch(struct bhi_ending *ending);
void bhi_ending_fini(struct bhi_ending *ending);

/* Takes a complaint in; the last one counts. */
void bhi_ending_note(bh_status status, const char *message);
/* The status of the complaint before. */
void bhi_ending_blame(bh_status status);
/* The code of a command that ended with |exit_status| and without a verdict. */
bh_status bhi_ending_code(const struct bhi_ending *ending, int exit_status);
/* What the compiler said, with the place of the first error that names a line. */
void bhi_ending_log(const char *log);

#endif
