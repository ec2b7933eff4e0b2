/* What NVRTC opens beside itself when it compiles. */
extern const char fake_nvrtc_builtins[];
const char fake_nvrtc_builtins[] = "libnvrtc-builtins.so.12.8";
