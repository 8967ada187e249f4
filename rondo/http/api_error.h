// An error sent to the client as a status and {"error": {"message", "type", "param", "code"}}, the
// format that OpenAI's clients turn into typed exceptions.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "rondo/http/exchange.h"

namespace rondo::http {

class ApiError : public std::exception {
 public:
  // `param`: the invalid field of the request; may be empty.
  ApiError(int status, std::string message, std::string param = {});

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const char* what() const noexcept override { return message_.c_str(); }
  // A copy that asks the client to retry after this many seconds.
  ApiError retry_after(int seconds) const;

  std::string json() const;
  Response response() const;

 private:
  int status_;
  std::string message_;
  std::string param_;
  int retry_after_ = 0;
};

const char* status_text(int status);

// `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace rondo::http
