# Compiler flags of every target: an interface library, so that installed targets carry none.
add_library(bulkhead_flags INTERFACE)
target_compile_definitions(bulkhead_flags INTERFACE _GNU_SOURCE)
# Headers are included by their path from here: "supervisor/buffer/pool.h".
target_include_directories(bulkhead_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(bulkhead_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wformat=2 -fno-common>
    -fstack-protector-strong -fvisibility=hidden)
if(BULKHEAD_WERROR)
    target_compile_options(bulkhead_flags INTERFACE -Werror)
endif()
# For programs that are linked to run once. (With clang's runtime gold warns of a symbol.)
set(BULKHEAD_QUICK_LINK "")
find_program(BULKHEAD_QUICK_LINKER ld.gold)
if(BULKHEAD_QUICK_LINKER AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(BULKHEAD_QUICK_LINK -fuse-ld=gold)
endif()
if(BULKHEAD_SANITIZE)
    add_link_options(${BULKHEAD_QUICK_LINK})
    # A target with the property BHI_PLAIN is left alone: under TSan the worker, which has no room
    # for its runtime behind the filters, and which forks before it has threads.
    set(instrumented "$<NOT:$<BOOL:$<TARGET_PROPERTY:BHI_PLAIN>>>")
    target_compile_options(bulkhead_flags INTERFACE
        $<${instrumented}:-fsanitize=${BULKHEAD_SANITIZE}>
        $<${instrumented}:-fno-omit-frame-pointer>
        $<${instrumented}:-fno-sanitize-recover=all>)
    target_link_options(bulkhead_flags INTERFACE
        $<${instrumented}:-fsanitize=${BULKHEAD_SANITIZE}>)
    # Sees -fsanitize in the source: some layers (RLIMIT_DATA, filters) have to allow for it.
    target_compile_definitions(bulkhead_flags INTERFACE $<${instrumented}:BHI_SANITIZED=1>)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_definitions(bulkhead_flags INTERFACE _FORTIFY_SOURCE=2)
endif()
