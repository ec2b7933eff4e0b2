#include "worker/sandbox/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The driver's files have about 500 bytes. A file that fills this room is not one of them. */
#define FILE_MOST 4096
/* Higher minor numbers belong to the driver itself: nvidia-modeset, nvidiactl. */
#define MINOR_MOST 247u

static void list(struct bhi_nodes *nodes, const char *pattern) {
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc && nodes->count < BHI_NODES_MOST; i++) {
        if (strlen(found.gl_pathv[i]) < BHI_NODE_PATH) {
            snprintf(nodes->paths[nodes->count++], BHI_NODE_PATH, "%s", found.gl_pathv[i]);
        }
    }
    globfree(&found);
}

void bhi_nodes_list(struct bhi_nodes *nodes, const struct bhi_driver *driver) {
    memset(nodes, 0, sizeof *nodes);
    for (const struct bhi_driver_path *p = driver->info->paths; p->pattern; p++) {
        if (p->kind == BHI_PATH_NODE) {
            list(nodes, p->pattern);
        }
    }
}

/* -- the driver's files ----------------------------------------------------------------------- */

static int read_all(const char *path, char text[FILE_MOST]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    struct stat st;
    int r = fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EBADMSG;
    size_t used = 0;
    while (r == 0 && used < FILE_MOST) {
        ssize_t n = read(fd, text + used, FILE_MOST - used);
        if (n <= 0) {
            r = n < 0 ? -errno : 0;
            break;
        }
        used += (size_t)n;
    }
    close(fd);
    if (r != 0 || used == FILE_MOST) {
        return r != 0 ? r : -EBADMSG;
    }
    text[used] = '\0';
    return strlen(text) == used ? 0 : -EBADMSG;
}

/* Copies the value of the line that begins with |key|, without the blanks around it, to |out|.
 * Exactly one line must begin so. */
static int find_value(const char *text, const char *key, char *out, size_t size) {
    const size_t length = strlen(key);
    bool found = false;
    for (const char *line = text; *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        if (strncmp(line, key, length) == 0) {
            const char *first = line + length + strspn(line + length, " \t");
            size_t used = first < end ? (size_t)(end - first) : 0;
            while (used > 0 && (first[used - 1] == ' ' || first[used - 1] == '\t')) {
                used--;
            }
            if (found || used == 0 || used >= size) {
                return -EBADMSG;
            }
            memcpy(out, first, used);
            out[used] = '\0';
            found = true;
        }
        line = *end == '\0' ? end : end + 1;
    }
    return found ? 0 : -EBADMSG;
}

static int parse_minor(const char *text, unsigned *out) {
    if (strlen(text) > 3 || strspn(text, "0123456789") != strlen(text)) {
        return -EBADMSG;
    }
    const unsigned value = (unsigned)strtoul(text, NULL, 10);
    if (value > MINOR_MOST) {
        return -EBADMSG;
    }
    *out = value;
    return 0;
}

int bhi_nodes_minor(const char *folder, const struct bhi_pci *pci, unsigned *out_minor) {
    char address[32];
    char path[256];
    char text[FILE_MOST];
    char value[32];
    if (!pci->known || pci->bus > 0xff || pci->device > 0x1f || pci->function > 7) {
        return -EBADMSG;
    }
    snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->device,
             pci->function);
    if (snprintf(path, sizeof path, "%s/%s/information", folder, address) >= (int)sizeof path) {
        return -ENAMETOOLONG;
    }
    int r;
    if ((r = read_all(path, text)) != 0 ||
        (r = find_value(text, "Bus Location:", value, sizeof value)) != 0) {
        return r;
    }
    if (strcmp(value, address) != 0) {
        return -EBADMSG;
    }
    if ((r = find_value(text, "Device Minor:", value, sizeof value)) != 0) {
        return r;
    }
    return parse_minor(value, out_minor);
}

/* -- which is whose --------------------------------------------------------------------------- */

void bhi_nodes_forget(struct bhi_nodes *nodes, unsigned index, const char *why) {
    nodes->of[index].path[0] = '\0';
    if (nodes->why[0] == '\0') {
        snprintf(nodes->why, sizeof nodes->why, "device %u: %s", index, why);
    }
}

/* A node's minor number stands at the end of its name. */
static const char *node_of(const struct bhi_nodes *nodes, unsigned minor_number) {
    char number[8];
    snprintf(number, sizeof number, "%u", minor_number);
    for (unsigned i = 0; i < nodes->count; i++) {
        const char *path = nodes->paths[i];
        const char *digits = path + strlen(path);
        while (digits > path && digits[-1] >= '0' && digits[-1] <= '9') {
            digits--;
        }
        struct stat st;
        if (strcmp(digits, number) == 0 && stat(path, &st) == 0 &&
            (!S_ISCHR(st.st_mode) || minor(st.st_rdev) == minor_number)) {
            return path;
        }
    }
    return NULL;
}

static void match(struct bhi_nodes *nodes, unsigned index, const char *folder) {
    unsigned number = 0;
    char why[96];
    if (!nodes->of[index].pci.known) {
        bhi_nodes_forget(nodes, index, "the driver does not report the PCI address of the device");
        return;
    }
    int r = bhi_nodes_minor(folder, &nodes->of[index].pci, &number);
    if (r != 0) {
        snprintf(why, sizeof why, "its minor number is not known (%s)", strerrorname_np(-r));
        bhi_nodes_forget(nodes, index, why);
        return;
    }
    const char *path = node_of(nodes, number);
    if (!path) {
        snprintf(why, sizeof why, "no node has its minor number, %u", number);
        bhi_nodes_forget(nodes, index, why);
        return;
    }
    snprintf(nodes->of[index].path, BHI_NODE_PATH, "%s", path);
}

void bhi_nodes_match(struct bhi_nodes *nodes, const char *folder) {
    for (unsigned i = 0; i < nodes->devices; i++) {
        match(nodes, i, folder);
    }
    /* Two devices with the same node: this is no layout that we know. */
    for (unsigned i = 0; i < nodes->devices; i++) {
        bool twice = false;
        for (unsigned j = i + 1; j < nodes->devices && nodes->of[i].path[0] != '\0'; j++) {
            if (strcmp(nodes->of[i].path, nodes->of[j].path) == 0) {
                bhi_nodes_forget(nodes, j, "another device has the same node");
                twice = true;
            }
        }
        if (twice) {
            bhi_nodes_forget(nodes, i, "another device has the same node");
        }
    }
}

static bool is_known(const struct bhi_nodes *nodes, unsigned index) {
    return nodes && index < nodes->devices && nodes->of[index].path[0] != '\0';
}

const char *bhi_nodes_path(const struct bhi_nodes *nodes, unsigned index) {
    return is_known(nodes, index) ? nodes->of[index].path : NULL;
}

const struct bhi_pci *bhi_nodes_pci(const struct bhi_nodes *nodes, unsigned index) {
    return is_known(nodes, index) ? &nodes->of[index].pci : NULL;
}
