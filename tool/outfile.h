/* An output file that appears whole or not at all.
 *
 *   open     checks, before any kernel runs, that the file can be written: a new file can be
 *            created in its folder, and the disk has room. Nothing is visible yet (O_TMPFILE, if
 *            the file system has it).
 *   write    writes the content.
 *   seal     makes the content durable under a temporary name in the same folder.
 *   commit   renames it over the target. Only this step is visible to others.
 *   abandon  undoes everything before commit; does nothing after it.
 *
 * A caller that must find the temporary file after a crash names it (bhi_outfile_open_named) and
 * opens it again with bhi_outfile_adopt.
 *
 * With several outputs the caller seals all of them before it commits the first. Standard output
 * ("-") and an existing target that is not a regular file (/dev/null, a FIFO) are written by
 * commit: what a stream has got cannot be undone.
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

/* Identifies a sealed file among others that may have its name later. Renaming the file and
 * restarting the machine keep the mark. A device number would not survive a restart, nor would an
 * inode number on some file systems. Size and time are compared when a file is adopted, the content
 * only by bhi_outfile_compare. */
struct bhi_outfile_mark {
    uint64_t size;
    uint64_t modified_ns; /* mtime, modulo 2^64 */
    bool hashed;          /* |hash| is the content's hash */
    uint8_t hash[BHI_CONTENT_HASH];
};

enum bhi_outfile_content { BHI_OUTFILE_EQUAL, BHI_OUTFILE_OTHER, BHI_OUTFILE_UNREAD };

struct bhi_outfile {
    enum bhi_outfile_kind kind;
    int fd;         /* -1: closed */
    bool is_stdout; /* not owned */
    int folder;     /* descriptor of the target's folder */
    char *name;     /* the target's name in |folder|; owned */
    int error;      /* errno of the last refusal; 0: none, or no system error */
    char temporary[BHI_OUTFILE_TEMPORARY]; /* its current name in |folder|; empty: none */
    char planned[BHI_OUTFILE_TEMPORARY];   /* the caller's name for it; empty: random */
    dev_t folder_device;                   /* identifies the file, with folder_inode and name */
    ino_t folder_inode;
    const void *header, *data; /* what commit writes to a stream; borrowed */
    size_t header_size;
    uint64_t data_size;
    struct bhi_content_hash *hash; /* owned; hashes what is written, with a planned name only */
    struct bhi_outfile_mark mark;  /* set by seal, with a planned name only */
};

#define BHI_OUTFILE_CLOSED {.fd = -1, .folder = -1}

/* Returns true if |path| is standard output: "-", /dev/stdout, or the file to which standard output
 * is redirected. Such a file must not be replaced: its reader would not get the new one. /dev/null
 * does not count. */
bool bhi_outfile_is_stdout(const char *path);
/* Makes |name| in the open folder |folder| a file of |mode| with |text|, whole and durably. It may
 * replace one. */
bool bhi_outfile_put(int folder, const char *name, const void *text, size_t size, mode_t mode,
                     struct bhi_complaint *complaint);
/* |size| is the number of bytes that will be written. */
bool bhi_outfile_open(const char *path, uint64_t size, struct bhi_outfile *out_file,
                      struct bhi_complaint *complaint);
/* As bhi_outfile_open, with a temporary name that the caller chooses. An existing file of that name
 * is replaced. Refuses standard output and everything that is not a regular file. */
bool bhi_outfile_open_named(const char *path, const char *temporary, uint64_t size,
                            struct bhi_outfile *out_file, struct bhi_complaint *complaint);
/* Opens what an earlier process may have sealed under |temporary|. The caller then renames it, or
 * removes it with abandon. */
bool bhi_outfile_adopt(const char *path, const char *temporary, struct bhi_outfile *out_file,
                       struct bhi_complaint *complaint);
/* Returns true if the temporary, or with |placed| the target, is the file with |mark|. Otherwise
 * |error| is 0 if it is another file and ENOENT if there is none. */
bool bhi_outfile_has(struct bhi_outfile *file, bool placed, const struct bhi_outfile_mark *mark);
/* Reads the target and compares its content with |mark|, which must have a hash. After UNREAD
 * |error| says why it could not be read. */
enum bhi_outfile_content bhi_outfile_compare(struct bhi_outfile *file,
                                             const struct bhi_outfile_mark *mark);
/* Returns true if both would replace the same file. */
bool bhi_outfile_same(const struct bhi_outfile *a, const struct bhi_outfile *b);
/* |header| and |data| must not change until commit. */
bool bhi_outfile_write(struct bhi_outfile *file, const void *header, size_t header_size,
                       const void *data, uint64_t data_size, struct bhi_complaint *complaint);
/* Writes a piece of the content, the header first. Only for regular files (|kind|). */
bool bhi_outfile_append(struct bhi_outfile *file, const void *bytes, uint64_t size,
                        struct bhi_complaint *complaint);
bool bhi_outfile_seal(struct bhi_outfile *file, struct bhi_complaint *complaint);
/* Closes the descriptor. Call it after seal. */
void bhi_outfile_close(struct bhi_outfile *file);
/* The two steps of commit, for many files in one folder. If rename is refused, |error| is ENOENT
 * when the temporary does not exist. */
bool bhi_outfile_rename(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool bhi_outfile_sync_folder(struct bhi_outfile *file, struct bhi_complaint *complaint);
bool bhi_outfile_commit(struct bhi_outfile *file, struct bhi_complaint *complaint);
void bhi_outfile_abandon(struct bhi_outfile *file);

#endif
