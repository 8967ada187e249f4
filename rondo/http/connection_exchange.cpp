// Responses, passed from any thread to the connection's own.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "rondo/http/connection_parts.h"

namespace rondo::http {

ConnectionExchange::ConnectionExchange(std::weak_ptr<Connection> connection, Handler& handler)
    : connection_(std::move(connection)), handler_(handler) {}

std::string ConnectionExchange::head(int status, const std::string& content_type) const {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: rondo\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n",
      status, status_text(status));
  if (!content_type.empty()) text += fmt::format("Content-Type: {}\r\n", content_type);
  if (close_) text += "Connection: close\r\n";
  return text;
}

void ConnectionExchange::reply(Response response) {
  std::string text = head(response.status, response.content_type);
  for (const auto& [name, value] : response.fields) text += fmt::format("{}: {}\r\n", name, value);
  if (response.status != 204) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  text += "\r\n";
  if (!head_only_) text += response.body;
  handler_.answered(response.status);
  push(text, /*last=*/true);
}

void ConnectionExchange::begin_stream(const std::string& content_type) {
  if (old_) close_ = true;  // ends with the connection
  std::string text = head(200, content_type);
  if (!old_) text += "Transfer-Encoding: chunked\r\n";
  handler_.answered(200);
  streaming_ = true;
  push(text + "\r\n", /*last=*/false);
}

void ConnectionExchange::send(std::string_view data) {
  if (data.empty()) return;
  push(old_ ? std::string(data) : fmt::format("{:x}\r\n{}\r\n", data.size(), data), false);
}

void ConnectionExchange::end() { push(old_ ? "" : "0\r\n\r\n", /*last=*/true); }

void ConnectionExchange::push(std::string_view bytes, bool last) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gone_ || last_) return;
    pending_ += bytes;
    unsent_ += static_cast<int64_t>(bytes.size());
    last_ = last;
    if (!fetched_) return;  // the pending fetch will include this
    fetched_ = false;
  }
  if (const auto connection = connection_.lock()) {
    boost::asio::post(connection->socket_.get_executor(),
                      [connection, self = shared_from_this()] { connection->fetch(self); });
  }
}

}  // namespace rondo::http
