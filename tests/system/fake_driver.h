/* A driver of the tests in the place of lavapipe: its manifest is all that the library finds. */
#ifndef BHT_FAKE_DRIVER_H
#define BHT_FAKE_DRIVER_H

/* Copies the library to where everybody can read it, for this test, and sets VK_DRIVER_FILES. */
void fake_driver_install(const char *library);
/* Copies a library; the folder of |to| exists. */
void fake_library_copy(const char *from, const char *to);
/* The page of an engine, for the driver that was installed: before it is loaded. Gone after the test. */
struct fake_engine *fake_driver_engine(void);

#endif
