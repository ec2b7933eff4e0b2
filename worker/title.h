/* What ps and top call this process. Its short name (comm, 15 bytes) begins with "bh"; its command
 * line is that of its program, followed by what it is. The table in ARCHITECTURE.md has all names.
 * A process sets its own title, so a compromised one can set any. */
#ifndef BHI_WORKER_TITLE_H
#define BHI_WORKER_TITLE_H

/* The command line may use the room of main's arguments after the first. These arguments are lost
 * with the first call of bhi_title_set(). Children inherit the room. */
void bhi_title_init(int argc, char **argv);
/* Cleans |name| and |line|, and cuts them if there is too little room. */
void bhi_title_set(const char *name, const char *line);

#endif
