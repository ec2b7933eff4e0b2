# A header with a cubin's bytes: cmake -DIN=NAME.cubin -DOUT=FILE -P …
get_filename_component(name ${IN} NAME_WE)
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "_Alignas(16) static const unsigned char fake_cubin_${name}[] = {${bytes}};\n")
