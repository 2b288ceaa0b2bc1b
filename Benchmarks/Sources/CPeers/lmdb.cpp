// LMDB, plain and with a writable map. Its lock lets one writer in at a time; readers wait for
// nobody.

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include <lmdb.h>

#include "door.hpp"

namespace {

using peers::failed;

constexpr unsigned readers_max = 256;
/// The manual advises it for data larger than memory; with warm data it made no difference, and
/// neither did MDB_NOMEMINIT, which is left off.
constexpr unsigned extra_flags = MDB_NORDAHEAD;
constexpr mdb_mode_t file_mode = 0644;

bool check(int code) {
    return code == MDB_SUCCESS ? true : failed(std::string("lmdb: ") + mdb_strerror(code));
}

bool check_system(bool succeeded, const char *what) {
    return succeeded ? true : failed(std::string("lmdb: ") + what + ": " + std::strerror(errno));
}

bool writes_to_map(const peer_options &options) { return options.config == 1; }

/// One file in the given directory rather than a directory; read transactions belong to sessions
/// rather than to threads. Without syncs, pages reach the operating system at each commit all the
/// same, by pwrite or in the shared map, so that a commit survives kill -9.
unsigned flags_for(const peer_options &options) {
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | extra_flags;
    if (writes_to_map(options)) flags |= MDB_WRITEMAP;
    if (options.durability == PEER_SURVIVES_KILL) flags |= MDB_NOSYNC;
    return flags;
}

/// Sparse, so that only the room in use costs anything; records, half-empty pages, and what
/// freed pages await their readers fit in.
size_t map_bytes_for(const peer_options &options) {
    return options.capacity_bytes * 3 + (size_t{1} << 30);
}

MDB_val value_of(const void *bytes, size_t count) {
    return MDB_val{count, const_cast<void *>(bytes)};
}

class store {
  public:
    class session;

    store(const char *directory, const peer_options &options)
        : directory_(directory), path_(directory_ + "/data.mdb"), options_(options) {}
    ~store() { close(); }

    static const char *version() {
        static const std::string text = [] {
            int major = 0, minor = 0, patch = 0;
            mdb_version(&major, &minor, &patch);
            return std::to_string(major) + "." + std::to_string(minor) + "." +
                   std::to_string(patch);
        }();
        return text.c_str();
    }

    static void describe(const peer_options &options, peers::settings_text &settings) {
        const unsigned flags = flags_for(options);
        settings.add("MDB_WRITEMAP", (flags & MDB_WRITEMAP) != 0)
            .add("MDB_NOSYNC", (flags & MDB_NOSYNC) != 0)
            .add("MDB_NORDAHEAD", (flags & MDB_NORDAHEAD) != 0)
            .add("MDB_NOMEMINIT", (flags & MDB_NOMEMINIT) != 0)
            .add("MDB_NOTLS", true)
            .add("MDB_APPEND", "ascending keys")
            .add("map_size", map_bytes_for(options))
            .add("read_transaction", "renewed for each read");
    }

    bool open() {
        if (!check(mdb_env_create(&environment_))) return false;
        if (!check(mdb_env_set_mapsize(environment_, map_bytes_for(options_)))) return false;
        if (!check(mdb_env_set_maxreaders(environment_, readers_max))) return false;
        if (!check(mdb_env_open(environment_, path_.c_str(), flags_for(options_), file_mode))) {
            return false;
        }
        MDB_txn *transaction = nullptr;
        if (!check(mdb_txn_begin(environment_, nullptr, 0, &transaction))) return false;
        if (!check(mdb_dbi_open(transaction, nullptr, 0, &records_))) {
            mdb_txn_abort(transaction);
            return false;
        }
        return check(mdb_txn_commit(transaction));
    }

    /// The library has no threads of its own.
    bool settle() { return true; }

    bool compact() {
        const std::string copy = path_ + ".compact";
        // To a descriptor of our own: by name the library opens the copy with O_DIRECT, which takes
        // several times as long and promises nothing that the row asks for.
        const int descriptor =
            ::open(copy.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, file_mode);
        if (!check_system(descriptor >= 0, "open")) return false;
        const bool copied = check(mdb_env_copyfd2(environment_, descriptor, MDB_CP_COMPACT));
        ::close(descriptor);
        if (!copied) return false;
        close();
        const bool synced = options_.durability == PEER_SURVIVES_POWER_LOSS;
        if (synced && !sync(copy)) return false;
        if (!check_system(std::rename(copy.c_str(), path_.c_str()) == 0, "rename")) return false;
        if (synced && !sync(directory_)) return false;
        return open();
    }

  private:
    void close() {
        if (environment_ != nullptr) mdb_env_close(environment_);
        environment_ = nullptr;
    }

    static bool sync(const std::string &path) {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (!check_system(descriptor >= 0, "open")) return false;
        const bool synced = check_system(fsync(descriptor) == 0, "fsync");
        ::close(descriptor);
        return synced;
    }

    std::string directory_;
    std::string path_;
    peer_options options_;
    MDB_env *environment_ = nullptr;
    MDB_dbi records_ = 0;
};

class store::session {
  public:
    explicit session(store &owner) : environment_(owner.environment_), records_(owner.records_) {}

    ~session() {
        if (cursor_ != nullptr) mdb_cursor_close(cursor_);
        if (snapshot_ != nullptr) mdb_txn_abort(snapshot_);
    }

    bool open() {
        if (!check(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &snapshot_))) return false;
        if (!check(mdb_cursor_open(snapshot_, records_, &cursor_))) return false;
        mdb_txn_reset(snapshot_);
        return true;
    }

    bool put(const peer_record &record, bool ascending) {
        return write_batch(&record, 1, ascending);
    }

    bool write_batch(const peer_record *records, size_t count, bool ascending) {
        MDB_txn *transaction = nullptr;
        if (!check(mdb_txn_begin(environment_, nullptr, 0, &transaction))) return false;
        const unsigned flags = ascending ? MDB_APPEND : 0;
        for (size_t index = 0; index < count; index += 1) {
            const peer_record &record = records[index];
            MDB_val key = value_of(record.key, record.key_bytes);
            MDB_val value = value_of(record.value, record.value_bytes);
            if (!check(mdb_put(transaction, records_, &key, &value, flags))) {
                mdb_txn_abort(transaction);
                return false;
            }
        }
        return check(mdb_txn_commit(transaction));
    }

    bool remove(const void *bytes, size_t key_bytes) {
        MDB_txn *transaction = nullptr;
        if (!check(mdb_txn_begin(environment_, nullptr, 0, &transaction))) return false;
        MDB_val key = value_of(bytes, key_bytes);
        const int code = mdb_del(transaction, records_, &key, nullptr);
        if (code != MDB_SUCCESS) {
            mdb_txn_abort(transaction);
            return code == MDB_NOTFOUND ? true : check(code);
        }
        return check(mdb_txn_commit(transaction));
    }

    bool remove_batch(const peer_record *records, size_t count) {
        MDB_txn *transaction = nullptr;
        if (!check(mdb_txn_begin(environment_, nullptr, 0, &transaction))) return false;
        for (size_t index = 0; index < count; index += 1) {
            MDB_val key = value_of(records[index].key, records[index].key_bytes);
            const int code = mdb_del(transaction, records_, &key, nullptr);
            if (code == MDB_SUCCESS || code == MDB_NOTFOUND) continue;
            mdb_txn_abort(transaction);
            return check(code);
        }
        return check(mdb_txn_commit(transaction));
    }

    /// Renewed for each read, so that it sees what was committed last, and reset after it, so that
    /// no idle session keeps old pages from being used again; both together cost less of a get than
    /// could be told from noise.
    template <class Body>
    peer_result visit(const void *bytes, size_t key_bytes, Body body) {
        if (!check(mdb_txn_renew(snapshot_))) return PEER_FAILED;
        MDB_val key = value_of(bytes, key_bytes);
        MDB_val value;
        const int code = mdb_get(snapshot_, records_, &key, &value);
        peer_result result = PEER_MISSING;
        if (code == MDB_SUCCESS) {
            result = body(value.mv_data, value.mv_size);
        } else if (code != MDB_NOTFOUND) {
            check(code);
            result = PEER_FAILED;
        }
        mdb_txn_reset(snapshot_);
        return result;
    }

    bool scan(
        const void *from, size_t from_bytes, size_t prefix_bytes, size_t limit, peer_scan &seen) {
        if (!check(mdb_txn_renew(snapshot_))) return false;
        int code = mdb_cursor_renew(snapshot_, cursor_);
        MDB_val key = value_of(from, from_bytes);
        MDB_val value;
        if (code == MDB_SUCCESS) {
            code = mdb_cursor_get(
                cursor_, &key, &value, from_bytes == 0 ? MDB_FIRST : MDB_SET_RANGE);
        }
        while (code == MDB_SUCCESS) {
            if (prefix_bytes > 0 &&
                (key.mv_size < prefix_bytes || std::memcmp(key.mv_data, from, prefix_bytes) != 0)) {
                break;
            }
            peers::count_record(&seen, key.mv_size, value.mv_data, value.mv_size);
            if (seen.records == limit) break;
            code = mdb_cursor_get(cursor_, &key, &value, MDB_NEXT);
        }
        mdb_txn_reset(snapshot_);
        return code == MDB_NOTFOUND ? true : check(code);
    }

  private:
    MDB_env *environment_;
    MDB_dbi records_;
    MDB_txn *snapshot_ = nullptr;
    MDB_cursor *cursor_ = nullptr;
};

}  // namespace

extern "C" const peer_api lmdb_peer = peers::door<store>::api("lmdb", "default", "writemap");
