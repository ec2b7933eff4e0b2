# README.md shows examples/saxpy.c as it is, and is one page: three examples, for the command line, C
# and Python, take most of it.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "${example}" at)
if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not show examples/saxpy.c as it is")
endif()
string(REGEX MATCHALL "\n" ends "${readme}")
list(LENGTH ends count)
if(count GREATER 120)
    message(FATAL_ERROR "README.md has ${count} lines, more than one page (120): move text to docs/")
endif()
