// Beast's parser, collecting the fields we need.
#include <algorithm>

#include "rondo/http/request_parser_parts.h"

namespace rondo::http {

RequestParser::RequestParser(int64_t most_fields, TakeBody take_body)
    : most_fields_(most_fields), take_body_(std::move(take_body)) {
  body_limit(UINT64_MAX);  // enforced by the connection, which knows the route
}

void RequestParser::on_request_impl(boost::beast::http::verb, Text method, Text target,
                                    int its_version, ErrorCode& ec) {
  ec = {};
  request.method = std::string(method.data(), method.size());
  request.target = std::string(target.data(), target.size());
  version = its_version;
}

void RequestParser::on_response_impl(int, Text, int, ErrorCode& ec) {
  ec = boost::beast::http::error::bad_method;
}

void RequestParser::on_field_impl(boost::beast::http::field, Text text, Text value, ErrorCode& ec) {
  ec = {};
  if (++fields_ > most_fields_) {
    ec = boost::beast::http::error::header_limit;
    return;
  }
  std::string name = std::string(text.data(), text.size());
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const bool once = name == "host" || name == "content-length" || name == "transfer-encoding" ||
                    name == "authorization" || name == "content-type";
  if (once && request.fields.count(name) != 0) repeated_field = true;
  request.fields[std::move(name)] = std::string(value.data(), value.size());
}

void RequestParser::on_body_init_impl(boost::optional<uint64_t> const&, ErrorCode& ec) { ec = {}; }

size_t RequestParser::on_body_impl(Text body, ErrorCode& ec) {
  ec = {};
  take_body_({body.data(), body.size()});
  return body.size();
}

void RequestParser::on_chunk_header_impl(uint64_t, Text, ErrorCode& ec) { ec = {}; }

size_t RequestParser::on_chunk_body_impl(uint64_t, Text body, ErrorCode& ec) {
  return on_body_impl(body, ec);
}

}  // namespace rondo::http
