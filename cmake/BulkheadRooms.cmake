# bulkhead_room(FOLDER SOURCES… [MAY FOLDER…] [LIBRARIES …] [DEFINE …] [INCLUDE …])
#
# A room: a folder of this repository with what is in it. It is an object library,
# room_<folder, with _ for />, from which the libraries and programs are put together.
#   SOURCES    in this folder
#   MAY        the folders whose headers these files include, besides their own; any other fails
#              to build. They are rooms already: who comes later is above
#   UP         those of them that come later, or that include this one; scripts/check-structure
#              counts them
#   LIBRARIES  what gives them headers and definitions, from outside the rooms
function(bulkhead_room folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MAY;UP;LIBRARIES;DEFINE;INCLUDE")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "bulkhead_room(${folder}): what is ${arg_UNPARSED_ARGUMENTS}?")
    endif()
    foreach(below IN LISTS arg_MAY)
        get_property(sources GLOBAL PROPERTY BULKHEAD_ROOM_${below})
        if(NOT sources)
            message(FATAL_ERROR "bulkhead_room(${folder}): ${below} is no room yet; is it above?")
        endif()
    endforeach()
    string(REPLACE "/" "_" name room_${folder})
    set(path ${PROJECT_SOURCE_DIR}/${folder})
    set(sources ${arg_SOURCES})
    list(TRANSFORM sources PREPEND ${path}/)
    set_property(GLOBAL PROPERTY BULKHEAD_ROOM_${folder} "${sources}")

    file(GLOB files CONFIGURE_DEPENDS ${path}/*.c ${path}/*.cpp ${path}/*.h ${path}/*.def)
    set(checked ${CMAKE_BINARY_DIR}/rooms/${name})
    add_custom_command(OUTPUT ${checked}
        COMMAND ${CMAKE_COMMAND} -DROOM=${folder} "-DMAY=${arg_MAY};${arg_UP}" "-DFILES=${files}"
                -DOUT=${checked} -P ${PROJECT_SOURCE_DIR}/cmake/CheckIncludes.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/CheckIncludes.cmake
        COMMENT "Includes of ${folder}"
        VERBATIM)
    add_custom_target(${name}_includes DEPENDS ${checked})

    add_library(${name} OBJECT ${sources})
    target_include_directories(${name} PRIVATE ${arg_INCLUDE})
    target_compile_definitions(${name} PRIVATE ${arg_DEFINE})
    target_link_libraries(${name} PRIVATE bulkhead_flags bulkhead_headers ${arg_LIBRARIES})
    add_dependencies(${name} ${name}_includes)
endfunction()

# *out: the sources of rooms, for what is compiled in another way.
function(bulkhead_room_sources out)
    set(all "")
    foreach(folder IN LISTS ARGN)
        get_property(sources GLOBAL PROPERTY BULKHEAD_ROOM_${folder})
        if(NOT sources)
            message(FATAL_ERROR "there is no room ${folder}")
        endif()
        list(APPEND all ${sources})
    endforeach()
    set(${out} ${all} PARENT_SCOPE)
endfunction()

# *out: the objects of rooms.
function(bulkhead_room_objects out)
    set(all "")
    foreach(folder IN LISTS ARGN)
        string(REPLACE "/" "_" name room_${folder})
        list(APPEND all $<TARGET_OBJECTS:${name}>)
    endforeach()
    set(${out} ${all} PARENT_SCOPE)
endfunction()
