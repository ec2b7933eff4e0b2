# Run by cpack after each component was installed into a folder of its own: puts their files where
# Debian has such files, and adds what each package of Debian has.
cmake_policy(VERSION 3.25)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(reference ${CPACK_BULKHEAD_REFERENCE}) # a folder that scripts/reference has written; or none

function(run)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${CPACK_BULKHEAD_CONTROL}/work
        RESULT_VARIABLE result ERROR_VARIABLE error OUTPUT_QUIET)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${ARGN}: ${result}: ${error}")
    endif()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
    string(TOUPPER ${component} upper)
    set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    if(component STREQUAL "runtime")
        file(GLOB library ${root}/lib/libbulkhead.so.*.*.*)
        run(dpkg-gensymbols -p${package} -v${CPACK_PACKAGE_VERSION} -e${library}
            -O${CPACK_BULKHEAD_CONTROL}/runtime/symbols)
        if(CPACK_BULKHEAD_APPARMOR)
            set(profiles ${CPACK_TEMPORARY_DIRECTORY}/${component}/etc/apparmor.d)
            file(MAKE_DIRECTORY ${profiles})
            execute_process(COMMAND ${CPACK_BULKHEAD_SOURCE}/containers/apparmor-profile
                    /usr/libexec/bulkhead/bulkhead-warden
                OUTPUT_FILE ${profiles}/usr.libexec.bulkhead.bulkhead-warden
                COMMAND_ERROR_IS_FATAL ANY)
        endif()
        # What the worker is linked with statically has licenses of its own.
        foreach(linked libshaderc-dev glslang-dev spirv-tools libspirv-cross-c-shared-dev)
            configure_file(/usr/share/doc/${linked}/copyright
                ${root}/share/doc/${package}/licenses/${linked} COPYONLY)
        endforeach()
    elseif(component STREQUAL "judge")
        file(GLOB library ${root}/lib/libbulkhead-judge.so.*.*.*)
        file(RPATH_REMOVE FILE ${library}) # libbulkhead is where the linker looks for it
        run(dpkg-gensymbols -p${package} -v${CPACK_PACKAGE_VERSION} -e${library}
            -O${CPACK_BULKHEAD_CONTROL}/judge/symbols)
    elseif(component STREQUAL "development")
        if(reference)
            file(COPY ${reference}/man/man3 DESTINATION ${root}/share/man)
        endif()
        run(strip --strip-debug ${root}/lib/libbulkhead.a)
        # Where pkg-config for this architecture looks, also if it is another machine's.
        execute_process(COMMAND dpkg-architecture -qDEB_HOST_MULTIARCH OUTPUT_VARIABLE architecture
            OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        foreach(name bulkhead bulkhead-judge)
            file(READ ${root}/lib/pkgconfig/${name}.pc text)
            string(REGEX REPLACE "^prefix=[^\n]*" "prefix=/usr" text "${text}")
            file(WRITE ${root}/lib/${architecture}/pkgconfig/${name}.pc "${text}")
        endforeach()
        file(REMOVE_RECURSE ${root}/lib/pkgconfig)
    elseif(component STREQUAL "command")
        # The library is where the linker looks for it.
        file(RPATH_REMOVE FILE ${root}/bin/bulkhead)
        # Debian's zsh looks elsewhere; its licenses are in one place.
        file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
        file(REMOVE ${root}/share/doc/bulkhead/LICENSE)
        file(RENAME ${root}/share/doc/bulkhead/CHANGELOG.md ${root}/share/doc/bulkhead/changelog)
        run(gzip -9n ${root}/share/doc/bulkhead/changelog)
    elseif(component STREQUAL "python")
        # One folder for all versions of Python: the module is in the stable ABI.
        file(GLOB found ${root}/lib*/python*/*/bulkhead)
        file(RENAME ${found} ${root}/bulkhead)
        file(GLOB rest ${root}/lib*)
        file(REMOVE_RECURSE ${rest})
        file(MAKE_DIRECTORY ${root}/lib/python3/dist-packages)
        file(RENAME ${root}/bulkhead ${root}/lib/python3/dist-packages/bulkhead)
        file(RPATH_REMOVE FILE ${root}/lib/python3/dist-packages/bulkhead/_native.abi3.so)
    endif()
    file(GLOB pages ${root}/share/man/man*/*)
    set(doc ${root}/share/doc/${package})
    file(COPY ${CPACK_BULKHEAD_SOURCE}/packaging/copyright DESTINATION ${doc})
    configure_file(${CPACK_BULKHEAD_SOURCE}/packaging/changelog.in ${doc}/changelog.Debian @ONLY)
    run(gzip -9n ${doc}/changelog.Debian ${pages})
    # Whatever the umask was.
    run(chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_DIRECTORY}/${component})
endforeach()
