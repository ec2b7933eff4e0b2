/* Exit statuses of every command: part of the interface, listed by bulkhead help. */
#ifndef BHI_TOOL_EXIT_STATUS_H
#define BHI_TOOL_EXIT_STATUS_H

enum bhi_exit_status {
    BHI_EXIT_READY = 0,       /* every event is READY; every required check holds. 0, so that
                               * step() ?: step() ends with the first that is not READY */
    BHI_EXIT_POISONED = 1,    /* a kernel ran, or began to run, and its event is poisoned */
    BHI_EXIT_USAGE = 2,       /* wrong usage or bad input: nothing ran, nothing was written */
    BHI_EXIT_ENVIRON = 3,     /* this machine cannot do it now */
    BHI_EXIT_SIGNALLED = 128, /* plus the number of the signal that cancelled it: 130 for SIGINT */
};

#endif
