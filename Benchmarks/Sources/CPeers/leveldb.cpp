// LevelDB: bloom filters, a block cache, snappy or no compression. Group commit is the library's
// own queue of writers.

#include <condition_variable>
#include <mutex>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

#include "door.hpp"

namespace {

using leveldb::Slice;
using peers::failed;

/// The default. At a million records of 100 bytes 64 MiB filled 4 % faster, and gets after that took
/// 1.6 times the processor time.
constexpr size_t write_buffer_bytes = size_t{4} << 20;
constexpr size_t file_bytes_max = size_t{2} << 20;
constexpr int filter_bits_per_key = 10;
constexpr int open_files_max = 10000;

bool check(const leveldb::Status &status) {
    return status.ok() ? true : failed("leveldb: " + status.ToString());
}

bool uses_snappy(const peer_options &options) { return options.config == 0; }

/// The library says nowhere whether it is compacting. It schedules each step through its
/// environment, and a step that leaves work behind schedules the next before it ends: so it is at
/// rest exactly when no scheduled step is unfinished.
class counting_environment : public leveldb::EnvWrapper {
  public:
    counting_environment() : leveldb::EnvWrapper(leveldb::Env::Default()) {}

    void Schedule(void (*function)(void *), void *argument) override {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            unfinished_ += 1;
        }
        leveldb::EnvWrapper::Schedule(run, new step{this, function, argument});
    }

    void wait_for_rest() {
        std::unique_lock<std::mutex> guard(lock_);
        at_rest_.wait(guard, [this] { return unfinished_ == 0; });
    }

  private:
    struct step {
        counting_environment *environment;
        void (*function)(void *);
        void *argument;
    };

    static void run(void *argument) {
        const std::unique_ptr<step> scheduled(static_cast<step *>(argument));
        scheduled->function(scheduled->argument);
        counting_environment *environment = scheduled->environment;
        const std::lock_guard<std::mutex> guard(environment->lock_);
        environment->unfinished_ -= 1;
        if (environment->unfinished_ == 0) environment->at_rest_.notify_all();
    }

    std::mutex lock_;
    std::condition_variable at_rest_;
    size_t unfinished_ = 0;
};

class store {
  public:
    class session;

    store(const char *directory, const peer_options &options)
        : directory_(directory),
          options_(options),
          cache_(leveldb::NewLRUCache(options.cache_bytes)),
          filter_(leveldb::NewBloomFilterPolicy(filter_bits_per_key)) {}

    /// The database goes first, and its last step in the background may still be on its way out.
    ~store() {
        database_.reset();
        environment_.wait_for_rest();
    }

    static const char *version() {
        static const std::string text = std::to_string(leveldb::kMajorVersion) + "." +
                                        std::to_string(leveldb::kMinorVersion);
        return text.c_str();
    }

    static void describe(const peer_options &options, peers::settings_text &settings) {
        settings.add("compression", uses_snappy(options) ? "snappy" : "none")
            .add("filter_policy", "bloom:10")
            .add("block_cache_bytes", options.cache_bytes)
            .add("block_size", leveldb::Options().block_size)
            .add("write_buffer_size", write_buffer_bytes)
            .add("max_file_size", file_bytes_max)
            .add("max_open_files", open_files_max)
            .add("WriteOptions.sync", options.durability == PEER_SURVIVES_POWER_LOSS);
    }

    bool open() {
        leveldb::Options made;
        made.create_if_missing = true;
        made.env = &environment_;
        made.compression =
            uses_snappy(options_) ? leveldb::kSnappyCompression : leveldb::kNoCompression;
        made.block_cache = cache_.get();
        made.filter_policy = filter_.get();
        made.write_buffer_size = write_buffer_bytes;
        made.max_file_size = file_bytes_max;
        made.max_open_files = open_files_max;
        leveldb::DB *opened = nullptr;
        if (!check(leveldb::DB::Open(made, directory_, &opened))) return false;
        database_.reset(opened);
        return true;
    }

    bool settle() {
        environment_.wait_for_rest();
        return true;
    }

    bool compact() {
        database_->CompactRange(nullptr, nullptr);
        return settle();
    }

  private:
    std::string directory_;
    peer_options options_;
    counting_environment environment_;
    std::unique_ptr<leveldb::Cache> cache_;
    std::unique_ptr<const leveldb::FilterPolicy> filter_;
    std::unique_ptr<leveldb::DB> database_;
};

class store::session {
  public:
    explicit session(store &owner) : database_(owner.database_.get()) {
        writing_.sync = owner.options_.durability == PEER_SURVIVES_POWER_LOSS;
    }

    bool open() { return true; }

    bool put(const peer_record &record, bool) {
        return check(database_->Put(writing_, key_of(record), value_of(record)));
    }

    bool remove(const void *key, size_t key_bytes) {
        return check(database_->Delete(writing_, slice(key, key_bytes)));
    }

    bool write_batch(const peer_record *records, size_t count, bool) {
        batch_.Clear();
        for (size_t index = 0; index < count; index += 1) {
            batch_.Put(key_of(records[index]), value_of(records[index]));
        }
        return check(database_->Write(writing_, &batch_));
    }

    bool remove_batch(const peer_record *records, size_t count) {
        batch_.Clear();
        for (size_t index = 0; index < count; index += 1) batch_.Delete(key_of(records[index]));
        return check(database_->Write(writing_, &batch_));
    }

    /// The library can only copy a value out; the string is kept, so that it allocates nothing.
    template <class Body>
    peer_result visit(const void *key, size_t key_bytes, Body body) {
        const leveldb::Status status = database_->Get(reading_, slice(key, key_bytes), &value_);
        if (status.IsNotFound()) return PEER_MISSING;
        if (!check(status)) return PEER_FAILED;
        return body(value_.data(), value_.size());
    }

    bool scan(
        const void *from, size_t from_bytes, size_t prefix_bytes, size_t limit, peer_scan &seen) {
        const Slice prefix = prefix_bytes == 0 ? Slice() : slice(from, prefix_bytes);
        const std::unique_ptr<leveldb::Iterator> iterator(database_->NewIterator(reading_));
        if (from == nullptr) {
            iterator->SeekToFirst();
        } else {
            iterator->Seek(slice(from, from_bytes));
        }
        while (iterator->Valid()) {
            const Slice key = iterator->key();
            if (!key.starts_with(prefix)) break;
            const Slice value = iterator->value();
            peers::count_record(&seen, key.size(), value.data(), value.size());
            if (seen.records == limit) break;
            iterator->Next();
        }
        return check(iterator->status());
    }

  private:
    static Slice slice(const void *bytes, size_t count) {
        return Slice(static_cast<const char *>(bytes), count);
    }
    static Slice key_of(const peer_record &record) {
        return slice(record.key, record.key_bytes);
    }
    static Slice value_of(const peer_record &record) {
        return slice(record.value, record.value_bytes);
    }

    leveldb::DB *database_;
    leveldb::WriteOptions writing_;
    leveldb::ReadOptions reading_;
    leveldb::WriteBatch batch_;
    std::string value_;
};

}  // namespace

extern "C" const peer_api leveldb_peer = peers::door<store>::api("leveldb", "snappy", "none");
