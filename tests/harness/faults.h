/* Faults that a test has told its workers to have (tests/hostile/faults.h): each must have happened
 * when the test ends, and be one that the build knows. A test whose fault has been renamed, or is
 * not come to any more, fails: it shows nothing. */
#ifndef BHT_FAULTS_H
#define BHT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* |list| for $BULKHEAD_TEST_FAULTS, with the item that has the processes note what happens, into
 * |out|. An item that begins with ? may happen or not. In a test, or in what it has forked: also
 * what a host has noted that is killed is checked. */
void bht_faults_note(const char *list, char *out, size_t size);

/* Whether all that were noted so far have happened. */
bool bht_faults_happened(void);

/* The harness's. In the process that forks a test, before that: nothing is noted; afterwards,
 * however it has ended: no file is left. In between, in the test, when it has come to its end: all
 * that was noted has happened, or it fails. */
void bht_faults_begin(void);
void bht_faults_check(void);
void bht_faults_end(void);

#endif
