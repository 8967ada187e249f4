// The queue, admission, and the main loop.
#include "rondo/serve/engine.h"

#include "rondo/base/error.h"
#include "rondo/base/log.h"

namespace rondo::serve {
namespace {

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

const http::ApiError& shutting_down() {
  static const http::ApiError error =
      http::ApiError(503, "the server is shutting down").retry_after(5);
  return error;
}

}  // namespace

Engine::Engine(const Limits& limits) : limits_(limits) {}

Engine::~Engine() { stop(); }

void Engine::start() {
  thread_ = std::thread([this] { run(); });
}

void Engine::submit(std::shared_ptr<Task> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (draining_) throw shutting_down();
    if (static_cast<int64_t>(queue_.size()) >= limits_.queue) {
      throw http::ApiError(429, "too many requests are waiting; try again later").retry_after(1);
    }
    task->queued = Clock::now();
    queue_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Engine::wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

int64_t Engine::queued() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

bool Engine::drain(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  draining_ = true;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  return changed_.wait_until(lock, until, [&] { return queue_.empty() && tasks_.empty(); });
}

void Engine::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = draining_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Starts requests in order of arrival; one that needs more capacity than is free blocks those
// behind it, otherwise it could wait forever.
bool Engine::admit() {
  std::shared_ptr<Task> task;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty() || running_ + queue_.front()->sequences() > limits_.running) return false;
    task = std::move(queue_.front());
    queue_.pop_front();
    if (!task->abandoned()) {
      running_ += task->sequences();
      tasks_.push_back(task);
    }
  }
  if (task->abandoned()) return true;
  task->started = Clock::now();
  try {
    task->start();
  } catch (const http::ApiError& error) {
    task->stop();
    task->fail(error);
  } catch (const std::exception& error) {
    log_error("request: {}", error.what());
    task->stop();
    task->fail(http::ApiError(500, "the request could not be started"));
  }
  return true;
}

void Engine::expire_queue() {
  std::vector<std::shared_ptr<Task>> expired;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = queue_.begin(); at != queue_.end();) {
      const bool late = seconds_since((*at)->queued) > limits_.http.queue_seconds;
      if (late && !(*at)->abandoned()) expired.push_back(*at);
      at = late || (*at)->abandoned() ? queue_.erase(at) : at + 1;
    }
  }
  for (const auto& task : expired) {
    task->fail(http::ApiError(503, "the request waited too long in the queue").retry_after(5));
  }
}

void Engine::look_after_running() {
  for (auto at = tasks_.begin(); at != tasks_.end();) {
    Task& task = **at;
    const bool late =
        task.has_deadline() && seconds_since(task.started) > limits_.http.request_seconds;
    if (!task.done() && (task.abandoned() || late)) {
      task.stop();
      if (late) task.fail(http::ApiError(503, "the request took too long"));
    }
    if (!task.done()) {
      ++at;
      continue;
    }
    running_ -= task.sequences();
    const std::shared_ptr<Task> last = std::move(*at);  // destroyed outside the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    at = tasks_.erase(at);
  }
}

void Engine::run() {
  for (;;) {
    expire_queue();
    while (admit()) {
    }
    bool worked = false;
    for (Worker* worker : workers_) worked = worker->work() || worked;
    look_after_running();
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopping_) break;
    if (queue_.empty() && tasks_.empty()) changed_.notify_all();  // for drain()
    if (worked || std::exchange(woken_, false)) continue;
    // Clients that disconnect or resume reading do not wake us: with running tasks, poll.
    const auto pause = tasks_.empty() ? (queue_.empty() ? std::chrono::milliseconds(60'000)
                                                        : std::chrono::milliseconds(100))
                                      : std::chrono::milliseconds(2);
    const bool room = !queue_.empty() && running_ + queue_.front()->sequences() <= limits_.running;
    if (!room) changed_.wait_for(lock, pause);
  }
  for (const auto& task : tasks_) {
    if (task->done()) continue;
    task->stop();
    task->fail(shutting_down());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& task : queue_) task->fail(shutting_down());
  queue_.clear();
  tasks_.clear();
}

}  // namespace rondo::serve
