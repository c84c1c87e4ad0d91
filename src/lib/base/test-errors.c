/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/errors.h"
#include "lib/base/fd.h"

#include <fcntl.h>

static void
test_errno_is_the_code(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_fail_errno(&error, ENOENT, "open '%s'", "/nowhere"));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_cmpstr(error->message, ==, "open '/nowhere': no such file or directory");
}

/* Those of Go's own table: `stale` is the one where the C library has another text today. */
static void
test_errno_texts(void)
{
    static const struct {
        int errnum;
        const char *text;
    } rows[] = {{EPERM, "operation not permitted"},
                {EEXIST, "file exists"},
                {EIO, "input/output error"},
                {EREMOTEIO, "remote I/O error"},
                {ESTALE, "stale NFS file handle"},
                {EDOTDOT, "RFS specific error"},
                {ELIBSCN, ".lib section in a.out corrupted"},
                {EILSEQ, "invalid or incomplete multibyte or wide character"},
                {4095, "errno 4095"}};
    char text[CH_ERRNO_TEXT_SIZE];

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpstr(ch_errno_print(rows[i].errnum, text), ==, rows[i].text);
}

static void
test_message_is_formatted(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_fail(&error, CH_ERROR_LIMIT, "%d is more than %d", 3, 2));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, "3 is more than 2");
}

static void
test_nobody_asked(void)
{
    g_assert_false(ch_fail(NULL, CH_ERROR_FAILED, "unheard"));
    g_assert_false(ch_fail_errno(NULL, EIO, "unheard"));
}

static void
test_fd_is_closed_once_and_errno_kept(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int owned = fd;

    g_assert_cmpint(fd, >=, 0);
    errno = EXDEV;
    ch_close_fd(&owned);
    ch_close_fd(&owned);
    g_assert_cmpint(errno, ==, EXDEV);
    g_assert_cmpint(owned, ==, -EBADF);
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/errors/errno-is-the-code", test_errno_is_the_code);
    g_test_add_func("/errors/errno-texts-are-gos", test_errno_texts);
    g_test_add_func("/errors/message-is-formatted", test_message_is_formatted);
    g_test_add_func("/errors/nobody-asked", test_nobody_asked);
    g_test_add_func("/fd/closed-once-and-errno-kept", test_fd_is_closed_once_and_errno_kept);
    return g_test_run();
}
