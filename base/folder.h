/* Removes a folder of ours through its descriptor. Its path is not used: what somebody has moved
 * there meanwhile stays. */
#ifndef BHI_BASE_FOLDER_H
#define BHI_BASE_FOLDER_H

/* Removes the files in |folder|, then the folder, which was made as |name|. A folder inside is not
 * ours and stays, and so does |folder| with it. Opens no descriptor, and closes |folder|. Returns 0,
 * also if somebody has removed it before, or -errno; -ESTALE: |name| is something else now. */
int bhi_folder_remove(int folder, const char *name);

#endif
