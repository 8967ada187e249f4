// From token bytes to the text sent to a client: complete UTF-8 characters only, invalid bytes as
// U+FFFD, ending before a stop string. The concatenated output does not depend on how the bytes
// were split.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::http {

// Holds back the beginning of a character until it is complete.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // U+FFFD for a character that was never completed
  const std::string& held() const { return held_; }

 private:
  std::string held_;  // at most 3 bytes
};

class TextOutput {
 public:
  explicit TextOutput(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  // The text that can be sent after these bytes. Text that may become a stop string is held back.
  std::string push(std::string_view bytes);
  std::string finish();
  // A stop string was found: the text ends before it.
  bool stopped() const { return stopped_; }

 private:
  std::string release(std::string text);

  Utf8Stream characters_;
  std::vector<std::string> stop_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace rondo::http
