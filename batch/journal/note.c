#include "batch/journal/note.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

bool bhi_journal_batch_make(struct bhi_journal_batch *out_batch, struct bhi_complaint *complaint) {
    unsigned char random[8];
    *out_batch = (struct bhi_journal_batch){.cwd = getcwd(NULL, 0)};
    if (!out_batch->cwd) {
        return bhi_refuse(complaint, "the current folder is not known: %s", strerror(errno));
    }
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(out_batch->id, sizeof out_batch->id, random, sizeof random);
    return true;
}
