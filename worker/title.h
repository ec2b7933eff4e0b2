/* What ps and top call this process. Its short name (comm, 15 bytes) begins with "bh"; its command
 * line is that of bulkhead-warden or bulkhead-worker, followed by what it is:
 *   bh-warden, bh-opener, bh-zygote, bh-prober, bh-tracer, bh-loader, bh-compiler
 *   bh-spare    a worker that serves no stream yet
 *   bh:NAME     the worker of the stream of that name
 *   bh-holder   beside a worker, and with the worker's command line
 *   bh-devholder   beside a worker on a GPU
 * A process sets its own title, so a compromised one can set any. */
#ifndef BHI_WORKER_TITLE_H
#define BHI_WORKER_TITLE_H

/* The command line may use the room of main's arguments after the first. These arguments are lost
 * with the first call of bhi_title_set(). Children inherit the room. */
void bhi_title_init(int argc, char **argv);
/* Cleans |name| and |line|, and cuts them if there is too little room. */
void bhi_title_set(const char *name, const char *line);

#endif
