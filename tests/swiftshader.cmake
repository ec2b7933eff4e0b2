# The same programs once more, on SwiftShader: a second opinion of what they prove. Where
# -DBULKHEAD_SWIFTSHADER names its manifest (scripts/test swiftshader fetches it). Not those that
# know lavapipe's limits or need what SwiftShader does not have: 64-bit integers, variable pointers,
# robustBufferAccess2.
set(BULKHEAD_SWIFTSHADER "" CACHE FILEPATH "vk_swiftshader_icd.json, for the tests swiftshader_*")
if(BULKHEAD_SWIFTSHADER)
    foreach(test backend_cache backend_commands backend_hazards backend_hostile backend_merge
            backend_reuse backend_session guard_cut guard_endless guard_limits guard_memory
            guard_starved system_deadline system_hostile)
        add_test(NAME swiftshader_${test} COMMAND ${test})
        set_tests_properties(swiftshader_${test} PROPERTIES LABELS swiftshader TIMEOUT 240
            ENVIRONMENT "${BULKHEAD_TEST_ENVIRONMENT};VK_DRIVER_FILES=${BULKHEAD_SWIFTSHADER}")
    endforeach()
endif()
