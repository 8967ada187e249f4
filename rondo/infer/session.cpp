// Sessions: rows of documents.
#include "rondo/infer/session.h"

#include <fmt/format.h>

#include <set>

#include "rondo/base/require.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo {
namespace {

std::vector<float> to_vector(const Tensor& logits) {
  const Tensor row = logits.reshape({-1}).to(at::kFloat).contiguous();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

}  // namespace

Session::Session(std::shared_ptr<const CompiledLanguageModel> model) : model_(std::move(model)) {
  require(model_ != nullptr, "session: no model given");
  Runtime::get();  // started before the first tensor of a row
}

Session::Row& Session::at(RowId row) {
  return const_cast<Row&>(std::as_const(*this).at(row));  // NOLINT: of a non-const session
}

const Session::Row& Session::at(RowId row) const {
  const auto found = rows_.find(row);
  if (found == rows_.end()) {
    throw Error(ExitCode::failure, fmt::format("session: row {} does not exist", row),
                "use an id returned by add() or fork(), before remove()");
  }
  return found->second;
}

Session::RowId Session::add(const State& state) {
  require(state.empty() || state.rows() == 1, "session: expected a state of 1 row, got {}",
          state.rows());
  Row row;
  row.state = state;
  if (state.has("logits")) {
    row.logits = to_vector(state.get("logits"));
    row.state = state.without("logits");
    if (static_cast<int64_t>(row.logits.size()) != model_->config().vocabulary) {
      throw Error(ExitCode::bad_input,
                  fmt::format("state: tensor 'logits': expected {} values, got {}",
                              model_->config().vocabulary, row.logits.size()),
                  "use a state of this model");
    }
  }
  rows_.emplace(next_, std::move(row));
  return next_++;
}

Session::RowId Session::fork(RowId row) {
  const Row& from = at(row);
  Row copy;
  copy.state = from.state;
  copy.logits = from.logits;
  if (from.past != nullptr) copy.past = std::make_unique<RowPast>(from.past->clone());
  rows_.emplace(next_, std::move(copy));
  return next_++;
}

void Session::remove(RowId row) {
  at(row);
  rows_.erase(row);
}

State Session::network_state(const Row& row) const {
  return row.past != nullptr ? model_->save(*row.past) : row.state;
}

State Session::state(RowId id) const {
  const Row& row = at(id);
  State whole = network_state(row);
  if (!row.logits.empty()) whole.set("logits", at::tensor(row.logits).unsqueeze(0));  // [1, V]
  return whole;
}

int64_t Session::tokens_seen(RowId id) const {
  const Row& row = at(id);
  if (row.past != nullptr) return row.past->tokens_seen;
  return row.state.has("position") ? row.state.get("position")[0].item<int64_t>() : 0;
}

int64_t Session::bytes() const {
  int64_t total = 0;
  for (const auto& [id, row] : rows_) {
    total += row.past != nullptr ? row.past->bytes() : row.state.bytes();
    total += static_cast<int64_t>(row.logits.size() * sizeof(float));
  }
  return total;
}

void Session::read(RowId id, const std::vector<int32_t>& tokens) {
  if (tokens.empty()) return;
  Row& row = at(id);
  for (const int32_t token : tokens) check_token(id, token);
  Runtime::get().compute([&] {
    if (row.past != nullptr) {
      row.state = model_->save(*row.past);
      row.past = nullptr;
    }
    row.logits = to_vector(model_->read(tokens, row.state));
  });
}

void Session::check_token(RowId row, int64_t token) const {
  const int64_t size = model_->config().vocabulary;
  if (token >= 0 && token < size) return;
  throw Error(
      ExitCode::bad_input,
      fmt::format("session: row {}: token {} is not in a vocabulary of {}", row, token, size));
}

void Session::check(const std::vector<Token>& tokens) const {
  std::set<RowId> named;
  for (const Token& t : tokens) {
    at(t.row);
    check_token(t.row, t.token);
    if (!named.insert(t.row).second) {
      throw Error(ExitCode::failure, fmt::format("session: row {} occurs twice in a step", t.row),
                  "pass one token per row and step");
    }
  }
}

void Session::step(const std::vector<Token>& tokens) {
  if (tokens.empty()) return;
  check(tokens);
  if (nn::kernels_in_use() != nn::Kernels::fused) return step_plainly(tokens);
  StepRows pasts;
  std::vector<int64_t> numbers;
  for (const Token& t : tokens) {
    Row& row = at(t.row);
    if (row.past == nullptr) {
      row.past = std::make_unique<RowPast>(model_->open(row.state));
      row.state = State();
    }
    pasts.push_back(row.past.get());
    numbers.push_back(t.token);
  }
  const Runtime::Turn turn(Runtime::get());
  model_->step(pasts, numbers, turn.team(), workspace_);
  const nn::Rows logits = workspace_.logits.rows(static_cast<int64_t>(tokens.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* from = logits[static_cast<int64_t>(i)];
    at(tokens[i].row).logits.assign(from, from + model_->config().vocabulary);
  }
}

// With reference kernels: the training forward pass, for one token.
void Session::step_plainly(const std::vector<Token>& tokens) {
  for (const Token& t : tokens) read(t.row, {static_cast<int32_t>(t.token)});
}

}  // namespace rondo
