# fake_cuda_kernels(TARGET FILE…): compiles each NAME.c, which includes tests/fake_cuda/kernel.h, to
# kernels/NAME.cubin in this folder of the build, and to NAME.cubin.h, which has its bytes as
# fake_cubin_NAME. A program that links to TARGET finds the headers, and the former's folder as
# TARGET_FOLDER. The optimiser is always the same: what a kernel is does not depend on the build.
function(fake_cuda_kernels target)
    set(made "")
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/kernels)
    foreach(source IN LISTS ARGN)
        get_filename_component(source ${source} ABSOLUTE)
        get_filename_component(name ${source} NAME_WE)
        set(cubin ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.cubin)
        set(header ${CMAKE_CURRENT_BINARY_DIR}/${name}.cubin.h)
        add_custom_command(OUTPUT ${cubin}
            COMMAND ${CMAKE_C_COMPILER} -std=gnu17 -O1 -Wall -Wextra -Werror -I${PROJECT_SOURCE_DIR} -fPIC
                -ffreestanding -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables
                -fvisibility=default -nostdlib -shared -Wl,-Bsymbolic -Wl,-s -Wl,--hash-style=sysv
                -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-z,separate-code
                -o ${cubin} ${source}
            DEPENDS ${source} ${PROJECT_SOURCE_DIR}/tests/fake_cuda/kernel.h
                ${PROJECT_SOURCE_DIR}/tests/fake_cuda/abi.h
            VERBATIM)
        add_custom_command(OUTPUT ${header}
            COMMAND ${CMAKE_COMMAND} -DIN=${cubin} -DOUT=${header}
                -P ${PROJECT_SOURCE_DIR}/tests/fake_cuda/embed.cmake
            DEPENDS ${cubin} ${PROJECT_SOURCE_DIR}/tests/fake_cuda/embed.cmake VERBATIM)
        list(APPEND made ${cubin} ${header})
    endforeach()
    add_custom_target(${target}_made DEPENDS ${made})
    add_library(${target} INTERFACE)
    add_dependencies(${target} ${target}_made)
    target_include_directories(${target} INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
    string(TOUPPER ${target} macro)
    target_compile_definitions(${target} INTERFACE
        ${macro}_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/kernels")
endfunction()
