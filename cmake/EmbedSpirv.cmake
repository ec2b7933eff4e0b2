# A C file that holds compiled kernels: cmake -DOUT=FILE -DHEADER=NAME -DKERNELS="a.spv;b.spv" -P …
# Each is a bhi_embedded_<name>, as the header declares it.
set(text "#include \"${HEADER}\"\n")
foreach(kernel IN LISTS KERNELS)
    get_filename_component(name ${kernel} NAME_WE)
    file(READ ${kernel} bytes HEX)
    string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1u," words "${bytes}")
    string(APPEND text "\nconst uint32_t bhi_embedded_${name}[] = {${words}};\n"
        "const size_t bhi_embedded_${name}_size = sizeof bhi_embedded_${name};\n")
endforeach()
file(WRITE ${OUT} "${text}")
