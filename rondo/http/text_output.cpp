// Incremental UTF-8 and stop strings.
#include "rondo/http/text_output.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rondo::http {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// How much of `bytes` (not empty) is one character or a malformed start of one.
struct Character {
  size_t bytes = 0;  // 0: too few bytes to tell
  bool valid = false;
};

Character first_character(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  // The second byte's range excludes overlong forms, surrogates and codes beyond U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {0, false};
    const bool fits = i == 1 ? byte(1) >= low && byte(1) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Character c = first_character(rest);
    if (c.bytes == 0) break;
    out += c.valid ? rest.substr(0, c.bytes) : std::string_view(kReplacement);
    rest.remove_prefix(c.bytes);
  }
  held_ = std::string(rest);
  return out;
}

std::string Utf8Stream::finish() {
  if (held_.empty()) return {};
  held_.clear();
  return kReplacement;
}

std::string TextOutput::push(std::string_view bytes) { return release(characters_.push(bytes)); }

std::string TextOutput::release(std::string text) {
  if (stopped_) return {};
  if (stop_.empty()) return text;
  held_ += text;
  size_t cut = std::string::npos;
  for (const std::string& stop : stop_) cut = std::min(cut, held_.find(stop));
  if (cut != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, cut);
  }
  // Hold back the longest suffix that is a prefix of a stop string.
  size_t keep = 0;
  for (const std::string& stop : stop_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string TextOutput::finish() {
  std::string text = release(characters_.finish());
  if (!stopped_) text += held_;
  held_.clear();
  return text;
}

}  // namespace rondo::http
