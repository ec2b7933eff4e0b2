/* leave_free COUNT PROGRAM ARGUMENT...: runs the program where exactly COUNT of 250 descriptors are
 * free. What it finds open stays open. SOFT in the environment: the hard limit stays as it is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUMBERS = 250 };

int main(int argc, char **argv) {
    struct rlimit limit = {NUMBERS, NUMBERS}, before;
    int left = argc > 2 ? atoi(argv[1]) : -1, fd;
    if (left < 0 || getrlimit(RLIMIT_NOFILE, &before) != 0) {
        return 98;
    }
    if (getenv("SOFT")) {
        limit.rlim_max = before.rlim_max;
    }
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 98;
    }
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) {
    }
    for (fd = NUMBERS - 1; fd > 2 && left > 0; fd--, left--) {
        close(fd);
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 98;
}
