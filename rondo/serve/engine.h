// The one thread that computes. Requests wait here in order, run concurrently once there is
// capacity, and take turns in small pieces of work, so that none blocks the others for long.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "rondo/http/api_error.h"
#include "rondo/serve/limits.h"

namespace rondo::serve {

using Clock = std::chrono::steady_clock;

// One request's work. Everything but the constructor runs on the engine's thread, except that
// another thread may fail a request that was never started.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // How much of Limits::running it uses.
  virtual int64_t sequences() const { return 1; }
  // The client is no longer waiting for the result.
  virtual bool abandoned() const = 0;
  virtual void start() = 0;
  // Ends it early and frees its resources. Called at most once, after start().
  virtual void stop() = 0;
  virtual bool done() const = 0;
  // Whether Limits::http.request_seconds bounds it.
  virtual bool has_deadline() const { return true; }
  virtual void fail(const http::ApiError& error) = 0;

  Clock::time_point queued;
  Clock::time_point started;
};

// Does the work of tasks of one model.
class Worker {
 public:
  virtual ~Worker() = default;
  // Does a small piece of work. Returns false if there is none at the moment.
  virtual bool work() = 0;
};

class Engine {
 public:
  explicit Engine(const Limits& limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Call before start(). The worker must outlive the engine.
  void add(Worker& worker) { workers_.push_back(&worker); }
  void start();

  // From any thread. ApiError{429} when the queue is full, ApiError{503} while draining.
  void submit(std::shared_ptr<Task> task);
  // Signals that input arrived for a running task.
  void wake();

  // Accepts no more tasks; waits up to `seconds` for all to finish. Returns false if some did not.
  bool drain(double seconds);
  // Ends running tasks and the thread.
  void stop();

  int64_t queued() const;
  int64_t running() const { return running_; }

 private:
  void run();
  bool admit();
  void expire_queue();
  void look_after_running();

  const Limits& limits_;
  std::vector<Worker*> workers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> queue_;
  bool woken_ = false;
  bool draining_ = false;
  bool stopping_ = false;
  std::atomic<int64_t> running_{0};  // sequences
  std::list<std::shared_ptr<Task>> tasks_;
  std::thread thread_;
};

}  // namespace rondo::serve
