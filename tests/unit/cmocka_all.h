/* cmocka wants these before it. */
#ifndef BULKHEAD_TEST_CMOCKA_ALL_H
#define BULKHEAD_TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
