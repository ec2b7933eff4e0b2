# What a host gets: shared and static library, headers, warden and worker, kernels, and two ways to find
# them, find_package(bulkhead) and pkg-config bulkhead. The components are the packages of
# cmake/BulkheadPackages.cmake: runtime, judge, development, command, python; reference and apparmor
# are in none.
include(CMakePackageConfigHelpers)

# Only bh_* leaves the library, whatever is linked into it.
set_target_properties(bulkhead PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} # docs/install.md
    LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/bulkhead.map
    EXPORT_NAME bulkhead)
target_link_options(bulkhead PRIVATE LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/bulkhead.map)
if(BULKHEAD_SANITIZE STREQUAL "") # a sanitizer's runtime comes with the program
    target_link_options(bulkhead PRIVATE LINKER:-z,defs)
endif()

# libbulkhead-judge, which finds libbulkhead beside itself. There is no archive of it.
set_target_properties(bulkhead_judge PROPERTIES
    OUTPUT_NAME bulkhead-judge
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/bulkhead-judge.map
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN"
    EXPORT_NAME judge)
target_link_options(bulkhead_judge PRIVATE
    LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/bulkhead-judge.map)
if(BULKHEAD_SANITIZE STREQUAL "")
    target_link_options(bulkhead_judge PRIVATE LINKER:-z,defs)
endif()

# The same objects as an archive. What they need is named for the linker of the host.
add_library(bulkhead_static STATIC ${supervisor_objects}
    $<TARGET_OBJECTS:room_core> $<TARGET_OBJECTS:room_ipc> $<TARGET_OBJECTS:room_base>
    $<TARGET_OBJECTS:room_templates> $<TARGET_OBJECTS:bhi_numbers>)
set_target_properties(bulkhead_static PROPERTIES
    OUTPUT_NAME bulkhead
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    LINKER_LANGUAGE C
    EXPORT_NAME static)
target_link_libraries(bulkhead_static
    PUBLIC bulkhead_headers INTERFACE zmq sodium m Threads::Threads ${CMAKE_DL_LIBS})

install(TARGETS bulkhead bulkhead_static bulkhead_headers
    EXPORT bulkhead
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS bulkhead_judge
    EXPORT bulkhead
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT judge NAMELINK_COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS bulkhead-warden bulkhead-worker
    RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/bulkhead COMPONENT runtime)
# An AppArmor profile for the warden: docs/operating.md. The program that makes it lies beside the
# warden. The profile itself is installed on request: cmake --install BUILD --component apparmor.
set(apparmor_profile ${PROJECT_SOURCE_DIR}/containers/apparmor-profile)
install(PROGRAMS ${apparmor_profile}
    DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/bulkhead COMPONENT runtime)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/install_apparmor.cmake @ONLY CONTENT [[
execute_process(COMMAND "@apparmor_profile@"
    "${CMAKE_INSTALL_PREFIX}/@CMAKE_INSTALL_LIBEXECDIR@/bulkhead/bulkhead-warden"
    OUTPUT_VARIABLE profile COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "\nprofile ([^ ]+)" found "${profile}")
set(file "/etc/apparmor.d/${CMAKE_MATCH_1}")
file(WRITE "$ENV{DESTDIR}${file}" "${profile}")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${file}")
message(STATUS "Installing: $ENV{DESTDIR}${file}; to load it: apparmor_parser --replace ${file}")
]])
install(SCRIPT ${PROJECT_BINARY_DIR}/install_apparmor.cmake COMPONENT apparmor EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/bulkhead ${PROJECT_BINARY_DIR}/include/bulkhead
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")

# The reference of the API, as pages and as man pages: ninja reference. Installed where it was built.
add_custom_target(reference
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/reference ${PROJECT_BINARY_DIR}/reference ${PROJECT_BINARY_DIR}
    COMMENT "Writing the reference of the API"
    VERBATIM)
install(DIRECTORY ${PROJECT_BINARY_DIR}/reference/man/man3
    DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT reference OPTIONAL)
install(DIRECTORY ${PROJECT_BINARY_DIR}/reference/html
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/reference COMPONENT reference OPTIONAL)

# find_package(bulkhead): targets bulkhead::bulkhead, bulkhead::static and bulkhead::judge
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bulkhead)
install(EXPORT bulkhead NAMESPACE bulkhead:: DESTINATION ${package_dir} COMPONENT development
    FILE bulkhead-targets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/bulkhead-config.cmake.in
    ${PROJECT_BINARY_DIR}/bulkhead-config.cmake
    INSTALL_DESTINATION ${package_dir}
    PATH_VARS CMAKE_INSTALL_LIBEXECDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bulkhead-config-version.cmake
    COMPATIBILITY SameMinorVersion) # before 1.0 a minor version may change the API
install(FILES
    ${PROJECT_BINARY_DIR}/bulkhead-config.cmake
    ${PROJECT_BINARY_DIR}/bulkhead-config-version.cmake
    DESTINATION ${package_dir} COMPONENT development)

# pkg-config bulkhead. The prefix follows from where the file lies, so that the tree can be moved.
file(RELATIVE_PATH pkgconfig_to_prefix
    /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name bulkhead bulkhead-judge)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

# As in the source tree: README.md and the header cite docs/….
install(FILES LICENSE README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY docs
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command FILES_MATCHING PATTERN "*.md")
install(FILES examples/saxpy.c examples/poison.c examples/epoll.c examples/load.c
    examples/template.c examples/judge.c examples/chaos_host.c
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT command)
install(DIRECTORY examples/python
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT command FILES_MATCHING PATTERN "*.py")
