# Read by cpack before it begins: which packages have the libraries that the programs need, found by
# dpkg-shlibdeps. CPack would do that too, but then it calls ldconfig in scripts of its own.
cmake_policy(VERSION 3.25)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own, which this would precede
set(work ${CPACK_BULKHEAD_CONTROL}/work) # dpkg's programs expect a source package
file(WRITE ${work}/debian/control
    "Source: bulkhead\n\nPackage: ${CPACK_BULKHEAD_LIBRARY}\nArchitecture: any\n")
set(runtime_files lib/libbulkhead.so bin/bulkhead-warden bin/bulkhead-worker)
set(judge_files lib/libbulkhead-judge.so)
set(command_files bin/bulkhead)
set(python_files python/bulkhead/_native.abi3.so)
foreach(component runtime judge command python)
    if(NOT component IN_LIST CPACK_COMPONENTS_ALL)
        continue()
    endif()
    set(files ${${component}_files})
    list(TRANSFORM files PREPEND ${CPACK_BULKHEAD_BUILD}/)
    # Our own library is in no package here: --ignore-missing-info.
    execute_process(COMMAND dpkg-shlibdeps -O --ignore-missing-info -l${CPACK_BULKHEAD_BUILD}/lib
            ${files}
        WORKING_DIRECTORY ${work} OUTPUT_VARIABLE found ERROR_VARIABLE error RESULT_VARIABLE result)
    if(NOT result EQUAL 0 OR NOT found MATCHES "shlibs:Depends=([^\n]+)")
        message(FATAL_ERROR "dpkg-shlibdeps: ${result}: ${error}")
    endif()
    string(TOUPPER ${component} upper)
    set(depends CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS)
    set(own "")
    if(${depends})
        set(own "${${depends}}, ")
    endif()
    set(${depends} "${own}${CMAKE_MATCH_1}")
endforeach()
