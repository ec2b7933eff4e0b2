/* Commands in a folder that is watched (tests/harness/power.h), each in a process of its own, on a
 * library that answers at once: what a kernel writes is what it reads, plus 1. */
#ifndef TESTS_POWER_COMMANDS_H
#define TESTS_POWER_COMMANDS_H

#include "power.h"

#include <stdio.h>

#include "harness.h"

extern char root[64]; /* the folder; there is a new one for each test */

/* Runs a command there. Returns its exit status; 256 and the signal's number if that has ended it. One
 * that ends with 0 has said |line|. */
int command(const char *line);
/* What it has printed. */
const char *printed_text(void);
/* It must end with 0. Returns what it has printed. */
const char *expect(const char *line);

/* A file with four bytes of |value|. */
void put_array(const char *name, int value);
/* The value of its bytes; -1: there is none; -2: it is not whole. */
int value_of(const char *name);

#endif
