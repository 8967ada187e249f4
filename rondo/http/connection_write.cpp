// Writing responses and closing connections.
#include <boost/asio/write.hpp>

#include "rondo/http/connection_parts.h"

namespace rondo::http {

void Connection::fetch(const std::shared_ptr<ConnectionExchange>& exchange) {
  {
    const std::lock_guard<std::mutex> lock(exchange->mutex_);
    exchange->fetched_ = true;
    if (exchange != exchange_ || phase_ == Phase::closed) return;
    output_ += exchange->pending_;
    exchange->pending_.clear();
    last_fetched_ = exchange->last_;
  }
  if (last_fetched_ && phase_ == Phase::body) {  // answered before the whole body arrived
    phase_ = Phase::handling;
    paused_ = false;
    if (plan_.sink != nullptr) std::exchange(plan_.sink, nullptr)->abandon();
  }
  write();
}

void Connection::write() {
  if (write_pending_ || output_.empty()) {
    if (!write_pending_ && last_fetched_) answered();
    return;
  }
  write_pending_ = true;
  writing_.clear();
  writing_.swap(output_);
  if (phase_ == Phase::handling) set_deadline(limits_.write_stall_seconds);
  socket_.async_write_some(boost::asio::buffer(writing_),
                           [self = shared_from_this()](boost::system::error_code ec, size_t bytes) {
                             self->on_written(ec, bytes);
                           });
}

// A client that accepts some bytes now and then is slow, not gone: each write has its own timeout.
void Connection::on_written(boost::system::error_code ec, size_t bytes) {
  write_pending_ = false;
  if (phase_ == Phase::closed) return;
  if (ec) return close();
  if (phase_ == Phase::handling) exchange_->unsent_ -= static_cast<int64_t>(bytes);
  if (bytes < writing_.size()) {
    writing_.erase(0, bytes);
    writing_ += output_;
    output_.swap(writing_);
  } else if (phase_ == Phase::handling) {
    set_deadline(response_seconds());  // for what is still being computed
  }
  write();
}

void Connection::answered() {
  if (phase_ != Phase::handling) return;
  if (exchange_->close_ || input_ended_) return linger();
  next_request(limits_.keep_alive_seconds);
}

// Closing while the client is still sending would reset the connection before it reads the
// response.
void Connection::linger() {
  phase_ = Phase::lingering;
  exchange_ = nullptr;
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  if (input_ended_) return close();
  lingered_ = 0;
  input_.consume(input_.size());
  set_deadline(kLingerSeconds);
  read();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const std::shared_ptr<Connection> until_done = std::move(self_);
  phase_ = Phase::closed;
  if (exchange_ != nullptr) {
    const std::lock_guard<std::mutex> lock(exchange_->mutex_);
    exchange_->gone_ = true;
  }
  if (plan_.sink != nullptr) std::exchange(plan_.sink, nullptr)->abandon();
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

// Longer than a request may wait and be processed, which the engine limits with a response.
double Connection::response_seconds() const {
  return limits_.queue_seconds + limits_.request_seconds + limits_.write_stall_seconds;
}

void Connection::set_deadline(double seconds) {
  const auto wait =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const bool sooner = Clock::now() + wait < deadline_;
  deadline_ = Clock::now() + wait;
  if (timer_waits_ && !sooner) return;  // rechecked when the timer fires
  if (timer_waits_) timer_.cancel();
  wait_for_deadline();
}

void Connection::wait_for_deadline() {
  timer_waits_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
    const auto self = weak.lock();
    if (ec || self == nullptr || self->phase_ == Phase::closed) return;
    self->timer_waits_ = false;
    if (Clock::now() < self->deadline_) return self->wait_for_deadline();
    self->on_deadline();
  });
}

void Connection::on_deadline() {
  const bool began = phase_ == Phase::header || phase_ == Phase::body;
  if (!began) return close();  // silent, or not reading
  refuse(ApiError(408, phase_ == Phase::header ? "the header did not arrive in time"
                                               : "the body did not arrive in time"));
}

}  // namespace rondo::http
