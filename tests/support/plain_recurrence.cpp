// Recurrence over time, one pair of vectors at a time.
#include "tests/support/plain_recurrence.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rondo::test {
namespace {

double inner_product(const Tensor& a, const Tensor& b) { return (a * b).sum().item<double>(); }

// T5's bucket of a distance, by the paper's formula.
int64_t bucket(int64_t n) {
  if (n < 16) return n;
  const double far = std::log(static_cast<double>(n) / 16.0) / std::log(8.0) * 16.0;
  return std::min<int64_t>(31, 16 + static_cast<int64_t>(std::floor(far)));
}

// Scores and the values they weight; the sum is zero if there are none.
class Weighing {
 public:
  explicit Weighing(int64_t width) : width_(width) {}
  void add(double score, const Tensor& value) {
    scores_.push_back(score);
    values_.push_back(value);
  }
  Tensor sum() const {
    Tensor result = at::zeros({width_}, at::kDouble);
    double total = 0.0;
    for (size_t i = 0; i < scores_.size(); ++i) {
      total += std::exp(scores_[i]);
      result = result + values_[i] * std::exp(scores_[i]);
    }
    return scores_.empty() ? result : result / total;
  }

 private:
  int64_t width_;
  std::vector<double> scores_;
  std::vector<Tensor> values_;
};

Tensor unit(const Tensor& x) { return x / (x.square().sum(-1, true) + 1e-6).sqrt(); }

Tensor rms(const Tensor& x, const Tensor& weight) {
  return x / (x.square().mean(-1, true) + 1e-6).sqrt() * weight;
}

// Softmax attention of queries [n, d] to all of keys [m, d].
Tensor attend_all(const Tensor& q, const Tensor& k, const Tensor& v, double scale) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < q.size(0); ++i) {
    Weighing weighing(v.size(1));
    for (int64_t j = 0; j < k.size(0); ++j) weighing.add(inner_product(q[i], k[j]) * scale, v[j]);
    rows.push_back(weighing.sum());
  }
  return at::stack(rows);
}

Tensor merge(const Tensor& heads) {  // [H, T, d] → [T, H·d]
  return heads.transpose(0, 1).reshape({heads.size(1), -1});
}

}  // namespace

PlainDocument::PlainDocument(const torch::nn::Module& module, const WindowOptions& options)
    : options_(options) {
  for (const auto& item : module.named_parameters())
    parameters_[item.key()] = item.value().detach();
}

Tensor PlainDocument::parameter(const std::string& name) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) throw std::runtime_error("no parameter " + name);
  return found->second;
}

Tensor PlainDocument::map(const std::string& name, const Tensor& x) const {
  return at::matmul(x, parameter(name + ".weight").t());
}

Tensor PlainDocument::heads(const Tensor& u, const std::string& name, bool normalized) const {
  const Tensor y = map(name, u).view({u.size(0), options_.shape.heads, -1}).transpose(0, 1);
  return normalized && options_.normalize ? unit(y) : y;
}

void PlainDocument::project(const Tensor& u) {
  q_ = heads(u, "projections.query", true);
  k_ = heads(u, "projections.key", true);
  v_ = heads(u, "projections.value", false);
  if (options_.reads_states) state_q_ = heads(u, "state_query", true);
}

Tensor PlainDocument::key(int64_t head, int64_t position) const {
  return position < 0 ? at::zeros({k_.size(2)}, at::kDouble) : k_[head][position];
}

Tensor PlainDocument::value(int64_t head, int64_t position) const {
  return position < 0 ? at::zeros({v_.size(2)}, at::kDouble) : v_[head][position];
}

Tensor PlainDocument::see_window(int64_t head, int64_t i) const {
  const int64_t window = options_.window;
  const Tensor table = parameter("relative.table")[head];
  const double scale = parameter("scale")[head].item<double>();
  Weighing weighing(v_.size(2));
  const int64_t first = window == 0 ? 0 : i - window;
  const bool self = options_.attend_self || window == 0;
  for (int64_t j = first; self ? j <= i : j < i; ++j) {
    if (j < 0 && options_.mask_empty_cache) continue;
    const double score =
        inner_product(q_[head][i], key(head, j)) + table[bucket(i - j)].item<double>();
    weighing.add(score * scale, value(head, j));
  }
  return weighing.sum();
}

Tensor PlainDocument::window(const Tensor& u) {
  project(u);
  std::vector<Tensor> rows;
  for (int64_t h = 0; h < q_.size(0); ++h) {
    for (int64_t i = 0; i < q_.size(1); ++i) rows.push_back(see_window(h, i));
  }
  return map("projections.output", merge(at::stack(rows).view(q_.sizes())));
}

PlainDocument::StateView PlainDocument::view_state() const {
  Tensor u = rms(state_, parameter("cell.norm.weight"));
  if (parameters_.count("cell.identity") != 0) u = u + parameter("cell.identity");
  return {heads(u, "cell.projections.key", true), heads(u, "cell.projections.value", false),
          heads(u, "cell.projections.query", true), heads(u, "cell.token_query", true)};
}

Tensor PlainDocument::gate(const std::string& name, const Tensor& c, const Tensor& z,
                           const Tensor& h, const TimeConfig& time) const {
  const bool lstm = time.gate == "lstm";
  // The authors' program applies tanh only in single; the paper's text in every lstm gate.
  const bool squashed = time.gate_tanh == "paper" ? lstm : time.configuration == "single";
  const Tensor new_value = squashed ? at::tanh(z) : z;
  if (!lstm) {
    const Tensor keep = at::sigmoid(parameter(name + ".bias"));
    return c * keep + new_value * (1.0 - keep);
  }
  const Tensor forget = map(name + ".forget", h) + parameter(name + ".forget.bias");
  const Tensor input = map(name + ".input", h) + parameter(name + ".input.bias");
  return c * at::sigmoid(forget + 1.0) + new_value * at::sigmoid(input - 1.0);
}

void PlainDocument::update_state(const StateView& view, int64_t block, const TimeConfig& time) {
  const int64_t window = options_.window;
  std::vector<Tensor> self, cross;
  for (int64_t h = 0; h < q_.size(0); ++h) {
    std::vector<Tensor> keys, values;  // of the previous block and of this one
    for (int64_t j = (block - 1) * window; j < (block + 1) * window; ++j) {
      keys.push_back(key(h, j));
      values.push_back(value(h, j));
    }
    self.push_back(attend_all(view.queries[h], view.keys[h], view.values[h],
                              parameter("cell.scale")[h].item<double>()));
    cross.push_back(attend_all(view.token_queries[h], at::stack(keys), at::stack(values),
                               parameter("cell.token_scale")[h].item<double>()));
  }
  const Tensor attended = at::cat({merge(at::stack(self)), merge(at::stack(cross))}, 1);
  if (time.configuration == "single") {
    const Tensor h = at::relu(map("cell.up", attended));
    state_ = gate("cell.feed_forward_gate", state_, map("cell.down", h), h, time);
    return;
  }
  const Tensor projected = map("cell.projections.output", attended);
  state_ = gate("cell.attention_gate", state_, projected, attended, time);
  if (time.configuration == "skip") return;
  const Tensor h =
      at::relu(map("cell.up", rms(state_, parameter("cell.feed_forward_norm.weight"))));
  state_ = gate("cell.feed_forward_gate", state_, map("cell.down", h), h, time);
}

Tensor PlainDocument::recurrent(const Tensor& u, const TimeConfig& time) {
  project(u);
  state_ = parameter("initial");
  std::vector<Tensor> tokens;
  StateView view = view_state();
  for (int64_t i = 0; i < u.size(0); ++i) {
    std::vector<Tensor> own, of_states;
    for (int64_t h = 0; h < q_.size(0); ++h) {
      own.push_back(see_window(h, i));
      of_states.push_back(attend_all(state_q_[h].narrow(0, i, 1), view.keys[h], view.values[h],
                                     parameter("state_scale")[h].item<double>())[0]);
    }
    tokens.push_back(at::cat({at::cat(own), at::cat(of_states)}));
    if ((i + 1) % options_.window != 0) continue;
    update_state(view, i / options_.window, time);
    view = view_state();
  }
  return map("projections.output", at::stack(tokens));
}

std::map<int64_t, double> PlainDocument::nearest(int64_t h, int64_t i, int64_t memory,
                                                 int64_t neighbors) const {
  const int64_t end = i / options_.window * options_.window;  // whole blocks before this one
  std::vector<std::pair<double, int64_t>> found;
  for (int64_t j = std::max<int64_t>(0, end - memory); j < end; ++j) {
    found.emplace_back(-inner_product(q_[h][i], k_[h][j]), j);
  }
  std::sort(found.begin(), found.end());
  found.resize(std::min(found.size(), static_cast<size_t>(neighbors)));
  std::map<int64_t, double> shares;
  double all = 0;
  for (const auto& [score, j] : found) {
    all += shares[j] = std::exp(-score * parameter("scale")[h].item<double>());
  }
  for (auto& [j, share] : shares) share /= all;
  return shares;
}

Tensor PlainDocument::recall(int64_t h, int64_t i, int64_t memory, int64_t neighbors) const {
  Tensor sum = at::zeros({v_.size(2)}, v_.options());
  for (const auto& [j, share] : nearest(h, i, memory, neighbors)) sum = sum + v_[h][j] * share;
  return sum;
}

Tensor PlainDocument::memorizing(const Tensor& u, int64_t memory, int64_t neighbors) {
  project(u);
  std::vector<Tensor> rows;
  for (int64_t h = 0; h < q_.size(0); ++h) {
    const Tensor g = at::sigmoid(parameter("gate")[h]);
    for (int64_t i = 0; i < q_.size(1); ++i) {
      rows.push_back(see_window(h, i) * (1.0 - g) + recall(h, i, memory, neighbors) * g);
    }
  }
  return map("projections.output", merge(at::stack(rows).view(q_.sizes())));
}

Tensor forward_in_pieces(TokenMixing& mixing, const Tensor& u, const std::vector<int64_t>& pieces,
                         State& state, const Scope& scope) {
  const std::string key = "position";
  if (!state.has(key)) state.set(key, at::zeros({u.size(0)}, at::kLong));
  std::vector<Tensor> outputs;
  int64_t done = 0;
  for (size_t i = 0; done < u.size(1); ++i) {
    const int64_t count = std::min(pieces[std::min(i, pieces.size() - 1)], u.size(1) - done);
    ForwardContext context;
    context.state = &state;
    context.tokens_seen = state.get(key).min().item<int64_t>();
    context.positions = state.get(key).unsqueeze(1) + at::arange(count, at::kLong);
    MixingInput in;
    in.u = in.x = u.narrow(1, done, count);
    outputs.push_back(mixing.forward(in, context, scope));
    state.set(key, state.get(key) + count);
    done += count;
  }
  return at::cat(outputs, 1);
}

}  // namespace rondo::test
