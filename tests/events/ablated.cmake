# cmake -DPROGRAM=events_buffers_ablated -P ablated.cmake
# Retention is there for something: with it switched off each case that is about it fails, and says
# this. The others pass as before; with retention on all of them do.
set(expected
    "case_21_a_temporary_in_a_lane_keeps_its_memory|its input was issued again in flight: element 0 is 49, must be 9"
    "case_21_a_temporary_in_a_queue_keeps_its_memory|buffer [0-9]+ is not attached"
    "case_22_a_dropped_output_keeps_its_memory|what is in flight wrote into memory that it no longer has"
    "case_23_trimming_spares_what_is_in_flight|is BINDING_MISMATCH, must be OK: .* is not attached"
    "case_24_a_bound_handle_is_retained|is INVALID_KERNEL, must be OK: .*kernel [0-9]+ does not exist"
    "case_25_temporaries_go_at_their_own_end|it was released before its submission had ended"
    "case_26_what_runs_is_registered|buffer [0-9]+ is not attached, and bound as set 0 binding 0"
    "case_27_a_killed_submission_releases_once|it was released before its submission had ended"
    "case_27_a_failed_submission_releases_once|it was released before its submission had ended"
    "case_27_a_cancelled_or_poisoned_submission_releases_once|it was released before its submission had ended")
execute_process(COMMAND ${PROGRAM} --list OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "case_[0-9]+_[a-z0-9_]+" names "${list}")
foreach(name IN LISTS names)
    set(words "")
    foreach(line IN LISTS expected)
        if(line MATCHES "^${name}\\|(.*)$")
            set(words "${CMAKE_MATCH_1}")
        endif()
    endforeach()
    foreach(retention on off)
        execute_process(COMMAND ${CMAKE_COMMAND} -E env BULKHEAD_TEST_RETENTION=${retention}
                                ${PROGRAM} ${name}
                        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
        if(retention STREQUAL "on" OR words STREQUAL "")
            if(NOT result EQUAL 0)
                message(SEND_ERROR "${name} fails with retention ${retention}:\n${output}")
            endif()
        elseif(NOT result EQUAL 1)
            message(SEND_ERROR "${name} does not notice that retention is off:\n${output}")
        elseif(NOT output MATCHES "${words}")
            message(SEND_ERROR "${name} fails without retention, but not for that:\n${output}")
        endif()
    endforeach()
endforeach()
