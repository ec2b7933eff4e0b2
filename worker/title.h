/* What ps and top call this process. Its short name (comm, 15 bytes) begins with "bh"; its command
 * line is that of bulkhead-worker, followed by what it is:
 *   bh-warden, bh-opener, bh-zygote, bh-prober, bh-tracer, bh-loader, bh-compiler
 *   bh-spare    a worker that serves no stream yet
 *   bh:NAME     the worker of the stream of that name
 *   bh-holder   beside a worker, whose command line it shares
 * A process says this of itself: one that was taken over can say anything. */
#ifndef BHI_WORKER_TITLE_H
#define BHI_WORKER_TITLE_H

/* The room for the command line is that of main's arguments behind the first, which are lost with
 * the first call of bhi_title_set(). Children inherit it. */
void bhi_title_init(int argc, char **argv);
/* |name| and |line| are cut where there is no more room, and cleaned. */
void bhi_title_set(const char *name, const char *line);

#endif
