# Compiler flags of every target: an interface library, so that installed targets carry none.
add_library(bulkhead_flags INTERFACE)
target_compile_definitions(bulkhead_flags INTERFACE _GNU_SOURCE)
target_compile_options(bulkhead_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wformat=2 -fno-common>
    -fstack-protector-strong -fvisibility=hidden)
if(BULKHEAD_WERROR)
    target_compile_options(bulkhead_flags INTERFACE -Werror)
endif()
if(BULKHEAD_SANITIZE)
    target_compile_options(bulkhead_flags INTERFACE
        -fsanitize=${BULKHEAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(bulkhead_flags INTERFACE -fsanitize=${BULKHEAD_SANITIZE})
    # Sees -fsanitize in the source: some layers (RLIMIT_DATA, filters) have to allow for it.
    target_compile_definitions(bulkhead_flags INTERFACE BHI_SANITIZED=1)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_definitions(bulkhead_flags INTERFACE _FORTIFY_SOURCE=2)
endif()
