// The background thread.
#include "rondo/serve/background.h"

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/http/api_error.h"

namespace rondo::serve {
namespace {

void log_errors(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log_error("{}", error.what());
  }
}

}  // namespace

void answer_errors(http::Exchange& exchange, const std::function<void()>& work) {
  try {
    work();
  } catch (const http::ApiError& error) {
    exchange.reply(error.response());
  } catch (const Error& error) {
    const int status = error.code() == ExitCode::bad_input ? 400 : 500;
    if (status == 500) log_error("request: {}", error.what());
    exchange.reply(http::ApiError(status, error.message()).response());
  } catch (const std::exception& error) {
    log_error("request: {}", error.what());
    exchange.reply(http::ApiError(500, "the server could not handle the request").response());
  }
}

Background::Background(size_t most_waiting)
    : most_waiting_(most_waiting), thread_([this] { run(); }) {}

Background::~Background() { stop(); }

void Background::post(std::shared_ptr<http::Exchange> exchange, std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_ || waiting_.size() >= most_waiting_) {
      throw http::ApiError(429, "too many requests are waiting; try again later").retry_after(1);
    }
    waiting_.emplace_back(std::move(exchange), std::move(work));
  }
  changed_.notify_one();
}

void Background::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Background::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto [exchange, work] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (exchange == nullptr) {
      log_errors(work);
    } else if (!exchange->gone()) {
      answer_errors(*exchange, work);
    }
    lock.lock();
  }
}

}  // namespace rondo::serve
