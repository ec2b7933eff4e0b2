/* Why the kernel refuses a sandbox, and the one setting that allows it. */
#ifndef BHI_IPC_REFUSAL_H
#define BHI_IPC_REFUSAL_H

enum bhi_refused {
    BHI_REFUSED_NAMESPACES, /* clone() with CLONE_NEW… */
    BHI_REFUSED_IDS,        /* the user and group of a user namespace */
    BHI_REFUSED_MOUNTS,     /* mount() and the like in a namespace of one's own */
    BHI_REFUSED_CALL,       /* a system call that Linux 5.16 has */
};

struct bhi_refusal {
    char cause[160];   /* "user.max_user_namespaces is 0" */
    char setting[200]; /* "sysctl user.max_user_namespaces=10000" */
};

/* Finds the cause of |error|, an errno, from the machine's settings. |root| is put before each
 * path; it is "" except in tests. Always fills in |out|; if the cause is unknown, |out| says so.
 * Reads some small files of /proc and /sys. Thread: any. */
void bhi_refusal_find(enum bhi_refused refused, int error, const char *root,
                      struct bhi_refusal *out);

/* "podman", "docker", "kubernetes" or "a container"; NULL outside a container. */
const char *bhi_refusal_container(const char *root);

enum bhi_apparmor {
    BHI_APPARMOR_FREE,    /* it does not restrict user namespaces */
    BHI_APPARMOR_LOADED,  /* it does, and the program has a profile */
    BHI_APPARMOR_MISSING, /* it has none */
    BHI_APPARMOR_UNKNOWN, /* only root may see which profiles are loaded */
};
#define BHI_APPARMOR_NAME 200

/* Whether AppArmor lets |program|, a path, make user namespaces. |process| runs it; 0: none does.
 * Writes the name of its profile, or the name that it would have (containers/apparmor-profile).
 * |root| as above. */
enum bhi_apparmor bhi_refusal_apparmor(const char *root, int process, const char *program,
                                       char name[BHI_APPARMOR_NAME]);

#endif
