/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/cgroup-path.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

typedef struct {
    const char *text;
    size_t length;
} Span;

static bool
equals(const Span *span, const char *text)
{
    return span->length == strlen(text) && memcmp(span->text, text, span->length) == 0;
}

/* Cuts the part before the first @separator off @rest; the whole when there is none. */
static Span
cut(Span *rest, char separator)
{
    const char *end = rest->length > 0 ? memchr(rest->text, separator, rest->length) : NULL;
    const Span part = {rest->text, end != NULL ? (size_t)(end - rest->text) : rest->length};
    const size_t used = part.length + (end != NULL);

    rest->text += used;
    rest->length -= used;
    return part;
}

/* Whether @name is one of the comma-separated @list. */
static bool
lists(Span list, const char *name)
{
    while (list.length > 0) {
        const Span part = cut(&list, ',');

        if (equals(&part, name))
            return true;
    }
    return false;
}

int
ch_cgroup_find(const char *text,
               size_t length,
               const char *controller,
               char out_path[CH_CGROUP_PATH_SIZE])
{
    Span rest = {text, length};
    int result = -ENOENT;

    while (rest.length > 0) {
        Span line = cut(&rest, '\n');
        const bool is_there = line.length > 0 && memchr(line.text, ':', line.length) != NULL;
        const Span id = cut(&line, ':');
        const bool has_path = line.length > 0 && memchr(line.text, ':', line.length) != NULL;
        const Span controllers = cut(&line, ':');

        if (!is_there || !has_path || line.length == 0 || line.text[0] != '/' ||
            memchr(line.text, '\0', line.length) != NULL)
            return -EINVAL;
        if (result == 0 || (controller != NULL ? !lists(controllers, controller)
                                               : !equals(&id, "0") || controllers.length > 0))
            continue;
        if (line.length >= CH_CGROUP_PATH_SIZE)
            return -ENAMETOOLONG;
        memcpy(out_path, line.text, line.length);
        out_path[line.length] = '\0';
        result = 0;
    }
    return result;
}

void
ch_cgroup_strip_housekeeping(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL || !g_str_equal(slash + 1, CH_CGROUP_HOUSEKEEPING))
        return;
    if (slash == path)
        slash++;
    *slash = '\0';
}

bool
ch_cgroup_is_in_scope(const char *path)
{
    static const char suffix[] = ".scope/container";
    const size_t length = strlen(path), wanted = sizeof(suffix) - 1;

    return length > wanted && g_str_equal(path + length - wanted, suffix);
}

static bool
is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Undoes mountinfo's \NNN. Returns whether it fits and holds no NUL. */
static bool
unescape(const Span *span, char out_path[CH_CGROUP_PATH_SIZE])
{
    size_t n = 0;

    for (size_t i = 0; i < span->length; i++) {
        const char *at = span->text + i;
        char c = *at;

        if (c == '\\' && span->length - i > 3 && at[1] <= '3' && is_octal(at[1]) &&
            is_octal(at[2]) && is_octal(at[3])) {
            c = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
            i += 3;
        }
        if (c == '\0' || n >= CH_CGROUP_PATH_SIZE - 1)
            return false;
        out_path[n++] = c;
    }
    out_path[n] = '\0';
    return n > 0 && out_path[0] == '/';
}

bool
ch_cgroup_mount_parse(const char *line,
                      size_t length,
                      const char *controller,
                      ChCgroupMount *out_mount)
{
    Span rest = {line, length};
    Span root, point, type, field;

    (void)cut(&rest, ' '); /* mount ID */
    (void)cut(&rest, ' '); /* parent ID */
    (void)cut(&rest, ' '); /* device */
    root = cut(&rest, ' ');
    point = cut(&rest, ' ');
    do { /* mount options and any optional fields, up to a "-" */
        if (rest.length == 0)
            return false;
        field = cut(&rest, ' ');
    } while (!equals(&field, "-"));
    type = cut(&rest, ' ');
    (void)cut(&rest, ' '); /* source */
    if (!equals(&type, controller != NULL ? "cgroup" : "cgroup2"))
        return false;
    if (controller != NULL && !lists(cut(&rest, ' '), controller)) /* the hierarchy's options */
        return false;
    return unescape(&root, out_mount->root) && unescape(&point, out_mount->point);
}

/* Whether it climbs out of where it begins. */
static bool
leads_out(const char *path)
{
    return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0');
}

const char *
ch_cgroup_below(const char *root, const char *path)
{
    size_t length = strlen(root);

    if (leads_out(root) || leads_out(path))
        return NULL;
    while (length > 0 && root[length - 1] == '/') /* of "/" nothing is left */
        length--;
    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    path += length;
    return path + strspn(path, "/");
}
