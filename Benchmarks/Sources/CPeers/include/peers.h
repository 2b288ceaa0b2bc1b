// The peers behind one door: each engine is a table of functions over opaque handles, so that the
// driver calls them all alike and pays one indirect C call an operation, and nothing else.

#ifndef TIDEMARK_BENCHMARKS_PEERS_H
#define TIDEMARK_BENCHMARKS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// An open database.
typedef struct peer_store peer_store;
/// What one thread needs to use it: connections, statements, read transactions, iterators.
typedef struct peer_session peer_session;

/// What an acknowledged write survives; set at opening, for all writes.
typedef enum peer_durability {
    /// kill -9: the write has reached the operating system.
    PEER_SURVIVES_KILL = 0,
    /// The loss of power: the write was synced.
    PEER_SURVIVES_POWER_LOSS = 1,
} peer_durability;

typedef struct peer_options {
    peer_durability durability;
    /// Which of the engine's two makes: 0 or 1, in the order of `peer_api.configs`.
    int config;
    /// The cache of blocks, for engines that have one of their own.
    size_t cache_bytes;
    /// An upper bound of the bytes that keys and values will ever take (LMDB's map).
    size_t capacity_bytes;
} peer_options;

/// A key and a value that lie in the driver's memory during a call.
typedef struct peer_record {
    const void *key;
    size_t key_bytes;
    const void *value;
    size_t value_bytes;
} peer_record;

/// What a scan has seen, so that no engine can leave the reading out.
typedef struct peer_scan {
    size_t records;
    /// Bytes of keys and values.
    size_t bytes;
    /// Sum over the records of the first 8 bytes of the value as a little-endian number; a shorter
    /// value counts as padded with zeros.
    uint64_t checksum;
} peer_scan;

typedef enum peer_result {
    PEER_MISSING = 0,
    PEER_FOUND = 1,
    PEER_FAILED = -1,
} peer_result;

/// One engine. Functions that return `bool` give false on failure; `last_error` then has the text
/// of the calling thread's last failure. All functions but `open` and `close` may be called from
/// several threads at once, each with a session of its own.
typedef struct peer_api {
    /// "rocksdb", "leveldb", "lmdb", "sqlite".
    const char *engine;
    /// The names of its makes, e.g. {"lz4", "none"} or {"default", "writemap"}; the second may be
    /// NULL.
    const char *configs[2];
    /// The version of the library in use.
    const char *(*version)(void);
    /// Writes all settings that differ from the library's defaults, and the ones a reader would
    /// ask for, as "name=value, name=value"; always terminated.
    void (*describe)(const peer_options *options, char *text, size_t capacity);
    const char *(*last_error)(void);

    /// Opens a database in an existing directory, or makes one there.
    peer_store *(*open)(const char *directory, const peer_options *options);
    void (*close)(peer_store *);
    peer_session *(*open_session)(peer_store *);
    void (*close_session)(peer_session *);

    /// One durable write, acknowledged when it returns. `ascending` promises that the key is
    /// greater than every key in the database.
    bool (*put)(peer_session *, const peer_record *, bool ascending);
    bool (*remove)(peer_session *, const void *key, size_t key_bytes);
    /// One atomic batch; with `ascending`, the keys ascend and are all greater than any other.
    bool (*write_batch)(peer_session *, const peer_record *, size_t count, bool ascending);
    /// Removes the records of these keys as one atomic batch; missing ones and values are passed
    /// over.
    bool (*remove_batch)(peer_session *, const peer_record *, size_t count);

    /// Reads the latest committed value where it lies or as cheaply as the engine allows; gives
    /// its length and the first 8 bytes as in `peer_scan.checksum`.
    peer_result (*get)(
        peer_session *, const void *key, size_t key_bytes, size_t *value_bytes,
        uint64_t *checksum);
    /// Copies the latest committed value to the caller's buffer; `value_bytes` is its capacity,
    /// then its length.
    peer_result (*read)(
        peer_session *, const void *key, size_t key_bytes, void *value, size_t *value_bytes);
    /// Reads forward from the first key not less than `from` (the first of all if `from` is NULL),
    /// at most `limit` records, only while keys begin with the first `prefix_bytes` of `from`.
    /// Sees the latest committed state as of the call; making the iterator is part of it.
    bool (*scan)(
        peer_session *, const void *from, size_t from_bytes, size_t prefix_bytes, size_t limit,
        peer_scan *);

    /// Waits until nothing goes on in the background.
    bool (*settle)(peer_store *);
    /// The engine's own way to the smallest and fastest state of all its data: a full manual
    /// compaction, VACUUM, a compacting copy that takes the place of the original. No session is
    /// open meanwhile.
    bool (*compact)(peer_store *);
} peer_api;

extern const peer_api rocksdb_peer;
extern const peer_api leveldb_peer;
extern const peer_api lmdb_peer;
extern const peer_api sqlite_peer;

/// The peers by number, from 0; NULL after the last.
static inline const peer_api *peer_at(int place) {
    switch (place) {
    case 0: return &rocksdb_peer;
    case 1: return &leveldb_peer;
    case 2: return &lmdb_peer;
    case 3: return &sqlite_peer;
    default: return NULL;
    }
}

#ifdef __cplusplus
}
#endif
#endif
