# bulkhead_kernels(outputs FOLDER folder SOURCES sources… [PREFIX p] [SUFFIX s] [OPTIONS …] [DEPENDS …])
# GLSL to SPIR-V: each source becomes folder/<p><name><s>, named in the variable |outputs|. The
# sources are absolute. All of a call are compiled in one run of glslc, whenever one of them changes.
find_program(GLSLC glslc REQUIRED)
set(BULKHEAD_COMPILE_KERNELS ${CMAKE_CURRENT_LIST_DIR}/compile_kernels)
function(bulkhead_kernels outputs_variable)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;PREFIX;SUFFIX" "SOURCES;OPTIONS;DEPENDS")
    if(NOT arg_SUFFIX)
        set(arg_SUFFIX .spv)
    endif()
    file(MAKE_DIRECTORY ${arg_FOLDER})
    set(outputs "")
    foreach(source IN LISTS arg_SOURCES)
        get_filename_component(name ${source} NAME_WE)
        list(APPEND outputs ${arg_FOLDER}/${arg_PREFIX}${name}${arg_SUFFIX})
    endforeach()
    list(LENGTH outputs count)
    string(REPLACE "${CMAKE_BINARY_DIR}/" "" place ${arg_FOLDER})
    add_custom_command(OUTPUT ${outputs}
        COMMAND ${BULKHEAD_COMPILE_KERNELS} ${GLSLC} ${arg_FOLDER} "${arg_PREFIX}" ${arg_SUFFIX}
            ${arg_OPTIONS} -- ${arg_SOURCES}
        DEPENDS ${arg_SOURCES} ${arg_DEPENDS} ${BULKHEAD_COMPILE_KERNELS}
        COMMENT "Compiling ${count} kernels: ${place}/${arg_PREFIX}*${arg_SUFFIX}"
        VERBATIM)
    set(${outputs_variable} ${outputs} PARENT_SCOPE)
endfunction()
