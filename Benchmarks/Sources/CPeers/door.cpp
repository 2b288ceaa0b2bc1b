#include "door.hpp"

#include <algorithm>
#include <utility>

namespace peers {

namespace {
thread_local std::string last_failure;
}

bool failed(std::string text) {
    last_failure = std::move(text);
    return false;
}

const char *last_error() { return last_failure.c_str(); }

peer_result copy_value(
    const void *source, size_t source_bytes, void *value, size_t *value_bytes) {
    if (source_bytes > *value_bytes) {
        failed("the value has " + std::to_string(source_bytes) + " bytes; the buffer is smaller");
        return PEER_FAILED;
    }
    std::memcpy(value, source, source_bytes);
    *value_bytes = source_bytes;
    return PEER_FOUND;
}

std::string end_of_prefix(const void *prefix, size_t prefix_bytes) {
    if (prefix_bytes == 0) return std::string();
    std::string end(static_cast<const char *>(prefix), prefix_bytes);
    while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
    if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
    return end;
}

settings_text &settings_text::add(const char *name, const std::string &value) {
    if (!text_.empty()) text_ += ", ";
    text_ += name;
    text_ += '=';
    text_ += value;
    return *this;
}

void settings_text::write(char *text, size_t capacity) const {
    if (capacity == 0) return;
    size_t length = std::min(text_.size(), capacity - 1);
    std::memcpy(text, text_.data(), length);
    text[length] = '\0';
}

}  // namespace peers
