// The Gloo plugin: the only code that uses libgloo. rondo/train/group_library.h explains why it is
// separate.
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include "rondo/train/group_library.h"

namespace rondo {
namespace {

// Gloo counts the bytes of one transfer as int in places: larger ones are split.
constexpr int64_t kMostBytes = int64_t{1} << 28;

// While an instance exists, new threads block all signals, which are for the trainer's own threads.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

// Where Gloo stores its connection addresses: each rank writes one entry under its number.
class Addresses : public gloo::rendezvous::Store {
 public:
  explicit Addresses(const CollectivesOptions& options) : options_(options) {}
  void set(const std::string& /*key*/, const std::vector<char>& data) override {
    all_ = options_.exchange(std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const size_t number = key.find_first_of("0123456789");  // versions use different prefixes
    if (number == std::string::npos) throw std::runtime_error("unknown Gloo key: " + key);
    const std::string& text = all_.at(static_cast<size_t>(std::stoll(key.substr(number))));
    return {text.begin(), text.end()};
  }
  void wait(const std::vector<std::string>& /*keys*/) override {}

 private:
  const CollectivesOptions& options_;
  std::vector<std::string> all_;
};

float widened(uint16_t x) {
  const uint32_t bits = uint32_t{x} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to nearest, ties to even; NaN stays NaN.
uint16_t narrowed(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void sum_bf16(void* c, const void* a, const void* b, size_t count) {
  auto* out = static_cast<uint16_t*>(c);
  const auto* x = static_cast<const uint16_t*>(a);
  const auto* y = static_cast<const uint16_t*>(b);
  for (size_t i = 0; i < count; ++i) out[i] = narrowed(widened(x[i]) + widened(y[i]));
}

class GlooCollectives : public Collectives {
 public:
  explicit GlooCollectives(const CollectivesOptions& options)
      : context_(std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                             static_cast<int>(options.size))) {
    gloo::transport::tcp::attr place;
    place.hostname = options.address;
    const NoSignals blocked;
    auto device = gloo::transport::tcp::CreateDevice(place);
    context_->setTimeout(std::chrono::milliseconds(options.timeout));
    Addresses addresses(options);
    context_->connectFullMesh(addresses, device);
  }

  void all_reduce(void* data, int64_t count, WireNumber number, int64_t timeout,
                  bool background) override {
    gloo::AllreduceOptions o(context_);
    o.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    o.setTimeout(std::chrono::milliseconds(timeout));
    o.setTag(background ? 1 : 0);  // keeps apart what runs at the same time
    switch (number) {
      case WireNumber::fp32:
        return sum<float>(o, data, count, gloo::sum<float>);
      case WireNumber::fp64:
        return sum<double>(o, data, count, gloo::sum<double>);
      case WireNumber::bf16:
        return sum<uint16_t>(o, data, count, sum_bf16);
    }
  }

  void broadcast(void* data, int64_t bytes, int64_t root, int64_t timeout) override {
    in_pieces(data, bytes, [&](char* piece, int64_t size) {
      gloo::BroadcastOptions o(context_);
      o.setOutput(piece, static_cast<size_t>(size));
      o.setRoot(static_cast<int>(root));
      o.setTimeout(std::chrono::milliseconds(timeout));
      gloo::broadcast(o);
    });
  }

  void barrier(int64_t timeout) override {
    gloo::BarrierOptions o(context_);
    o.setTimeout(std::chrono::milliseconds(timeout));
    gloo::barrier(o);
  }

  void all_gather(void* all, const std::vector<int64_t>& bytes, int64_t timeout) override {
    gloo::AllgathervOptions o(context_);
    o.setOutput(static_cast<char*>(all), std::vector<size_t>(bytes.begin(), bytes.end()));
    o.setTimeout(std::chrono::milliseconds(timeout));
    gloo::allgatherv(o);
  }

  void send(const void* data, int64_t bytes, int64_t to, int64_t timeout) override {
    in_pieces(const_cast<void*>(data), bytes, [&](char* piece, int64_t size) {
      auto buffer = context_->createUnboundBuffer(piece, static_cast<size_t>(size));
      buffer->send(static_cast<int>(to), kOwnSlot);
      finished(buffer->waitSend(std::chrono::milliseconds(timeout)));
    });
  }

  void receive(void* data, int64_t bytes, int64_t from, int64_t timeout) override {
    in_pieces(data, bytes, [&](char* piece, int64_t size) {
      auto buffer = context_->createUnboundBuffer(piece, static_cast<size_t>(size));
      buffer->recv(static_cast<int>(from), kOwnSlot);
      finished(buffer->waitRecv(std::chrono::milliseconds(timeout)));
    });
  }

  void close() noexcept override {
    try {
      context_->closeConnections();
    } catch (const std::exception&) {  // they are broken already
    }
  }

 private:
  static constexpr uint64_t kOwnSlot = 0x7f00000000000000;  // not a prefix of Gloo's own operations

  static void finished(bool whole) {
    if (!whole) throw std::runtime_error("the transfer was interrupted");
  }

  template <class Transfer>
  static void in_pieces(void* data, int64_t bytes, const Transfer& transfer) {
    for (int64_t done = 0; done < bytes; done += kMostBytes) {
      transfer(static_cast<char*>(data) + done, std::min(kMostBytes, bytes - done));
    }
  }

  template <class T>
  static void sum(gloo::AllreduceOptions& o, void* data, int64_t count,
                  void (*add)(void*, const void*, const void*, size_t)) {
    o.setReduceFunction(add);
    in_pieces(data, count * static_cast<int64_t>(sizeof(T)), [&](char* piece, int64_t size) {
      o.setOutput(reinterpret_cast<T*>(piece), static_cast<size_t>(size) / sizeof(T));
      gloo::allreduce(o);
    });
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
};

std::unique_ptr<Collectives> connect(const CollectivesOptions& options) {
  return std::make_unique<GlooCollectives>(options);
}

}  // namespace
}  // namespace rondo

extern "C" const rondo::GroupLibrary* rondo_group_library() {
  static const rondo::GroupLibrary library = {rondo::connect};
  return &library;
}
