// What the shims share: the door that turns a store class into a table of C functions, the text of
// a thread's last failure, and what a scan sums up.
//
// An engine's shim is a class, here `Store`, with a nested class `session`; both have methods of
// the names in `peer_api`. The door only casts handles and forwards, so that all is inlined.

#ifndef TIDEMARK_BENCHMARKS_DOOR_HPP
#define TIDEMARK_BENCHMARKS_DOOR_HPP

#include <cstring>
#include <memory>
#include <string>

#include "peers.h"

namespace peers {

/// Keeps the text for `last_error` on this thread; gives false, to be returned at once.
bool failed(std::string text);
const char *last_error();

/// The first 8 bytes of a value as a little-endian number, a shorter one padded with zeros.
inline uint64_t leading_number(const void *value, size_t value_bytes) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the sum is of little-endian numbers");
    uint64_t number = 0;
    std::memcpy(&number, value, value_bytes < sizeof number ? value_bytes : sizeof number);
    return number;
}

inline void count_record(
    peer_scan *seen, size_t key_bytes, const void *value, size_t value_bytes) {
    seen->records += 1;
    seen->bytes += key_bytes + value_bytes;
    seen->checksum += leading_number(value, value_bytes);
}

/// What `read` has in common: the value is copied if the caller's buffer is large enough.
peer_result copy_value(
    const void *source, size_t source_bytes, void *value, size_t *value_bytes);

/// The smallest key greater than all that begin with the prefix; empty if there is none.
std::string end_of_prefix(const void *prefix, size_t prefix_bytes);

/// Collects "name=value, name=value".
class settings_text {
  public:
    settings_text &add(const char *name, const std::string &value);
    settings_text &add(const char *name, const char *value) {
        return add(name, std::string(value));
    }
    settings_text &add(const char *name, bool value) {
        return add(name, std::string(value ? "true" : "false"));
    }
    template <class Number>
    settings_text &add(const char *name, Number value) {
        return add(name, std::to_string(value));
    }
    void write(char *text, size_t capacity) const;

  private:
    std::string text_;
};

template <class Store>
class door {
    using session = typename Store::session;

    static Store *store_of(peer_store *handle) { return reinterpret_cast<Store *>(handle); }
    static session *session_of(peer_session *handle) {
        return reinterpret_cast<session *>(handle);
    }

    static void describe(const peer_options *options, char *text, size_t capacity) {
        settings_text settings;
        Store::describe(*options, settings);
        settings.write(text, capacity);
    }
    static peer_store *open(const char *directory, const peer_options *options) {
        auto store = std::make_unique<Store>(directory, *options);
        return store->open() ? reinterpret_cast<peer_store *>(store.release()) : nullptr;
    }
    static void close(peer_store *handle) { delete store_of(handle); }
    static peer_session *open_session(peer_store *handle) {
        auto opened = std::make_unique<session>(*store_of(handle));
        return opened->open() ? reinterpret_cast<peer_session *>(opened.release()) : nullptr;
    }
    static void close_session(peer_session *handle) { delete session_of(handle); }

    static bool put(peer_session *handle, const peer_record *record, bool ascending) {
        return session_of(handle)->put(*record, ascending);
    }
    static bool remove(peer_session *handle, const void *key, size_t key_bytes) {
        return session_of(handle)->remove(key, key_bytes);
    }
    static bool write_batch(
        peer_session *handle, const peer_record *records, size_t count, bool ascending) {
        return session_of(handle)->write_batch(records, count, ascending);
    }
    static bool remove_batch(peer_session *handle, const peer_record *records, size_t count) {
        return session_of(handle)->remove_batch(records, count);
    }
    static peer_result get(
        peer_session *handle, const void *key, size_t key_bytes, size_t *value_bytes,
        uint64_t *checksum) {
        return session_of(handle)->visit(
            key, key_bytes, [&](const void *value, size_t length) {
                *value_bytes = length;
                *checksum = leading_number(value, length);
                return PEER_FOUND;
            });
    }
    static peer_result read(
        peer_session *handle, const void *key, size_t key_bytes, void *buffer,
        size_t *value_bytes) {
        return session_of(handle)->visit(
            key, key_bytes, [&](const void *value, size_t length) {
                return copy_value(value, length, buffer, value_bytes);
            });
    }
    static bool scan(
        peer_session *handle, const void *from, size_t from_bytes, size_t prefix_bytes,
        size_t limit, peer_scan *seen) {
        *seen = peer_scan{0, 0, 0};
        if (from == nullptr) {
            from_bytes = 0;
            prefix_bytes = 0;
        }
        if (prefix_bytes > from_bytes) return failed("the prefix is longer than the key");
        if (limit == 0) return true;
        return session_of(handle)->scan(from, from_bytes, prefix_bytes, limit, *seen);
    }

    static bool settle(peer_store *handle) { return store_of(handle)->settle(); }
    static bool compact(peer_store *handle) { return store_of(handle)->compact(); }

  public:
    static constexpr peer_api api(
        const char *engine, const char *first_config, const char *second_config) {
        return peer_api{
            engine, {first_config, second_config}, Store::version, describe, last_error,
            open,   close,  open_session, close_session, put,  remove, write_batch, remove_batch,
            get,    read,   scan,         settle,        compact,
        };
    }
};

}  // namespace peers

#endif
