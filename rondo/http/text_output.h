// From the bytes of tokens to the text that a client gets: whole UTF-8 characters only, what can
// never become one as U+FFFD, and an end where a stop string begins. The pieces together do not
// depend on how the bytes were cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::http {

// Holds the beginning of a character back until it is whole.
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

  // What may be sent after these bytes. A text that may yet turn out to be a stop string is held.
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
