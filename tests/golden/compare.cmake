# Fails where what GENERATOR prints is not what stands in PAGE.
execute_process(COMMAND ${GENERATOR} OUTPUT_FILE ${GENERATOR}.out RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${GENERATOR}: ${result}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${GENERATOR}.out ${PAGE}
    RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    execute_process(COMMAND diff -u ${PAGE} ${GENERATOR}.out)
    message(FATAL_ERROR "${PAGE} is not what the tables say: build the target gen_docs")
endif()
