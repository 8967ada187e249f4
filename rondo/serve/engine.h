// The one thread that computes. Requests wait here in order, run side by side once there is room,
// and take turns in small pieces of work, so that no one holds the others up for long.
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

// One request's work. Everything but the constructor runs on the engine's thread, except that a
// request which was never started may be failed by another.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // How much of Limits::running it takes.
  virtual int64_t sequences() const { return 1; }
  // Nobody waits for the result any more.
  virtual bool abandoned() const = 0;
  virtual void start() = 0;
  // Ends it before its time: frees what it holds. Called at most once, after start().
  virtual void stop() = 0;
  virtual bool done() const = 0;
  virtual void fail(const http::ApiError& error) = 0;

  Clock::time_point queued;
  Clock::time_point started;
};

// Works for tasks of one model.
class Worker {
 public:
  virtual ~Worker() = default;
  // A small piece of work. False: there is none at the moment.
  virtual bool work() = 0;
};

class Engine {
 public:
  explicit Engine(const Limits& limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before start(). The worker must outlive the engine.
  void add(Worker& worker) { workers_.push_back(&worker); }
  void start();

  // From any thread. ApiError{429} when the queue is full, ApiError{503} while draining.
  void submit(std::shared_ptr<Task> task);
  // Something arrived for a task that runs.
  void wake();

  // Takes no more tasks; waits until all are done, at most so long. False: some were not.
  bool drain(double seconds);
  // Ends what still runs and the thread.
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
