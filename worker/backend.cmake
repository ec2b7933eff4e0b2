# The Vulkan backend and the session: bhi_backend.
# Vulkan headers only: the driver's library, or in tests the loader, is found at run time.
find_library(SPIRV_TOOLS_LIBRARY NAMES libSPIRV-Tools.a REQUIRED)
find_library(SPIRV_TOOLS_OPT_LIBRARY NAMES libSPIRV-Tools-opt.a REQUIRED)
set(spirv_cross_libraries "")
foreach(part c hlsl msl cpp reflect glsl util core)
    find_library(SPIRV_CROSS_${part}_LIBRARY NAMES libspirv-cross-${part}.a REQUIRED)
    list(APPEND spirv_cross_libraries ${SPIRV_CROSS_${part}_LIBRARY})
endforeach()
# The archives: Debian's shared library of it can't be bound at start, which a worker has to do.
find_library(SHADERC_LIBRARY NAMES libshaderc_combined.a REQUIRED)
find_library(GLSLANG_LIBRARY NAMES libglslang.a REQUIRED)
set(shaderc_libraries ${SHADERC_LIBRARY} ${GLSLANG_LIBRARY})
foreach(part MachineIndependent GenericCodeGen OSDependent SPIRV OGLCompiler HLSL)
    find_library(GLSLANG_${part}_LIBRARY NAMES lib${part}.a) # newer versions have fewer of them
    if(GLSLANG_${part}_LIBRARY)
        list(APPEND shaderc_libraries ${GLSLANG_${part}_LIBRARY})
    endif()
endforeach()

include(${CMAKE_CURRENT_LIST_DIR}/../cmake/SpirvNames.cmake)

set(backend_defines VK_NO_PROTOTYPES)

# Modules: what is in them, and whether they are taken.
bulkhead_room(worker/spirv
    SOURCES
    array_indices.c
    catching.cpp
    debug_info.c
    limits.c
    limits_sizes.c
    module.c
    module_access.c
    module_shared.c
    names.c
    reflect.c
    validate.c
    MAY base worker
    DEFINE ${backend_defines}
    INCLUDE ${SPIRV_NAMES})
set(throwing "") # exceptions of C++ libraries pass through them (worker/spirv/catching.h)
foreach(source reflect validate)
    list(APPEND throwing ${CMAKE_CURRENT_LIST_DIR}/spirv/${source}.c)
endforeach()
set_source_files_properties(${throwing} PROPERTIES COMPILE_OPTIONS -fexceptions)
# Rewrites a module so that it can be stopped.
bulkhead_room(worker/guard
    SOURCES
    builtins.c
    cfg.c
    clamp.c
    cut.c
    edit.c
    globals.c
    grid.c
    guard.c
    induction.c
    ir.c
    locals.c
    loops.c
    lower.c
    noise.c
    order.c
    poll.c
    values.c
    words.c
    zero.c
    MAY base worker worker/spirv
    DEFINE ${backend_defines})
# GLSL and HLSL to SPIR-V, CUDA C++ to PTX; what is in a module, for those who ask.
bulkhead_room(worker/compiler
    SOURCES
    answer.c
    compiler.c
    glsl.c
    hlsl.c
    inspect.c
    inspect_types.c
    nvrtc.c
    optimize.cpp
    spec_defaults.c
    MAY base ipc worker worker/guard worker/spirv
    DEFINE ${backend_defines})
# Files into buffers.
bulkhead_room(worker/loader
    SOURCES
    fortran.c
    header.c
    loader.c
    reads.c
    MAY base formats ipc worker
    DEFINE ${backend_defines})
# What both backends have in common.
bulkhead_room(worker/backend
    SOURCES
    answers.c
    calls.c
    MAY worker)
# The device.
bulkhead_room(worker/vulkan
    SOURCES
    abort.c
    api.c
    bind.c
    buffer.c
    cache.c
    commands.c
    copies.c
    copies_fit.c
    device.c
    dispatch.c
    export.c
    features.c
    groups.c
    hazards.c
    kernel.c
    memory.c
    merge.c
    ops.c
    record.c
    recordings.c
    reserve.c
    result.c
    run.c
    sentinel.c
    stage.c
    timing.c
    transfer.c
    MAY base ipc worker worker/backend worker/compiler worker/guard worker/sandbox worker/spirv
    DEFINE ${backend_defines})
# The same for CUDA; its driver is found at run time, and nothing of it is needed to build.
bulkhead_room(worker/cuda
    SOURCES
    buffer.c
    device.c
    image.c
    kernel.c
    memory.c
    ops.c
    record.c
    result.c
    run.c
    warm_up.c
    MAY base ipc worker worker/backend)
# What a worker does from its first record to its last.
bulkhead_room(worker/session
    SOURCES
    ahead.c
    chaos.c
    control.c
    orphan.c
    session.c
    watchdog.c
    MAY base ipc worker worker/compiler worker/loader
    DEFINE ${backend_defines})

set(backend_rooms worker/spirv worker/guard worker/compiler worker/loader worker/backend worker/vulkan
    worker/cuda worker/session)
bulkhead_room_objects(objects ${backend_rooms})
add_library(bhi_backend STATIC ${objects})
target_compile_definitions(bhi_backend PRIVATE VK_NO_PROTOTYPES)
target_link_libraries(bhi_backend PUBLIC bhi_worker_base bhi_ipc bhi_formats Threads::Threads
    PRIVATE
    -Wl,--start-group ${shaderc_libraries} -Wl,--end-group
    ${SPIRV_TOOLS_OPT_LIBRARY} ${SPIRV_TOOLS_LIBRARY} ${spirv_cross_libraries}
    stdc++ m) # the archives are C++
