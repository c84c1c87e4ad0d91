/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

enum {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_BUMP,
    SQL_GET,
    SQL_PUT,
    SQL_REMOVE,
    SQL_LIST,
    SQL_LIST_NAMESPACE,
    SQL_LIST_OLDER,
    SQL_N,
};

static const char *const statements[SQL_N] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_BUMP] = "UPDATE counter SET revision = revision + 1",
    [SQL_GET] = "SELECT body FROM objects WHERE resource = ?1 AND namespace = ?2 AND name = ?3",
    [SQL_PUT] = ("INSERT INTO objects (resource, namespace, name, body, written_us)"
                 " VALUES (?1, ?2, ?3, ?4, ?5)"
                 " ON CONFLICT (resource, namespace, name)"
                 " DO UPDATE SET body = excluded.body, written_us = excluded.written_us"),
    [SQL_REMOVE] = "DELETE FROM objects WHERE resource = ?1 AND namespace = ?2 AND name = ?3",
    [SQL_LIST] = ("SELECT namespace, name, body FROM objects"
                  " WHERE resource = ?1 AND (namespace, name) > (?2, ?3)"
                  " ORDER BY namespace, name"),
    [SQL_LIST_NAMESPACE] = ("SELECT namespace, name, body FROM objects"
                            " WHERE resource = ?1 AND namespace = ?2 AND name > ?3"
                            " ORDER BY name"),
    [SQL_LIST_OLDER] = ("SELECT namespace, name, body FROM objects"
                        " WHERE resource = ?1 AND written_us < ?2"),
};

static const char schema[] = "PRAGMA application_id = 0x63686e64;" /* "chnd" */
                             "PRAGMA user_version = 1;"
                             "CREATE TABLE counter (revision INTEGER NOT NULL);"
                             "INSERT INTO counter VALUES (1);"
                             "CREATE TABLE objects ("
                             " resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
                             " body TEXT NOT NULL, written_us INTEGER NOT NULL,"
                             " UNIQUE (resource, namespace, name));";

struct ChStore {
    sqlite3 *db;
    sqlite3_stmt *stmts[SQL_N];
    int64_t revision; /* of the database, as of the last commit */
};

/* Raises SQLite's last error. Always false. */
static bool
fail_sqlite(const ChStore *store, const char *doing, GError **error)
{
    if (sqlite3_errcode(store->db) == SQLITE_BUSY)
        return ch_fail(error, CH_ERROR_FAILED, "%s: another process uses this database", doing);
    return ch_fail(error, CH_ERROR_FAILED, "%s: %s", doing, sqlite3_errmsg(store->db));
}

/* Executes statements that give no rows. */
static bool
exec_sql(ChStore *store, const char *sql, const char *doing, GError **error)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           fail_sqlite(store, doing, error);
}

/* The first column of a statement's only row, as a number. */
static bool
query_int(ChStore *store, const char *sql, int64_t *out_value, GError **error)
{
    sqlite3_stmt *stmt = NULL;
    bool ok;

    ok = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
         sqlite3_step(stmt) == SQLITE_ROW;
    if (ok)
        *out_value = sqlite3_column_int64(stmt, 0);
    else
        fail_sqlite(store, "read database", error);
    sqlite3_finalize(stmt);
    return ok;
}

static bool
check_integrity(ChStore *store, GError **error)
{
    sqlite3_stmt *stmt = NULL;
    bool ok;

    ok = sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &stmt, NULL) == SQLITE_OK &&
         sqlite3_step(stmt) == SQLITE_ROW;
    if (!ok)
        fail_sqlite(store, "check database", error);
    else if (!g_str_equal((const char *)sqlite3_column_text(stmt, 0), "ok"))
        ok = ch_fail(
            error, CH_ERROR_FAILED, "database is damaged: %s", sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return ok;
}

/* Makes the tables in a new file; refuses a file of another program or of a later version. */
static bool
ensure_schema(ChStore *store, GError **error)
{
    int64_t version, n_tables;

    if (!query_int(store, "PRAGMA user_version", &version, error) ||
        !query_int(store, "SELECT count(*) FROM sqlite_master", &n_tables, error))
        return false;
    if (version == 0 && n_tables == 0) {
        g_autofree char *sql = g_strconcat("BEGIN;", schema, "COMMIT;", NULL);

        return exec_sql(store, sql, "make tables", error);
    }
    if (version != 1)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "database has version %" G_GINT64_FORMAT ", this program knows 1",
                       version);
    return check_integrity(store, error);
}

static bool
prepare_statements(ChStore *store, GError **error)
{
    for (int i = 0; i < SQL_N; i++) {
        if (sqlite3_prepare_v3(
                store->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &store->stmts[i], NULL) !=
            SQLITE_OK)
            return fail_sqlite(store, "prepare statement", error);
    }
    return true;
}

ChStore *
ch_store_open(const char *path, GError **error)
{
    g_autoptr(ChStore) store = g_new0(ChStore, 1);
    ch_autofd int fd = -EBADF;

    /* SQLite would make it with the umask's mode; its -wal takes the mode over from here */
    if (!g_str_equal(path, CH_STORE_IN_MEMORY)) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            ch_fail_errno(error, errno, "open '%s'", path);
            return NULL;
        }
        ch_close_fd(&fd);
    }
    if (sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        fail_sqlite(store, "open database", error);
    } else if (exec_sql(store,
                        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                        "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; COMMIT;",
                        "open database",
                        error) &&
               ensure_schema(store, error) && prepare_statements(store, error) &&
               query_int(store, "SELECT revision FROM counter", &store->revision, error)) {
        return g_steal_pointer(&store);
    }
    g_prefix_error(error, "'%s': ", path);
    return NULL;
}

void
ch_store_close(ChStore *store)
{
    if (store == NULL)
        return;
    for (int i = 0; i < SQL_N; i++)
        sqlite3_finalize(store->stmts[i]);
    sqlite3_close(store->db);
    g_free(store);
}

int64_t
ch_store_revision(const ChStore *store)
{
    return store->revision;
}

/* A statement ready for parameters; ends with release(). */
static sqlite3_stmt *
take(ChStore *store, int which, const ChStoreKey *key)
{
    sqlite3_stmt *stmt = store->stmts[which];

    if (key != NULL) {
        sqlite3_bind_text(stmt, 1, key->resource, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, key->namespace_, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 3, key->name, -1, SQLITE_STATIC);
    }
    return stmt;
}

static void
release(sqlite3_stmt *stmt)
{
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

bool
ch_store_get(ChStore *store, const ChStoreKey *key, char **out_text, GError **error)
{
    sqlite3_stmt *stmt = take(store, SQL_GET, key);
    const int rc = sqlite3_step(stmt);
    const bool ok = rc == SQLITE_ROW || rc == SQLITE_DONE;

    if (rc == SQLITE_ROW)
        *out_text = g_strdup((const char *)sqlite3_column_text(stmt, 0));
    else if (rc == SQLITE_DONE)
        *out_text = NULL;
    else
        fail_sqlite(store, "read object", error);
    release(stmt);
    return ok;
}

static bool
step_done(ChStore *store, sqlite3_stmt *stmt, GError **error)
{
    const bool ok = sqlite3_step(stmt) == SQLITE_DONE || fail_sqlite(store, "write", error);

    release(stmt);
    return ok;
}

/* One transaction: @change and the counter. On failure nothing has changed. */
static bool
commit(ChStore *store, sqlite3_stmt *change, GError **error)
{
    if (!step_done(store, store->stmts[SQL_BEGIN], error)) {
        release(change);
        return false;
    }
    if (!step_done(store, change, error) || !step_done(store, store->stmts[SQL_BUMP], error) ||
        !step_done(store, store->stmts[SQL_COMMIT], error)) {
        /* a full disk rolls back by itself: then there is none to roll back */
        if (!sqlite3_get_autocommit(store->db))
            (void)step_done(store, store->stmts[SQL_ROLLBACK], NULL); /* the first error counts */
        return false;
    }
    store->revision++;
    return true;
}

bool
ch_store_put(
    ChStore *store, const ChStoreKey *key, const char *text, int64_t now_us, GError **error)
{
    sqlite3_stmt *stmt = take(store, SQL_PUT, key);

    sqlite3_bind_text(stmt, 4, text, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 5, now_us);
    return commit(store, stmt, error);
}

bool
ch_store_remove(ChStore *store, const ChStoreKey *key, GError **error)
{
    return commit(store, take(store, SQL_REMOVE, key), error);
}

/* Visits the rows of a statement that is ready to step. */
static bool
visit_rows(ChStore *store,
           sqlite3_stmt *stmt,
           const char *resource,
           ChStoreVisit visit,
           gpointer data,
           GError **error)
{
    bool ok = true;
    int rc;

    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const ChStoreKey key = {
            .resource = resource,
            .namespace_ = (const char *)sqlite3_column_text(stmt, 0),
            .name = (const char *)sqlite3_column_text(stmt, 1),
        };
        const char *text = (const char *)sqlite3_column_text(stmt, 2);

        if (!visit(&key, text, (gsize)sqlite3_column_bytes(stmt, 2), data))
            break;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        ok = fail_sqlite(store, "list objects", error);
    release(stmt);
    return ok;
}

bool
ch_store_list(ChStore *store,
              const char *resource,
              const char *namespace_,
              const ChStoreKey *after,
              ChStoreVisit visit,
              gpointer data,
              GError **error)
{
    const char *first = namespace_ != NULL ? namespace_ : after != NULL ? after->namespace_ : "";
    const ChStoreKey start = {resource, first, after != NULL ? after->name : ""};

    return visit_rows(store,
                      take(store, namespace_ != NULL ? SQL_LIST_NAMESPACE : SQL_LIST, &start),
                      resource,
                      visit,
                      data,
                      error);
}

bool
ch_store_list_older(ChStore *store,
                    const char *resource,
                    int64_t before_us,
                    ChStoreVisit visit,
                    gpointer data,
                    GError **error)
{
    sqlite3_stmt *stmt = store->stmts[SQL_LIST_OLDER];

    sqlite3_bind_text(stmt, 1, resource, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, before_us);
    return visit_rows(store, stmt, resource, visit, data, error);
}
