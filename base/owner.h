/* Owners: a variable that is declared with one of these is freed at the end of its scope, unless it
 * is stolen. For descriptors and pidfds use BHI_AUTO_FD (fd.h). */
#ifndef BHI_BASE_OWNER_H
#define BHI_BASE_OWNER_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* |pointer| points to a pointer of any type. */
static inline void bhi_owner_free(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

static inline void bhi_owner_close_file(FILE **file) {
    if (*file) {
        fclose(*file);
    }
}

static inline void bhi_owner_close_dir(DIR **dir) {
    if (*dir) {
        closedir(*dir);
    }
}

struct bhi_mapping {
    void *at; /* MAP_FAILED: there is none */
    size_t size;
};

static inline void bhi_owner_unmap(struct bhi_mapping *mapping) {
    if (mapping->at != MAP_FAILED) {
        munmap(mapping->at, mapping->size);
    }
}

#define BHI_AUTO_FREE    __attribute__((cleanup(bhi_owner_free)))
#define BHI_AUTO_FILE    __attribute__((cleanup(bhi_owner_close_file))) FILE
#define BHI_AUTO_DIR     __attribute__((cleanup(bhi_owner_close_dir))) DIR
#define BHI_AUTO_MAPPING __attribute__((cleanup(bhi_owner_unmap))) struct bhi_mapping

/* Returns a pointer that is declared with BHI_AUTO_FREE and clears it: the caller frees it now. */
#define BHI_STEAL(pointer)                                                                         \
    __extension__({                                                                                \
        __typeof__(pointer) bhi_stolen = (pointer);                                                \
        (pointer) = NULL;                                                                          \
        bhi_stolen;                                                                                \
    })

static inline void *bhi_mapping_steal(struct bhi_mapping *mapping) {
    void *stolen = mapping->at;
    mapping->at = MAP_FAILED;
    return stolen;
}

#endif
