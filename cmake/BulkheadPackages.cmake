# Debian packages, made by CPack from the components of BulkheadInstall.cmake: scripts/packages.
# docs/install.md says what is in which package, docs/decisions/0028-machine.md why. The order of a
# run of cpack: PackageDependencies.cmake, the installation of each component, PackageFiles.cmake.
set(BULKHEAD_MAINTAINER "Bulkhead maintainers <maintainers@bulkhead.example>" CACHE STRING
    "Who answers for the Debian packages: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bulkhead)
set(CPACK_PACKAGE_CONTACT ${BULKHEAD_MAINTAINER})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL runtime judge development command python)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/PackageDependencies.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/PackageFiles.cmake)

# One version for each release, so that an upgrade of the system replaces the package.
set(release 1)
if(EXISTS /etc/os-release)
    file(STRINGS /etc/os-release system REGEX "^(ID|VERSION_ID)=")
    string(REGEX REPLACE "[^=;]*=\"?([^\";]*)\"?" "\\1" system "${system}")
    list(SORT system ORDER DESCENDING) # the name before the number
    string(REGEX REPLACE "[^a-z0-9.]" "" system "${system}")
    string(REGEX REPLACE "^debian" "deb" system "${system}")
    string(APPEND release +${system})
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
# An AppArmor profile for the warden, where AppArmor knows the rule: from version 4 on.
string(REGEX MATCH "[0-9]+" number "${system}")
set(has_apparmor_4 OFF)
if((system MATCHES "^deb" AND (number STREQUAL "" OR number GREATER_EQUAL 13)) OR
        (system MATCHES "^ubuntu" AND number GREATER_EQUAL 24))
    set(has_apparmor_4 ON)
endif()
option(BULKHEAD_PACKAGE_APPARMOR "Package an AppArmor profile for the warden" ${has_apparmor_4})
set(CPACK_BULKHEAD_APPARMOR ${BULKHEAD_PACKAGE_APPARMOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${BULKHEAD_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(full ${PROJECT_VERSION}-${release})

# The package of a library is called by its SONAME.
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(library libbulkhead${soversion})
set(judge_library libbulkhead-judge${soversion})
set(CPACK_BULKHEAD_LIBRARY ${library})
set(CPACK_BULKHEAD_BUILD ${PROJECT_BINARY_DIR})
set(CPACK_BULKHEAD_SOURCE ${PROJECT_SOURCE_DIR})
set(control ${PROJECT_BINARY_DIR}/packages.control)
set(CPACK_BULKHEAD_CONTROL ${control})

set(about "Bulkhead runs compute kernels in sandboxed processes, on Vulkan. A kernel that
crashes, hangs or takes too much memory ends as a verdict on its own event;
the program goes on, and so does all other work.
")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "mesa-vulkan-drivers | vulkan-icd")
# Its programs have the same paths in each version: two of them cannot be installed at once.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_PROVIDES bulkhead-worker)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONFLICTS bulkhead-worker)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_REPLACES bulkhead-worker)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "fault-isolating executor for GPU compute kernels - library
${about}
This package has the shared library, and the programs that its warden and
worker processes run.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    ${control}/runtime/shlibs ${control}/runtime/symbols ${control}/runtime/triggers)
if(BULKHEAD_PACKAGE_APPARMOR)
    list(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${control}/runtime/conffiles
        ${PROJECT_SOURCE_DIR}/packaging/runtime/postinst ${PROJECT_SOURCE_DIR}/packaging/runtime/prerm)
    file(CONFIGURE OUTPUT ${control}/runtime/conffiles
        CONTENT "/etc/apparmor.d/usr.libexec.bulkhead.bulkhead-warden\n")
endif()
file(CONFIGURE OUTPUT ${control}/runtime/shlibs
    CONTENT "libbulkhead ${soversion} ${library} (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT ${control}/runtime/triggers CONTENT "activate-noawait ldconfig\n")

set(CPACK_DEBIAN_JUDGE_PACKAGE_NAME ${judge_library})
set(CPACK_DEBIAN_JUDGE_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_JUDGE_PACKAGE_DEPENDS "${library} (= ${full})")
set(CPACK_DEBIAN_JUDGE_DESCRIPTION "fault-isolating executor for GPU compute kernels - judge
${about}
This package has the shared library that says which kernels compute what a
task wants.")
set(CPACK_DEBIAN_JUDGE_PACKAGE_CONTROL_EXTRA
    ${control}/judge/shlibs ${control}/judge/symbols ${control}/judge/triggers)
file(CONFIGURE OUTPUT ${control}/judge/shlibs
    CONTENT "libbulkhead-judge ${soversion} ${judge_library} (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT ${control}/judge/triggers CONTENT "activate-noawait ldconfig\n")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbulkhead-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${library} (= ${full}), ${judge_library} (= ${full}), bulkhead (= ${full})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libsodium-dev, libzmq3-dev") # of the static library
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "fault-isolating executor for GPU compute kernels - headers
${about}
This package has the headers, the static library, what pkg-config and CMake
need, and manual pages of the functions.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME bulkhead)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "${library} (= ${full})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "libbulkhead-dev, python3-bulkhead")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "fault-isolating executor for GPU compute kernels - command
${about}
This package has the command, which runs kernels and expressions on array
files, alone or in batches, some kernels, and the documentation.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-bulkhead)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "python3 (>= 3.11), ${library} (= ${full}), ${judge_library} (= ${full}), bulkhead (= ${full})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "fault-isolating executor for GPU compute kernels - Python
${about}
This package has the Python module: arrays of NumPy and DLPack, asyncio, and
exceptions with verdicts.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/python/postinst ${PROJECT_SOURCE_DIR}/packaging/python/prerm)
if(NOT BULKHEAD_WITH_PYTHON)
    list(REMOVE_ITEM CPACK_COMPONENTS_ALL python)
endif()
include(CPack)
