// Reductions over processes.
#include "rondo/train/data_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rondo/base/error.h"

namespace rondo {
namespace {

// A report is a few doubles of one process. In the fp32 sum each process has its own slot, where
// the others add zeros; one float per byte, so that the report arrives unchanged.
constexpr int64_t kReportDoubles = 5;
constexpr int64_t kReportFloats = kReportDoubles * static_cast<int64_t>(sizeof(double));
using Report = std::array<double, kReportDoubles>;

Report make_report(const StepLoss& loss, const StepRequests& requests) {
  return {loss.sum, static_cast<double>(loss.count), static_cast<double>(requests.stop_code),
          requests.save ? 1.0 : 0.0, requests.moved ? 1.0 : 0.0};
}

void write_report(const Report& report, float* out) {
  uint8_t bytes[kReportFloats];
  std::memcpy(bytes, report.data(), sizeof(bytes));
  std::copy(std::begin(bytes), std::end(bytes), out);
}

Report read_report(const float* in) {
  uint8_t bytes[kReportFloats];
  std::transform(in, in + kReportFloats, bytes, [](float x) { return static_cast<uint8_t>(x); });
  Report report;
  std::memcpy(report.data(), bytes, sizeof(bytes));
  return report;
}

// In rank order, in double: the same result everywhere.
StepLoss add_reports(const float* reports, int64_t size, StepRequests& requests) {
  StepLoss total;
  for (int64_t rank = 0; rank < size; ++rank) {
    const Report r = read_report(reports + rank * kReportFloats);
    total.sum += r[0];
    total.count += static_cast<int64_t>(r[1]);
    requests.stop_code = std::max(requests.stop_code, static_cast<int>(r[2]));
    requests.save = requests.save || r[3] != 0.0;
    requests.moved = requests.moved || r[4] != 0.0;
  }
  return total;
}

// Adds the length of its life to a sum.
class Seconds {
 public:
  explicit Seconds(double& sum) : sum_(sum), begun_(std::chrono::steady_clock::now()) {}
  ~Seconds() {
    sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }
  Seconds(const Seconds&) = delete;
  Seconds& operator=(const Seconds&) = delete;

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begun_;
};

std::string describe_tensors(const NamedTensors& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += fmt::format("{} = {} [{}]\n", name, c10::toString(tensor.scalar_type()),
                        fmt::join(tensor.sizes(), ", "));
  }
  return text;
}

}  // namespace

DataParallel::DataParallel(ProcessGroup* group, Network& network, const TrainConfig& config)
    : group_(group), network_(network), narrow_(config.reduce_precision == "bf16") {
  if (is_alone()) return;
  if (config.sync_batch_norm) {
    norms_.emplace([group](double* data, int64_t count) { group->all_reduce(data, count); });
  }
  arrange(network);
  int64_t at = gradient_count_;
  for (const auto& item : network.named_buffers()) {
    if (!item.value().is_floating_point()) continue;
    buffers_.push_back({item.value(), at});
    at += item.value().numel();
  }
  reports_ = at + static_cast<int64_t>(parameters_.size());
  flat_ = at::zeros({reports_ + group->size() * kReportFloats}, at::kFloat);
  if (narrow_) wire_.resize(static_cast<size_t>(gradient_count_));
}

// Places parameters in the order in which their gradients are sent.
void DataParallel::arrange(const Network& network) {
  const auto prefixes = network.gradient_stages();
  std::vector<std::vector<Tensor>> by_stage(prefixes.size() + 1);
  for (const auto& item : network.named_parameters()) {
    const auto begins = [&](const std::string& prefix) { return item.key().rfind(prefix, 0) == 0; };
    const auto stage = std::find_if(prefixes.begin(), prefixes.end(), [&](const auto& names) {
      return std::any_of(names.begin(), names.end(), begins);
    });
    by_stage[static_cast<size_t>(stage - prefixes.begin())].push_back(item.value());
  }
  for (const std::vector<Tensor>& tensors : by_stage) {
    for (const Tensor& tensor : tensors) {
      parameters_.push_back({tensor, gradient_count_});
      gradient_count_ += tensor.numel();
    }
    stages_.push_back({parameters_.size(), gradient_count_});
  }
}

void DataParallel::pack_gradients(const Stage& from, const Stage& to) {
  for (size_t i = from.parameters; i < to.parameters; ++i) {
    const auto& [tensor, begin] = parameters_[i];
    const Tensor gradient = tensor.grad();
    Tensor place = flat_.narrow(0, begin, tensor.numel()).view(tensor.sizes());
    if (gradient.defined()) {
      place.copy_(gradient);
    } else {
      place.zero_();
    }
  }
  if (!narrow_) return;
  const int64_t count = to.elements - from.elements;
  Tensor wire = at::from_blob(wire_.data() + from.elements, {count}, at::kBFloat16);
  wire.copy_(flat_.narrow(0, from.elements, count));
}

// Begins to send all stages below `count`, except the last, which reduce() sends: every process
// sends them one by one in this order, whenever its backward pass completes them.
void DataParallel::send_stages(size_t count) {
  const at::NoGradGuard no_grad;
  for (; sent_ < std::min(count, stages_.size() - 1); ++sent_) {
    const Stage from = sent_ == 0 ? Stage{} : stages_[sent_ - 1];
    const int64_t elements = stages_[sent_].elements - from.elements;
    if (elements == 0) continue;
    pack_gradients(from, stages_[sent_]);
    sending_ = narrow_ ? group_->start_all_reduce_bf16(wire_.data() + from.elements, elements,
                                                       std::move(sending_))
                       : group_->start_all_reduce(flat_.data_ptr<float>() + from.elements, elements,
                                                  std::move(sending_));
  }
}

nn::StagesOfGradients::Listener DataParallel::sender() {
  if (is_alone() || stages_.size() < 2) return nullptr;
  return [this](int64_t stage) {
    const Seconds spent(seconds_);
    send_stages(static_cast<size_t>(stage) + 1);
  };
}

void DataParallel::pack_rest(const StepLoss& mine, const StepRequests& requests) {
  flat_.narrow(0, gradient_count_, flat_.numel() - gradient_count_).zero_();
  float* there = flat_.data_ptr<float>() + reports_ - static_cast<int64_t>(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    there[i] = parameters_[i].tensor.grad().defined() ? 1.0F : 0.0F;
  }
  pack_gradients(sent_ == 0 ? Stage{} : stages_[sent_ - 1], stages_.back());
  for (const auto& [tensor, begin] : buffers_) {
    flat_.narrow(0, begin, tensor.numel()).view(tensor.sizes()).copy_(tensor);
  }
  write_report(make_report(mine, requests),
               flat_.data_ptr<float>() + reports_ + group_->rank() * kReportFloats);
}

void DataParallel::sum() {
  const int64_t sent = sent_ == 0 ? 0 : stages_[sent_ - 1].elements;
  auto* numbers = flat_.data_ptr<float>();
  if (sending_.valid()) group_->wait(sending_);
  sent_ = 0;
  if (!narrow_) return group_->all_reduce(numbers + sent, flat_.numel() - sent);
  group_->all_reduce_bf16(wire_.data() + sent, gradient_count_ - sent);
  group_->all_reduce(numbers + gradient_count_, flat_.numel() - gradient_count_);
  const Tensor gradients = flat_.narrow(0, 0, gradient_count_);
  gradients.copy_(at::from_blob(wire_.data(), {gradient_count_}, at::kBFloat16));
}

StepLoss DataParallel::unpack(StepRequests& requests) {
  const float* there =
      flat_.data_ptr<float>() + reports_ - static_cast<int64_t>(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto& [tensor, begin] = parameters_[i];
    tensor.mutable_grad() =
        there[i] > 0.0F ? flat_.narrow(0, begin, tensor.numel()).view(tensor.sizes()) : Tensor();
  }
  for (auto& [tensor, begin] : buffers_) {
    tensor.copy_(flat_.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    tensor.div_(static_cast<double>(group_->size()));
  }
  return add_reports(flat_.data_ptr<float>() + reports_, group_->size(), requests);
}

StepLoss DataParallel::reduce(const StepLoss& mine, StepRequests& requests) {
  if (is_alone()) return mine;
  const at::NoGradGuard no_grad;
  const Seconds spent(seconds_);
  send_stages(stages_.size());  // those that the backward pass has not reached
  pack_rest(mine, requests);
  sum();
  return unpack(requests);
}

void DataParallel::agree(StepRequests& requests) {
  if (is_alone()) return;
  std::vector<float> reports(static_cast<size_t>(group_->size() * kReportFloats));
  write_report(make_report({}, requests), reports.data() + group_->rank() * kReportFloats);
  group_->all_reduce(reports.data(), static_cast<int64_t>(reports.size()));
  add_reports(reports.data(), group_->size(), requests);
}

std::optional<CheckpointFolder::Found> DataParallel::share(
    std::optional<CheckpointFolder::Found> found) {
  if (is_alone()) return found;
  wait_for_first();  // rank 0 is reading a large file
  nlohmann::json head;
  if (is_first() && found.has_value()) {
    head = {{"step", found->step}, {"metadata", found->checkpoint.metadata}};
    for (const auto& [name, tensor] : found->checkpoint.tensors) {
      head["tensors"].push_back(
          {name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
    }
  }
  head = nlohmann::json::parse(group_->all_gather(is_first() ? head.dump() : "")[0]);
  if (head.is_null()) return std::nullopt;
  if (!is_first()) {
    found = CheckpointFolder::Found{head.at("step"), {}};
    found->checkpoint.metadata = head.at("metadata").get<std::map<std::string, std::string>>();
  }
  for (const auto& entry : head.at("tensors")) {
    Tensor& tensor = found->checkpoint.tensors[entry.at(0)];
    tensor = is_first() ? tensor.contiguous()
                        : at::empty(entry.at(2).get<std::vector<int64_t>>(),
                                    static_cast<at::ScalarType>(entry.at(1).get<int>()));
    group_->broadcast(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()));
  }
  return found;
}

NamedTensors DataParallel::gather_rows(const NamedTensors& mine) {
  if (is_alone()) return mine;
  group_->require_same("carried state", describe_tensors(mine));
  NamedTensors all;
  for (const auto& [name, tensor] : mine) {
    const Tensor own = tensor.detach().contiguous();
    const auto bytes = static_cast<int64_t>(own.nbytes());
    if (!is_first()) {
      group_->send(own.data_ptr(), bytes, 0);
      continue;
    }
    Shape shape = own.sizes().vec();
    shape.at(0) *= group_->size();
    Tensor whole = at::empty(shape, own.options());
    whole.narrow(0, 0, own.size(0)).copy_(own);
    for (int64_t rank = 1; rank < group_->size(); ++rank) {
      group_->receive(static_cast<char*>(whole.data_ptr()) + rank * bytes, bytes, rank);
    }
    all[name] = whole;
  }
  return all;
}

void DataParallel::require_same_weights() {
  if (is_alone()) return;
  uint64_t hash = 0;
  for (const auto& [name, tensor] : named_tensors(network_)) {
    const Tensor t = tensor.detach().contiguous();
    hash = XXH3_64bits_withSeed(t.data_ptr(), t.nbytes(), hash);
  }
  const std::vector<std::string> all = group_->all_gather(fmt::format("{:016x}", hash));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw Error(ExitCode::failure,
                fmt::format("the weights of rank {} no longer match those of rank 0", rank),
                "different CPU models round differently: use identical machines in a group, or run "
                "with --kernels reference");
  }
}

void DataParallel::wait_for_first() {
  if (!is_alone()) group_->wait_patiently();
}

NamedTensors rows_of(const NamedTensors& all, int64_t first, int64_t count) {
  NamedTensors rows;
  for (const auto& [name, tensor] : all) {
    const int64_t there = std::max<int64_t>(0, std::min(count, tensor.size(0) - first));
    Shape shape = tensor.sizes().vec();
    shape.at(0) = count;
    Tensor part = at::zeros(shape, tensor.options());
    if (there > 0) part.narrow(0, 0, there).copy_(tensor.narrow(0, first, there));
    rows[name] = part;
  }
  return rows;
}

}  // namespace rondo
