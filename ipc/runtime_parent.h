/* Where a context's folder of sockets is made when nobody says where. */
#ifndef BHI_RUNTIME_PARENT_H
#define BHI_RUNTIME_PARENT_H

#include <stdlib.h>
#include <unistd.h>

static inline const char *bhi_runtime_parent(void) {
    /* Set and not usable is common after su: then it is as good as not set. */
    const char *parent = secure_getenv("XDG_RUNTIME_DIR");
    return parent && parent[0] == '/' && access(parent, W_OK | X_OK) == 0 ? parent : "/tmp";
}

#endif
