/* SPDX-License-Identifier: Apache-2.0 */

/*
 * replay: runs each file of a corpus through a fuzz target, where libFuzzer is not linked in.
 * usage: fuzz-NAME DIRECTORY|FILE...
 * Prints TAP. A target that finds something aborts; a corpus that is missing or empty is a failure.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
replay_file(const char *path)
{
    g_autofree char *data = NULL;
    g_autofree uint8_t *exact = NULL;
    g_autoptr(GError) error = NULL;
    gsize size;

    if (!g_file_get_contents(path, &data, &size, &error)) {
        printf("not ok - %s\n", error->message);
        return false;
    }
    /* without the NUL that GLib puts behind it, so that a read beyond the end is seen; never NULL,
     * as libFuzzer's is not either */
    exact = size > 0 ? g_memdup2(data, size) : g_malloc(1);
    LLVMFuzzerTestOneInput(exact, size);
    printf("ok - %s\n", path);
    fflush(stdout); /* names the culprit's predecessor when the next one aborts */
    return true;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(*(const char *const *)a, *(const char *const *)b);
}

/* Returns: the names in @directory, sorted: a run is like the last one */
static GPtrArray *
list_names(GDir *directory)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    while ((name = g_dir_read_name(directory)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    return names;
}

static bool
replay_path(const char *path, guint *n_files)
{
    g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = NULL;
    bool is_good = true;

    if (directory == NULL) {
        ++*n_files;
        return replay_file(path);
    }
    names = list_names(directory);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *file = g_build_filename(path, names->pdata[i], NULL);

        is_good &= replay_file(file);
    }
    *n_files += names->len;
    return is_good;
}

int
main(int argc, char **argv)
{
    guint n_files = 0;
    bool is_good = true;

    for (int i = 1; i < argc; i++)
        is_good &= replay_path(argv[i], &n_files);
    printf("1..%u\n", n_files);
    return is_good && n_files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
