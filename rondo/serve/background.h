// A thread for work that takes too long for the HTTP threads and does not belong on the engine's:
// large bodies, image decoding, state files.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "rondo/http/exchange.h"

namespace rondo::serve {

class Background {
 public:
  explicit Background(size_t most_waiting);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // If `work` throws, answers `exchange` with the error (null: logs it). ApiError{429} if too much
  // work is waiting.
  void post(std::shared_ptr<http::Exchange> exchange, std::function<void()> work);
  // Finishes all waiting work.
  void stop();

 private:
  void run();

  size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::shared_ptr<http::Exchange>, std::function<void()>>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

// Runs `work` and answers with what it throws: an ApiError as is, a library Error about bad input
// as 400, anything else as 500.
void answer_errors(http::Exchange& exchange, const std::function<void()>& work);

}  // namespace rondo::serve
