/* Looks at pages with xmllint, which is not ours. */
#ifndef TEST_REPORT_HTML_H
#define TEST_REPORT_HTML_H

#include <stdbool.h>
#include <stddef.h>

/* A folder of the test's own, and back out of it: group fixtures. The latter fails where a file
 * other than page.html was left behind. */
void html_enter_folder(void);
void html_leave_folder(void);
/* How many files are in it, hidden ones too. */
unsigned html_count_files(void);

/* The file's content, NUL-terminated, until the test ends. Fails the test where there is none. */
char *html_read(const char *path, size_t *out_size);
/* page.html is well-formed, needs nothing from elsewhere, and has no script; the test fails
 * otherwise. */
void html_check(void);
/* What an XPath expression gives of page.html: a number; a string. Elements are named with the
 * prefix h:, those of drawings s:; ` is ". */
long html_count(const char *expression);
void html_expect(const char *expression, const char *expected);

#endif
