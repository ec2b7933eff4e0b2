/* WRAP(int, name, …) { … } defines what is called in place of |name|; __real_name is what was to be
 * called. bulkhead_wraps() of tests/CMakeLists.txt
 * finds these lines, and tells the linker. Calls inside the file that defines
 * |name| are not replaced. */
#ifndef BHT_WRAP_H
#define BHT_WRAP_H

#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

#endif
