// SQLite in WAL mode: one table without row numbers, a connection and its prepared statements per
// session, reads and single writes in transactions of their own.

#include <atomic>
#include <mutex>

#include <sqlite3.h>

#include "door.hpp"

namespace {

using peers::failed;

// Measured at 300,000 to 500,000 records of 100 bytes, in processor time of this process.
/// With 1 KiB values pages of 8 KiB filled 2.4 times as fast as 4 KiB; with 100 bytes 16 KiB filled
/// 16 % slower.
constexpr int page_bytes = 8192;
/// Fills took 0.74 of the time that the default, 1000 pages, came to; gets 5 to 10 % more.
constexpr int checkpoint_bytes = 64 << 20;
/// Mapped reads, of 2 GiB, changed gets by less than 2 %, so they stay off as by default.
constexpr long long map_bytes = 0;
constexpr int busy_milliseconds = 60000;
/// Above this a row of a table WITHOUT ROWID no longer fits in a page of the tree, and each
/// comparison of a key would read the whole row: the manual advises a table with row numbers.
constexpr size_t clustered_row_bytes_max = page_bytes / 5;
/// REPLACE took as long, within 1 %.
constexpr const char *upsert =
    "INSERT INTO records VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// Closes what the library opened.
struct closer {
    void operator()(sqlite3 *connection) const { sqlite3_close_v2(connection); }
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using connection_pointer = std::unique_ptr<sqlite3, closer>;

bool refuse(sqlite3 *connection, int code) {
    return failed(
        std::string("sqlite: ") + (connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code)));
}

bool execute(sqlite3 *connection, const std::string &text) {
    const int code = sqlite3_exec(connection, text.c_str(), nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? true : refuse(connection, code);
}

const char *synchronous_for(const peer_options &options) {
    return options.durability == PEER_SURVIVES_POWER_LOSS ? "FULL" : "NORMAL";
}

/// The library counts all memory under a lock unless it is told not to before its first use; its
/// manual recommends that.
void configure_library() {
    static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    (void)once;
}

connection_pointer connect(const std::string &path, const peer_options &options) {
    sqlite3 *opened = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    connection_pointer connection(opened);
    if (code != SQLITE_OK) {
        refuse(opened, code);
        return nullptr;
    }
    sqlite3_busy_timeout(opened, busy_milliseconds);
    const std::string settings =
        "PRAGMA page_size = " + std::to_string(page_bytes) +
        "; PRAGMA journal_mode = WAL; PRAGMA synchronous = " + synchronous_for(options) +
        "; PRAGMA cache_size = -" + std::to_string(options.cache_bytes / 1024) +
        "; PRAGMA mmap_size = " + std::to_string(map_bytes) +
        "; PRAGMA wal_autocheckpoint = " + std::to_string(checkpoint_bytes / page_bytes) + ";";
    if (!execute(opened, settings)) return nullptr;
    return connection;
}

class store {
  public:
    class session;

    store(const char *directory, const peer_options &options)
        : path_(std::string(directory) + "/records.sqlite"), options_(options) {}

    static const char *version() { return sqlite3_libversion(); }

    static void describe(const peer_options &options, peers::settings_text &settings) {
        settings.add("journal_mode", "WAL")
            .add("synchronous", synchronous_for(options))
            .add("table", "key BLOB PRIMARY KEY WITHOUT ROWID (long rows: with)")
            .add("short_row_bytes_max", clustered_row_bytes_max)
            .add("page_size", page_bytes)
            .add("cache_size_bytes", options.cache_bytes)
            .add("mmap_size", map_bytes)
            .add("wal_autocheckpoint", checkpoint_bytes / page_bytes)
            .add("memory_statistics", false)
            .add("connections", "one per session (NOMUTEX)")
            .add("writers", "take turns by a mutex of the driver");
    }

    bool open() {
        configure_library();
        keeper_ = connect(path_, options_);
        if (!keeper_) return false;
        const int code = sqlite3_table_column_metadata(
            keeper_.get(), nullptr, "records", nullptr, nullptr, nullptr, nullptr, nullptr,
            nullptr);
        has_table_ = code == SQLITE_OK;
        return true;
    }

    /// Nothing goes on in the background; but what the log holds is moved, so that every workload
    /// begins with the whole database in its place.
    bool settle() {
        const std::lock_guard<std::mutex> guard(writer_);
        return execute(keeper_.get(), "PRAGMA wal_checkpoint(TRUNCATE)");
    }

    bool compact() { return execute(keeper_.get(), "VACUUM") && settle(); }

  private:
    /// The first write makes the table, of the kind that the manual advises for rows of its length.
    bool make_table(size_t row_bytes) {
        const std::lock_guard<std::mutex> guard(writer_);
        if (has_table_) return true;
        std::string text =
            "CREATE TABLE records (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL)";
        if (row_bytes <= clustered_row_bytes_max) text += " WITHOUT ROWID";
        has_table_ = execute(keeper_.get(), text);
        return has_table_;
    }

    std::string path_;
    peer_options options_;
    connection_pointer keeper_;
    std::atomic<bool> has_table_ = false;
    /// Writers of several connections take turns by polling with sleeps of milliseconds; here they
    /// wait for each other in the process instead, which is faster.
    std::mutex writer_;
};

class statement {
  public:
    bool prepare(sqlite3 *connection, const char *text) {
        connection_ = connection;
        sqlite3_stmt *prepared = nullptr;
        const int code = sqlite3_prepare_v3(
            connection, text, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
        prepared_.reset(prepared);
        return code == SQLITE_OK ? true : refuse(connection, code);
    }

    /// The bytes stay where they are; they outlast the statement's run.
    void bind(int index, const void *bytes, size_t count) {
        // A null pointer would bind NULL rather than an empty blob.
        const void *present = bytes == nullptr ? "" : bytes;
        sqlite3_bind_blob64(prepared_.get(), index, present, count, SQLITE_STATIC);
    }

    int step() { return sqlite3_step(prepared_.get()); }
    void reset() { sqlite3_reset(prepared_.get()); }

    /// Runs a statement that returns no rows.
    bool run() {
        const int code = step();
        const bool succeeded = code == SQLITE_DONE ? true : refuse(connection_, code);
        reset();
        return succeeded;
    }

    const void *blob(int column) { return sqlite3_column_blob(prepared_.get(), column); }
    size_t bytes(int column) {
        return static_cast<size_t>(sqlite3_column_bytes(prepared_.get(), column));
    }

  private:
    sqlite3 *connection_ = nullptr;
    std::unique_ptr<sqlite3_stmt, closer> prepared_;
};

class store::session {
  public:
    explicit session(store &owner) : owner_(owner) {}

    bool open() {
        connection_ = connect(owner_.path_, owner_.options_);
        return connection_ && (!owner_.has_table_ || prepare());
    }

    bool put(const peer_record &record, bool) {
        if (!is_prepared_ && !begin_writing(record)) return false;
        const std::lock_guard<std::mutex> guard(owner_.writer_);
        return put_one(record);
    }

    bool remove(const void *key, size_t key_bytes) {
        if (!is_prepared_ && !owner_.has_table_) return true;
        if (!is_prepared_ && !prepare()) return false;
        const std::lock_guard<std::mutex> guard(owner_.writer_);
        remove_.bind(1, key, key_bytes);
        return remove_.run();
    }

    bool write_batch(const peer_record *records, size_t count, bool) {
        if (count == 0) return true;
        if (!is_prepared_ && !begin_writing(records[0])) return false;
        const std::lock_guard<std::mutex> guard(owner_.writer_);
        if (!begin_.run()) return false;
        for (size_t index = 0; index < count; index += 1) {
            if (put_one(records[index])) continue;
            const std::string reason = peers::last_error();
            rollback_.run();
            return failed(reason);
        }
        return commit_.run();
    }

    bool remove_batch(const peer_record *records, size_t count) {
        if (count == 0 || (!is_prepared_ && !owner_.has_table_)) return true;
        if (!is_prepared_ && !prepare()) return false;
        const std::lock_guard<std::mutex> guard(owner_.writer_);
        if (!begin_.run()) return false;
        for (size_t index = 0; index < count; index += 1) {
            remove_.bind(1, records[index].key, records[index].key_bytes);
            if (remove_.run()) continue;
            const std::string reason = peers::last_error();
            rollback_.run();
            return failed(reason);
        }
        return commit_.run();
    }

    template <class Body>
    peer_result visit(const void *key, size_t key_bytes, Body body) {
        if (!is_prepared_ && !owner_.has_table_) return PEER_MISSING;
        if (!is_prepared_ && !prepare()) return PEER_FAILED;
        get_.bind(1, key, key_bytes);
        const int code = get_.step();
        peer_result result = PEER_MISSING;
        if (code == SQLITE_ROW) {
            const void *value = get_.blob(0);
            result = body(value, get_.bytes(0));
        } else if (code != SQLITE_DONE) {
            refuse(connection_.get(), code);
            result = PEER_FAILED;
        }
        get_.reset();
        return result;
    }

    bool scan(
        const void *from, size_t from_bytes, size_t prefix_bytes, size_t limit, peer_scan &seen) {
        if (!is_prepared_ && !owner_.has_table_) return true;
        if (!is_prepared_ && !prepare()) return false;
        const std::string end = peers::end_of_prefix(from, prefix_bytes);
        statement &rows = end.empty() ? scan_ : scan_range_;
        rows.bind(1, from, from_bytes);
        if (!end.empty()) rows.bind(2, end.data(), end.size());
        int code = rows.step();
        while (code == SQLITE_ROW) {
            const void *value = rows.blob(1);
            peers::count_record(&seen, rows.bytes(0), value, rows.bytes(1));
            if (seen.records == limit) break;
            code = rows.step();
        }
        const bool succeeded = code == SQLITE_ROW || code == SQLITE_DONE;
        if (!succeeded) refuse(connection_.get(), code);
        rows.reset();
        return succeeded;
    }

  private:
    bool begin_writing(const peer_record &first) {
        return owner_.make_table(first.key_bytes + first.value_bytes) && prepare();
    }

    /// Statements can be prepared only once there is a table.
    bool prepare() {
        sqlite3 *connection = connection_.get();
        is_prepared_ =
            begin_.prepare(connection, "BEGIN IMMEDIATE") &&
            commit_.prepare(connection, "COMMIT") && rollback_.prepare(connection, "ROLLBACK") &&
            put_.prepare(connection, upsert) &&
            remove_.prepare(connection, "DELETE FROM records WHERE key = ?1") &&
            get_.prepare(connection, "SELECT value FROM records WHERE key = ?1") &&
            scan_.prepare(
                connection, "SELECT key, value FROM records WHERE key >= ?1 ORDER BY key") &&
            scan_range_.prepare(
                connection,
                "SELECT key, value FROM records WHERE key >= ?1 AND key < ?2 ORDER BY key");
        return is_prepared_;
    }

    bool put_one(const peer_record &record) {
        put_.bind(1, record.key, record.key_bytes);
        put_.bind(2, record.value, record.value_bytes);
        return put_.run();
    }

    store &owner_;
    // The statements go before their connection.
    connection_pointer connection_;
    bool is_prepared_ = false;
    statement begin_, commit_, rollback_, put_, remove_, get_, scan_, scan_range_;
};

}  // namespace

extern "C" const peer_api sqlite_peer = peers::door<store>::api("sqlite", "default", nullptr);
