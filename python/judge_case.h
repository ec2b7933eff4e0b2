/* A judge's case, as the Python side takes it. */
#ifndef BHI_PYTHON_JUDGE_CASE_H
#define BHI_PYTHON_JUDGE_CASE_H

#include "python/native.h"

#include <bulkhead/judge.h>

/* (arrays, sizes, pushes, text), where an array is (name, bh_dtype, shape, bytes or None: an output, is
 * it an output, to a check what it holds after the run, and what is expected), and a number (name,
 * text). NULL: an exception is set. */
PyObject *bhi_py_case_tell(const bh_judge_case *one);
/* Takes a list of bytes, one for each array that is to be computed. Returns false with an exception
 * set. */
bool bhi_py_case_take(const bh_judge_case *one, PyObject *outputs);

#endif
