# The tests of the backend, the guard and the whole library once more, on SwiftShader: a second
# opinion of what they prove. Where -DBULKHEAD_SWIFTSHADER names its manifest (scripts/test
# swiftshader fetches it). All of those folders run there but the ones below.
set(BULKHEAD_SWIFTSHADER "" CACHE FILEPATH "vk_swiftshader_icd.json, for the tests swiftshader_*")
if(NOT BULKHEAD_SWIFTSHADER)
    return()
endif()

# They use no device: a second run would show nothing.
set(swiftshader_without_device backend_reserve backend_ticks guard_allowed guard_buffers
    guard_controls guard_left guard_limits guard_shapes guard_starved guard_trips guard_valid)
# SwiftShader does not have what their kernels need.
set(swiftshader_lacks
    system_eval_values # floats of 16 bits, integers of 8
    system_templates   # floats and integers of 16 bits
    system_readonly    # pointers that are chosen (VariablePointers)
    system_wrap        # the same
    system_access)     # an array of buffers by a computed index: refused there (decision 23)
# They name lavapipe, as a second driver, as what is traced, or as what poses as a GPU; or their
# driver has a queue for copies.
set(swiftshader_other_driver backend_ahead backend_copies backend_failures backend_memory backend_words system_arguments
    system_budget system_chaos system_device_export system_overlap system_placement system_sentinel system_trace)
# What they prove is of the host, the loaders, the compiler or a worker's processes: no driver takes
# part in it, and they take long.
set(swiftshader_no_driver system_blame system_dead_mount system_describe
    system_descriptors system_endurance system_glsl system_host_killed system_hosts system_idle
    system_inspect system_isolation system_leftovers system_lies system_load_refusals
    system_loaders system_names system_nodes system_owners system_pool
    system_pool_limits system_quarantine system_queue system_races system_random system_spares system_stale
    system_strict system_told system_waits)

bulkhead_again(swiftshader FOLDERS backend guard system TIMEOUT 240
    LEFT_OUT ${swiftshader_without_device} ${swiftshader_lacks} ${swiftshader_other_driver}
        ${swiftshader_no_driver}
    ENVIRONMENT "VK_DRIVER_FILES=${BULKHEAD_SWIFTSHADER}")
