/* A driver of the tests in the place of lavapipe: its manifest is all that the library finds. */
#ifndef BHT_FAKE_DRIVER_H
#define BHT_FAKE_DRIVER_H

/* Copies the library to where everybody can read it, and sets VK_DRIVER_FILES. */
void fake_driver_install(const char *library);
/* Removes it: is done after the test, too. */
void fake_driver_remove(void);

#endif
