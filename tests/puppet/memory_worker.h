/* Workers as far as memory goes: each is given buffers, makes and imports device memory, and
 * fills and copies, on files that stand for memory. It dies where it is told to. What memory each
 * living worker can reach, and has ever reached, is checked as it is given it (B3, D3, D4). Each test
 * begins with one for each of four streams. */
#ifndef BHT_MEMORY_WORKER_H
#define BHT_MEMORY_WORKER_H

#include "puppet.h"

#define MEMORY_BYTES 64u /* of a buffer, as a rule */
#define MEMORY_HOLDS 128
#define MEMORY_MADE  1024

/* The streams: A; one more of its tenant and device; another tenant's; one on another device. */
enum { A, A2, B, C, MEMORY_STREAMS };
extern const struct memory_owner {
    const char *name, *tenant;
    uint32_t tenant_number, device; /* the first byte of its UUID */
} memory_owners[MEMORY_STREAMS];

/* Where it dies in mid-record. */
enum memory_end {
    MEMORY_LIVES,
    MEMORY_DIES_UNTOLD,   /* it has handled no message */
    MEMORY_DIES_TELLING,  /* it has handled half of its messages */
    MEMORY_DIES_CLEARING, /* half of what it was to clear is zero; else it has handled all */
    MEMORY_DIES_DENYING,  /* it has said that there is no memory; else it has handled all */
    MEMORY_DIES_MADE,     /* it has handled its messages, and not begun */
    MEMORY_DIES_STARTED,  /* it has said that it begins, and touched nothing */
    MEMORY_DIES_HALF,     /* half of what it writes is written */
    MEMORY_DIES_UNSAID,   /* all is written, and not recorded */
    MEMORY_DIES_RECORDED, /* it is recorded, and nobody has looked */
    MEMORY_LOSES_DEVICE,  /* it reports that its device is lost, after half was written */
    MEMORY_ENDS
};

struct memory_hold {
    uint64_t buffer; /* id */
    ino_t memory;
    int fd; /* owned */
    bool writes;
};

/* A buffer that it had no device memory for. Records that were published before the supervisor took
 * that in fail, too; a later one comes with another request. */
struct memory_lack {
    uint64_t buffer;
    uint64_t last; /* record; UINT64_MAX: it is not taken in yet */
};

struct memory_worker {
    struct bhi_worker *worker; /* referenced; NULL: there is none */
    bh_stream *stream;
    const struct memory_owner *owner;
    int socket; /* its end of fdpass */
    struct bhi_progress *progress;
    uint64_t done, tail;
    uint32_t handled;
    bool dead;              /* and not buried */
    uint32_t device_full;   /* as often it has no device memory for a buffer that it is to make */
    bool cannot_clear;      /* the next buffer that it is to clear */
    bh_status fails_as;     /* its next record, which takes from it what it needs; 0: it does not */
    uint64_t cannot_import; /* this buffer: its next record that uses it fails; 0: none */
    uint32_t copies;        /* that it has begun */
    uint32_t fails_at;      /* this one fails when half of it is done, and it lives on; 0: none */
    struct memory_want {    /* there was nothing: a request must come before it runs anything */
        uint64_t buffer, bytes;
    } wants[MEMORY_HOLDS];
    uint32_t want_count;
    uint32_t patience_ms; /* of the last such request */
    struct memory_hold holds[MEMORY_HOLDS];
    uint32_t hold_count;
    struct memory_lack lacks[MEMORY_HOLDS];
    uint32_t lack_count;
    int writing; /* the device memory that it was writing when it died; owned; 0: none */
    off_t writes_at;
    uint64_t writes_bytes;
    ino_t had[MEMORY_MADE]; /* device memory that it can still write, whatever it was told since */
    uint32_t had_count;
};

enum { MEMORY_DEPARTED = 4 };

extern struct memory {
    bh_stream *streams[MEMORY_STREAMS];
    struct memory_worker
        workers[MEMORY_STREAMS + MEMORY_DEPARTED]; /* the last: their streams have others */
    /* All device memory since the test began, and whose it is for ever. */
    struct {
        ino_t memory;
        const struct memory_owner *owner;
    } made[MEMORY_MADE];
    uint32_t made_count;
} memory;

/* What became of a record. */
struct memory_done {
    uint64_t event; /* 0: there was none to run */
    bool made;      /* device memory was made for it, */
    bool skipped;   /* or it was withdrawn; */
    bool ended;     /* its end is recorded: */
    bool good;      /* as a success */
    bool begun;     /* it was said to begin */
};

/* The stream has another one from now on. */
void memory_worker_begin(int stream);
/* Is there a record that it has not taken? */
bool memory_worker_has_work(const struct memory_worker *w);
/* It runs its next record, or dies in it. */
struct memory_done memory_worker_run(struct memory_worker *w, enum memory_end end);
/* All of them run all that they have, and what follows from it. */
void memory_run_all(void);
/* It handles all messages that it has been sent. */
void memory_worker_listen(struct memory_worker *w);
/* It dies between two records. */
void memory_worker_die(struct memory_worker *w);
/* The supervisor takes in what it has recorded. */
void memory_worker_harvest(struct memory_worker *w);
/* It is dead, and what its device runs is bounded by rule C1: the supervisor judges what it had, and its
 * stream goes on. Returns false if it has to wait for the burial. */
bool memory_worker_depart(struct memory_worker *w);
/* What the departed were writing is written now, as noise. */
void memory_departed_write(void);
/* The supervisor confirms its death. */
void memory_worker_bury(struct memory_worker *w);

/* A buffer in the device memory of one of the streams. */
bh_buffer *memory_create(int stream, uint64_t size);

#endif
