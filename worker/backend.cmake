# The Vulkan backend and the session: bhi_backend, and bhi_backend_faulty with fault points in it.
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

set(backend_sources
    array_indices.c
    closer.c
    compiler.c
    float_modes.c
    glsl.c
    hlsl.c
    guard.c
    guard_cfg.c
    guard_clamp.c
    guard_cut.c
    guard_edit.c
    guard_entry.c
    guard_globals.c
    guard_induction.c
    guard_ir.c
    guard_limits.c
    guard_limits_sizes.c
    guard_locals.c
    guard_lower.c
    guard_loops.c
    guard_poll.c
    guard_purity.c
    guard_trips.c
    guard_values.c
    guard_words.c
    guard_zero.c
    inspect.c
    inspect_types.c
    loader.c
    loader_header.c
    loader_reads.c
    module.c
    module_access.c
    module_shared.c
    optimize.cpp
    reflect.c
    session.c
    session_control.c
    spec_defaults.c
    spirv_names.c
    title.c
    validate.c
    vk_abort.c
    vk_api.c
    vk_backend.c
    vk_bind.c
    vk_breakable.c
    vk_buffer.c
    vk_cache.c
    vk_device.c
    vk_dispatch.c
    vk_fault.c
    vk_features.c
    vk_groups.c
    vk_hazards.c
    vk_kernel.c
    vk_map.c
    vk_merge.c
    vk_prime.c
    vk_record.c
    vk_recordings.c
    vk_reserve.c
    vk_run.c
    vk_stage.c)
list(TRANSFORM backend_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

foreach(variant bhi_backend bhi_backend_faulty)
    add_library(${variant} STATIC ${backend_sources})
    target_include_directories(${variant} PUBLIC ${CMAKE_CURRENT_LIST_DIR}
        PRIVATE ${SPIRV_NAMES})
    target_compile_definitions(${variant} PRIVATE VK_NO_PROTOTYPES)
    target_link_libraries(${variant} PUBLIC bhi_ipc bhi_formats Threads::Threads
        PRIVATE bulkhead_flags
        -Wl,--start-group ${shaderc_libraries} -Wl,--end-group
        ${SPIRV_TOOLS_OPT_LIBRARY} ${SPIRV_TOOLS_LIBRARY} ${spirv_cross_libraries}
        stdc++ m) # the archives are C++
endforeach()
target_compile_definitions(bhi_backend_faulty PRIVATE BHI_FAULTS=1)
