// API errors as JSON.
#include "rondo/http/api_error.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rondo::http {
namespace {

// OpenAI's name for each kind of error.
const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* refusal_code(int status) {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 404:
      return "not_found";
    case 413:
      return "too_large";
    case 429:
      return "queue_full";
    case 503:
      return "unavailable";
    default:
      return nullptr;
  }
}

}  // namespace

const std::string& Request::field(const std::string& name) const {
  static const std::string none;
  const auto found = fields.find(name);
  return found == fields.end() ? none : found->second;
}

ApiError::ApiError(int status, std::string message, std::string param)
    : status_(status), message_(std::move(message)), param_(std::move(param)) {}

ApiError ApiError::retry_after(int seconds) const {
  ApiError copy = *this;
  copy.retry_after_ = seconds;
  return copy;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ApiError::json() const {
  const char* code = refusal_code(status_);
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     json_string(message_), error_type(status_),
                     param_.empty() ? "null" : json_string(param_),
                     code == nullptr ? "null" : json_string(code));
}

Response ApiError::response() const {
  Response response;
  response.status = status_;
  response.body = json();
  if (retry_after_ > 0) response.fields.emplace_back("Retry-After", std::to_string(retry_after_));
  if (status_ == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

const char* status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace rondo::http
