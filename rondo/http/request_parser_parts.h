// Parses the request header and passes the body on: Boost.Beast's HTTP/1.1 parser, fed manually so
// that every byte is counted as it arrives.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "rondo/http/exchange.h"

namespace rondo::http {

class RequestParser : public boost::beast::http::basic_parser</*isRequest=*/true> {
 public:
  using ErrorCode = boost::beast::error_code;
  using Text = boost::beast::string_view;
  using TakeBody = std::function<void(std::string_view)>;

  RequestParser(int64_t most_fields, TakeBody take_body);

  Request request;
  int version = 11;
  // A field occurs twice that must not, since parsers disagree about which one counts.
  bool repeated_field = false;

 private:
  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version,
                       ErrorCode& ec) override;
  void on_response_impl(int code, Text reason, int version, ErrorCode& ec) override;
  void on_field_impl(boost::beast::http::field name, Text text, Text value, ErrorCode& ec) override;
  void on_header_impl(ErrorCode& ec) override { ec = {}; }
  void on_body_init_impl(boost::optional<uint64_t> const& length, ErrorCode& ec) override;
  size_t on_body_impl(Text body, ErrorCode& ec) override;
  void on_chunk_header_impl(uint64_t size, Text extensions, ErrorCode& ec) override;
  size_t on_chunk_body_impl(uint64_t left, Text body, ErrorCode& ec) override;
  void on_finish_impl(ErrorCode& ec) override { ec = {}; }

  int64_t most_fields_;
  int64_t fields_ = 0;
  TakeBody take_body_;
};

}  // namespace rondo::http
