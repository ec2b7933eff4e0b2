/* An output file that appears whole or not at all.
 *
 * open     proves, before any kernel runs, that it can be written: the folder takes a new file,
 *          the disk has the room. Nothing is visible yet (O_TMPFILE where there is one).
 * write    puts the content there.
 * seal     makes it durable under a temporary name in the same folder.
 * commit   renames it over the target. The only step that anybody sees.
 * abandon  undoes everything before commit; harmless after it.
 *
 * Who has to find a temporary again after a crash gives it a name (bhi_outfile_open_named), and
 * takes it up with bhi_outfile_adopt.
 *
 * With several outputs the caller seals all before it commits the first. "-" is standard output;
 * that, and a target that exists and is not a regular file (/dev/null, a FIFO), is written
 * directly at commit's time: a stream cannot be taken back.
 */
#ifndef BHI_TOOL_OUTFILE_H
#define BHI_TOOL_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/content_hash.h"
#include "tool/text.h"

enum { BHI_OUTFILE_TEMPORARY = 128 };
enum bhi_outfile_kind { BHI_OUTFILE_REPLACE, BHI_OUTFILE_STREAM };

/* What tells a file that was sealed from all others that may have its names. A rename keeps it, and
 * so does a restart of the machine; not so a device's number, nor, on some file systems, the
 * inode's. Size and time are looked at where a file is taken up again, the content where somebody
 * asks whether it is still what was written. */
struct bhi_outfile_mark {
    uint64_t size;
    uint64_t modified_ns; /* mtime, modulo 2^64 */
    bool hashed;          /* |hash| is of the content */
    uint8_t hash[BHI_CONTENT_HASH];
};

enum bhi_outfile_content { BHI_OUTFILE_EQUAL, BHI_OUTFILE_OTHER, BHI_OUTFILE_UNREAD };

struct bhi_outfile {
    enum bhi_outfile_kind kind;
    int fd;         /* -1: closed */
    bool is_stdout; /* not owned */
    int folder;     /* descriptor of the target's folder */
    char *name;     /* of the target in it; owned */
    int error;      /* errno of the last refusal; 0: none, or nothing to do with the system */
    char temporary[BHI_OUTFILE_TEMPORARY]; /* name of it in the folder; empty: it has none (yet) */
    char planned[BHI_OUTFILE_TEMPORARY];   /* the name that it is going to get; empty: any */
    dev_t folder_device;                   /* with folder_inode and name: which file it is */
    ino_t folder_inode;
    const void *header, *data; /* what commit writes to a stream; borrowed */
    size_t header_size;
    uint64_t data_size;
    struct bhi_content_hash *hash; /* owned; of what has been written under a planned name */
    struct bhi_outfile_mark mark;  /* once what has a planned name is sealed */
};

#define BHI_OUTFILE_CLOSED {.fd = -1, .folder = -1}

/* Whether |path| is standard output, under whatever name: "-", /dev/stdout, the file that it leads
 * to. A file that replaced that would not be what a reader gets. /dev/null is nobody's. */
bool bhi_outfile_is_stdout(const char *path);
/* |size| bytes are going to be written. */
bool bhi_outfile_open(const char *path, uint64_t size, struct bhi_outfile *out_file,
                      struct bhi_complaint *complaint);
/* The same, with a |temporary| name of the caller's choice: what is there under that name is
 * replaced. Refuses what is no regular file, standard output, too. */
bool bhi_outfile_open_named(const char *path, const char *temporary, uint64_t size,
                            struct bhi_outfile *out_file, struct bhi_complaint *complaint);
/* Takes up what an earlier process may have sealed under |temporary|: for rename, or abandon, which
 * removes it. */
bool bhi_outfile_adopt(const char *path, const char *temporary, struct bhi_outfile *out_file,
                       struct bhi_complaint *complaint);
/* Whether the temporary, or what is in its place (|placed|), is the file with |mark|. False:
 * |error| is 0 where it is another one, ENOENT where there is none. */
bool bhi_outfile_has(struct bhi_outfile *file, bool placed, const struct bhi_outfile_mark *mark);
/* Whether what is in its place has the content that |mark|, which is hashed, tells: reads all of it.
 * UNREAD: |error| says why. */
enum bhi_outfile_content bhi_outfile_compare(struct bhi_outfile *file,
                                             const struct bhi_outfile_mark *mark);
/* Whether both would replace the same file. */
bool bhi_outfile_same(const struct bhi_outfile *a, const struct bhi_outfile *b);
/* |header| and |data| must stay as they are until commit. */
bool bhi_outfile_write(struct bhi_outfile *file, const void *header, size_t header_size,
                       const void *data, uint64_t data_size, struct bhi_complaint *complaint);
/* The same piece by piece, of what is no stream (kind): the header first. */
bool bhi_outfile_append(struct bhi_outfile *file, const void *bytes, uint64_t size,
                        struct bhi_complaint *complaint);
bool bhi_outfile_seal(struct bhi_outfile *file, struct bhi_complaint *complaint);
/* After seal nothing is written any more: gives the descriptor back. */
void bhi_outfile_close(struct bhi_outfile *file);
/* commit in two steps, for many files in one folder. After a refused rename |error| is ENOENT where
 * the temporary is not there (any more). */
bool bhi_outfile_rename(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool bhi_outfile_sync_folder(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint);
void bhi_outfile_abandon(struct bhi_outfile *file);

#endif
