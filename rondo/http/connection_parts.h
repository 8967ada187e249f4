// One client connection: a sequence of requests, each with limits and timeouts.
#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <mutex>

#include "rondo/http/api_error.h"
#include "rondo/http/limits.h"
#include "rondo/http/request_parser_parts.h"

namespace rondo::http {

class Connection;

// The response to one request. Collects output from other threads; the connection fetches it.
class ConnectionExchange : public Exchange,
                           public std::enable_shared_from_this<ConnectionExchange> {
 public:
  ConnectionExchange(std::weak_ptr<Connection> connection, Handler& handler);

  void reply(Response response) override;
  void begin_stream(const std::string& content_type) override;
  void send(std::string_view data) override;
  void end() override;
  bool gone() const override { return gone_; }
  int64_t unsent() const override { return unsent_; }

 private:
  friend class Connection;
  void push(std::string_view bytes, bool last);
  std::string head(int status, const std::string& content_type) const;

  std::weak_ptr<Connection> connection_;
  Handler& handler_;
  std::atomic<bool> gone_{false};
  std::atomic<bool> close_{false};  // no further request on this connection
  std::atomic<bool> old_{false};    // HTTP/1.0: no chunked encoding
  std::atomic<bool> head_only_{false};
  std::atomic<int64_t> unsent_{0};
  std::mutex mutex_;
  std::string pending_;  // not yet fetched
  bool fetched_ = true;  // no fetch is pending
  bool last_ = false;    // the response is complete
  bool streaming_ = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Clock = std::chrono::steady_clock;

  // `leave` is called once, when the connection ends.
  Connection(Socket socket, Handler& handler, const Limits& limits, std::function<void()> leave);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  // From any thread: closes immediately if no request is in progress, otherwise after its response.
  void retire();
  // On the connection's own thread, or when no other threads are left.
  void close();

 private:
  friend class ConnectionExchange;
  enum class Phase { idle, header, body, handling, lingering, closed };

  void next_request(double seconds);
  void read();
  void on_read(boost::system::error_code ec, size_t bytes);
  void on_input_end();
  void parse();
  bool parse_some();
  void on_header();
  void check_header();
  void take_body(std::string_view data);
  void on_request();
  void refuse(const ApiError& error);
  void refuse_parse(boost::system::error_code ec);

  void fetch(const std::shared_ptr<ConnectionExchange>& exchange);
  void write();
  void on_written(boost::system::error_code ec, size_t bytes);
  void answered();
  void linger();

  double response_seconds() const;
  void set_deadline(double seconds);
  void wait_for_deadline();
  void on_deadline();

  std::shared_ptr<Connection> self_;  // until close(): at times nothing else keeps it alive
  Socket socket_;
  Handler& handler_;
  const Limits& limits_;
  std::function<void()> leave_;
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_;
  bool timer_waits_ = false;

  Phase phase_ = Phase::idle;
  boost::beast::flat_buffer input_;
  std::vector<char> arriving_;  // buffer of the pending read
  bool reading_ = false;
  bool paused_ = false;  // a sink is full
  bool retired_ = false;
  bool input_ended_ = false;
  int64_t header_bytes_ = 0;
  int64_t body_bytes_ = 0;
  int64_t lingered_ = 0;
  Clock::time_point request_began_;
  std::unique_ptr<RequestParser> parser_;
  BodyPlan plan_;
  std::string body_;
  std::shared_ptr<ConnectionExchange> exchange_;

  std::string output_;   // to be written
  std::string writing_;  // being written
  bool write_pending_ = false;
  bool last_fetched_ = false;
};

}  // namespace rondo::http
