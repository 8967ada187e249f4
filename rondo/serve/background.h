// A thread for what is too long for the threads that speak HTTP and is no work for the engine:
// large bodies, images to decode, state files.
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

  // Answers `exchange` (null: nobody waits, the log is told) with what `work` throws. ApiError{429}
  // if too much waits.
  void post(std::shared_ptr<http::Exchange> exchange, std::function<void()> work);
  // Finishes what waits.
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

// Runs `work`, and answers with what it throws: an ApiError as it is, an Error of the library about
// its input as 400, anything else as 500.
void answer_errors(http::Exchange& exchange, const std::function<void()>& work);

}  // namespace rondo::serve
