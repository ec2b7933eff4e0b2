/* Why a command failed: its last complaint, and what the compiler said. --json prints it when there
 * is no verdict. Complaints come from many places, so text.c records them when it prints them. */
#ifndef BHI_TOOL_ENDING_H
#define BHI_TOOL_ENDING_H

#include <bulkhead/detail.h>
#include <stdbool.h>
#include <stdint.h>

struct bhi_ending {
    bh_status status; /* BH_OK: none; the exit status tells the kind of error */
    bh_reason reason;
    bh_subject subject;
    char subject_name[64];
    char message[1024];
    /* If a source was compiled: */
    char *log;      /* owned: what the compiler said; NULL: nothing */
    char file[512]; /* of the log's first error with a line, else of its first error; empty: none */
    uint32_t line;  /* 0: no error has a line */
    bool answered;  /* the command has printed an object of its own, and none is missing */
};

/* Records complaints in |ending| from now on; the caller frees it with bhi_ending_fini. NULL stops
 * the recording. Only for commands that complain on one thread. */
void bhi_ending_watch(struct bhi_ending *ending);
void bhi_ending_fini(struct bhi_ending *ending);

/* Records that the command has printed its object. */
void bhi_ending_answered(void);
/* Records a complaint. It replaces the one before. |detail|: what the library says; may be NULL. */
void bhi_ending_note(bh_status status, const bh_detail *detail, const char *message);
/* Sets the status of the last complaint. */
void bhi_ending_blame(bh_status status);
/* The status of a command that ended with |exit_status| and without a verdict. */
bh_status bhi_ending_code(const struct bhi_ending *ending, int exit_status);
/* Records the compiler's messages, and the place of the first error that has a line. */
void bhi_ending_log(const char *log);

#endif
