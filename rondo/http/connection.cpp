// Reading requests.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "rondo/base/log.h"
#include "rondo/http/connection_parts.h"
#include "rondo/http/target.h"

namespace rondo::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = 8 << 10;

}  // namespace

Connection::Connection(Socket socket, Handler& handler, const Limits& limits,
                       std::function<void()> leave)
    : socket_(std::move(socket)),
      handler_(handler),
      limits_(limits),
      leave_(std::move(leave)),
      timer_(socket_.get_executor()) {}

Connection::~Connection() {
  close();
  leave_();
}

void Connection::start() {
  self_ = shared_from_this();
  asio::post(socket_.get_executor(),
             [self = shared_from_this()] { self->next_request(self->limits_.header_seconds); });
}

void Connection::retire() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->retired_ = true;
    if (self->phase_ == Phase::idle) return self->close();
    if (self->exchange_ != nullptr) self->exchange_->close_ = true;
  });
}

void Connection::next_request(double seconds) {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::idle;
  exchange_ = nullptr;
  plan_ = {};
  body_ = {};
  header_bytes_ = body_bytes_ = 0;
  last_fetched_ = paused_ = false;
  parser_ = std::make_unique<RequestParser>(limits_.header_fields,
                                            [this](std::string_view data) { take_body(data); });
  parser_->header_limit(static_cast<uint32_t>(limits_.header_bytes));
  if (input_.size() == 0) {
    input_.shrink_to_fit();  // an idle connection uses almost no memory
    output_ = writing_ = {};
  }
  set_deadline(seconds);
  parse();
}

void Connection::read() {
  if (reading_ || paused_ || input_ended_ || phase_ == Phase::closed) return;
  // While a request is processed, only a little of what the client sends ahead is buffered.
  if (phase_ == Phase::handling && input_.size() >= kReadBytes) return;
  reading_ = true;
  arriving_.resize(kReadBytes);
  socket_.async_read_some(
      asio::buffer(arriving_),
      [self = shared_from_this()](error_code ec, size_t bytes) { self->on_read(ec, bytes); });
}

void Connection::on_read(error_code ec, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::closed) return;
  if (ec) return on_input_end();
  asio::buffer_copy(input_.prepare(bytes), asio::buffer(arriving_, bytes));
  input_.commit(bytes);
  if (phase_ == Phase::lingering) {
    lingered_ += static_cast<int64_t>(bytes);
    input_.consume(input_.size());
    return lingered_ > kLingerBytes ? close() : read();
  }
  if (phase_ == Phase::handling) return read();
  if (phase_ == Phase::body) set_deadline(limits_.body_idle_seconds);
  parse();
}

// A client that closes during processing no longer wants the response. One that only shuts down its
// sending side gets what is ready.
void Connection::on_input_end() {
  input_ended_ = true;
  const bool answer_is_ready = phase_ == Phase::handling && last_fetched_;
  if (!answer_is_ready) close();
}

void Connection::parse() {
  try {
    while (phase_ == Phase::idle || phase_ == Phase::header || phase_ == Phase::body) {
      if (paused_) return;
      if (!parse_some()) break;
    }
  } catch (const ApiError& error) {
    return refuse(error);
  } catch (const std::exception& error) {
    log_error("request: {}", error.what());
    return refuse(ApiError(500, "the server could not handle the request"));
  }
  read();
}

// One parser step; false: more input is needed.
bool Connection::parse_some() {
  const bool in_header = phase_ != Phase::body;
  if (!parser_->is_done()) {
    if (input_.size() == 0) return false;
    if (phase_ == Phase::idle) {
      phase_ = Phase::header;
      request_began_ = Clock::now();
      set_deadline(limits_.header_seconds);
    }
    error_code ec;
    const size_t used = parser_->put(input_.data(), ec);
    input_.consume(used);
    header_bytes_ += in_header ? static_cast<int64_t>(used) : 0;
    const int64_t waiting = static_cast<int64_t>(input_.size());
    if (in_header && !parser_->is_header_done() && header_bytes_ + waiting > limits_.header_bytes) {
      ec = boost::beast::http::error::header_limit;
    }
    if (ec == boost::beast::http::error::need_more) {
      if (!in_header && waiting > limits_.header_bytes) {
        throw ApiError(400, "a chunk header or trailer is too long");
      }
      return false;
    }
    if (ec) {
      refuse_parse(ec);
      return false;
    }
  }
  if (in_header && parser_->is_header_done()) on_header();
  if (phase_ == Phase::body && parser_->is_done()) on_request();
  return true;
}

void Connection::refuse_parse(error_code ec) {
  using boost::beast::http::error;
  if (ec == error::header_limit) {
    throw ApiError(431,
                   fmt::format("the request line and header fields exceed {} bytes or {} fields",
                               limits_.header_bytes, limits_.header_fields));
  }
  if (ec == error::bad_version) throw ApiError(505, "expected HTTP/1.0 or HTTP/1.1");
  throw ApiError(400, "the request is not valid HTTP: " + ec.message());
}

// Rejects requests that two parsers might interpret differently.
void Connection::check_header() {
  const Request& head = parser_->request;
  const std::string& coding = head.field("transfer-encoding");
  if (parser_->repeated_field) throw ApiError(400, "a header field occurs twice");
  if (!coding.empty() && (!parser_->chunked() || coding.find(',') != std::string::npos)) {
    throw ApiError(501, "the only supported transfer coding is chunked", "Transfer-Encoding");
  }
  if (!coding.empty() && (head.fields.count("content-length") != 0 || parser_->version < 11)) {
    throw ApiError(400, "Transfer-Encoding cannot be combined with Content-Length or HTTP/1.0",
                   "Transfer-Encoding");
  }
  if (parser_->version == 11 && head.fields.count("host") == 0) {
    throw ApiError(400, "HTTP/1.1 requires a Host field", "Host");
  }
}

void Connection::on_header() {
  phase_ = Phase::body;
  exchange_ = std::make_shared<ConnectionExchange>(weak_from_this(), handler_);
  exchange_->old_ = parser_->version < 11;
  exchange_->head_only_ = parser_->request.method == "HEAD";
  exchange_->close_ = true;  // until the body has been read
  check_header();
  parse_target(parser_->request);
  plan_ = handler_.begin(parser_->request, exchange_);
  const auto length = parser_->content_length();
  if (length && *length > static_cast<uint64_t>(plan_.limit)) {
    throw ApiError(413,
                   fmt::format("the body has {} bytes; expected at most {}", *length, plan_.limit));
  }
  const bool expects = parser_->request.field("expect") == "100-continue";
  if (expects && !parser_->is_done() && input_.size() == 0) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }
  set_deadline(limits_.body_idle_seconds);
}

void Connection::take_body(std::string_view data) {
  body_bytes_ += static_cast<int64_t>(data.size());
  if (body_bytes_ > plan_.limit) {
    throw ApiError(413, fmt::format("the body exceeds {} bytes", plan_.limit));
  }
  const bool endless = plan_.sink != nullptr;  // any document length: only idle time is limited
  if (!endless &&
      Clock::now() - request_began_ > std::chrono::duration<double>(limits_.request_seconds)) {
    throw ApiError(408, "the request took too long");
  }
  if (!endless) {
    body_ += data;
    return;
  }
  const auto resume = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    asio::post(self->socket_.get_executor(), [self] {
      if (!self->paused_) return;
      self->paused_ = false;
      self->set_deadline(self->limits_.body_idle_seconds);
      self->parse();
    });
  };
  if (!plan_.sink->write(data, resume)) {
    paused_ = true;
    set_deadline(kPausedSeconds);
  }
}

void Connection::on_request() {
  phase_ = Phase::handling;
  exchange_->close_ = retired_ || !parser_->keep_alive();
  set_deadline(plan_.sink != nullptr ? kPausedSeconds : response_seconds());
  if (plan_.sink != nullptr) {
    const std::shared_ptr<BodySink> sink = std::move(plan_.sink);
    return sink->finish();
  }
  Request request = std::move(parser_->request);
  request.body = std::move(body_);
  log_debug("{} {}", request.method, request.path);
  handler_.handle(std::move(request), exchange_);
}

void Connection::refuse(const ApiError& error) {
  if (exchange_ == nullptr)
    exchange_ = std::make_shared<ConnectionExchange>(weak_from_this(), handler_);
  const bool unread = phase_ != Phase::handling;
  if (unread) {
    exchange_->close_ = true;
    phase_ = Phase::handling;
  }
  if (plan_.sink != nullptr) std::exchange(plan_.sink, nullptr)->abandon();
  set_deadline(limits_.write_stall_seconds);
  exchange_->reply(error.response());
  read();
}

}  // namespace rondo::http
