// States from files: a model continues from states it wrote; anything else is rejected with the
// file and the tensor, whatever the file contains.
#include <fstream>

#include "rondo/base/random.h"
#include "rondo/infer/generator.h"
#include "tests/support/expect.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr const char* kOwner = "the model";

// Small, with every kind of time.
LanguageModelConfig tiny_config(const std::string& kind) {
  LanguageModelConfig c;
  c.depth.levels = 3;
  c.time.kind = kind == "xl" ? "window" : kind;
  c.time.recurrent_layers = {2};
  c.time.memory_layer = 2;
  c = std::get<LanguageModelConfig>(shrink(ModelConfig{c}).network);
  c.time.mask_empty_cache = c.time.attend_self = kind == "xl";
  c.time.memory_size = 3 * c.time.window + 1;
  return c;
}

class StateFiles : public ::testing::TestWithParam<std::string> {
 protected:
  StateFiles() : tiny_(ModelConfig{tiny_config(GetParam())}) {
    model_ = std::dynamic_pointer_cast<LanguageModel>(tiny_.network);
    compiled_ = std::make_shared<CompiledLanguageModel>(model_, kernels::PackedFormat::fp32);
  }
  int64_t window() const { return model_->config().time.window; }
  Tensor tokens(int64_t rows, int64_t length) const {
    return tiny_inputs(tiny_.config, rows, 5, length).at("tokens");
  }
  void read(const Tensor& tokens, State& state) const {
    const at::NoGradGuard no_grad;
    model_->forward_tokens(tokens, state, Scope());
  }
  // A document of `length` tokens, with its logits and recent tokens.
  State document(int64_t length) const {
    const Tensor text = tokens(1, length);
    Generator writer(compiled_);
    writer.read({text.data_ptr<int64_t>(), text.data_ptr<int64_t>() + length});
    return writer.state();
  }
  State load(const State& state, int64_t rows = 0) const {
    state.save(file_.path(), kOwner);
    return model_->load_state(file_.path(), kOwner, rows);
  }
  void expect_loads(const State& state) const {
    const State loaded = load(state);
    ASSERT_EQ(loaded.tensors().size(), state.tensors().size());
    for (const auto& [name, tensor] : state.tensors()) {
      expect_identical(loaded.get(name), tensor, name);
    }
  }
  void expect_refused(const State& state, const std::string& part) const {
    SCOPED_TRACE(part);
    const Error error = error_of([&] { load(state, 1); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    const std::string text = error.what();
    EXPECT_EQ(text.rfind(file_.path() + ": ", 0), 0U) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  TinyModel tiny_;
  std::shared_ptr<LanguageModel> model_;
  std::shared_ptr<const CompiledLanguageModel> compiled_;
  TemporaryFile file_{".state"};
};

TEST_P(StateFiles, WhatTheModelMakesIsWhatItExpects) {
  const int64_t w = window();
  expect_loads(State());  // of a document that has not begun yet
  State state;
  for (const int64_t more : {int64_t{1}, w - 1, int64_t{1}, w, 2 * w + 1, 3 * w}) {
    read(tokens(2, more), state);
    expect_loads(state);
    expect_loads(state.reset(at::ones({2}, at::kBool)));
  }
  // All rows begin a new document in the middle of a block.
  state = state.reset(at::ones({2}, at::kBool));
  read(tokens(2, w + 2), state);
  expect_loads(state);
  read(tokens(2, w - 2), state);
  // One of them does so between blocks.
  state = state.reset(at::tensor({0, 1}, at::kInt).to(at::kBool));
  read(tokens(2, 1), state);
  expect_loads(state);
  read(tokens(2, 6 * w), state);
  expect_loads(state.select(at::tensor({1, 0, 1}, at::kLong)));
}

TEST_P(StateFiles, OfAWriterHoldLogitsAndRecentTokens) {
  for (const int64_t length : {int64_t{1}, window(), 2 * window() + 3}) {
    State state = document(length);
    EXPECT_TRUE(state.has("logits"));
    EXPECT_EQ(state.get("recent").size(1), length);
    expect_loads(state);
    Generator writer(compiled_, load(state, 1));
    Sampler sampler{SamplerOptions()};
    for (int64_t i = 0; i <= window(); ++i) {
      writer.write(sampler, 0);
      expect_loads(writer.state());
    }
  }
}

TEST_P(StateFiles, EveryTensorIsExpected) {
  const State state = document(window() + 1);
  for (const auto& [name, tensor] : state.tensors()) {
    const bool optional = name == "logits" || name == "recent";
    if (!optional) expect_refused(state.without(name), name);
    const auto with = [&, &n = name](const Tensor& value) {
      State changed = state;
      changed.set(n, value);
      return changed;
    };
    expect_refused(with(tensor.unsqueeze(-1)), name);
    expect_refused(with(tensor.to(tensor.is_floating_point() ? at::kDouble : at::kInt)), name);
    expect_refused(with(at::cat({tensor, tensor}, 0)), "rows");
    if (name != "recent" && tensor.dim() > 1) {  // longer by one
      expect_refused(with(at::cat({tensor, tensor.narrow(1, 0, 1)}, 1)), name);
    }
    if (tensor.dim() > 1) expect_refused(with(tensor.narrow(1, 0, 0)), name);
    if (tensor.is_floating_point()) {
      for (const float bad : {INFINITY, NAN}) {
        Tensor values = tensor.clone();
        values.view({-1})[values.numel() - 1] = bad;
        expect_refused(with(values), "tensor '" + name + "': expected finite numbers");
      }
    }
  }
  State more = state;
  more.set("level.3.keys", state.get("level.0.keys"));
  expect_refused(more, "unknown: level.3.keys F32");
}

TEST_P(StateFiles, PositionsAndTokensLieInTheirRange) {
  const State state = document(window() + 1);
  const auto with = [&](const std::string& name, int64_t value) {
    State changed = state;
    changed.set(name, at::full_like(state.get(name), value));
    return changed;
  };
  expect_refused(with("position", -1), "tensor 'position': expected values from 0 to");
  expect_refused(with("position", int64_t{1} << 62), "tensor 'position': expected values from 0");
  const int64_t vocabulary = model_->config().vocabulary;
  const std::string range = "expected values from 0 to " + std::to_string(vocabulary - 1);
  expect_refused(with("recent", vocabulary), "tensor 'recent': " + range);
  expect_refused(with("recent", -1), "tensor 'recent': " + range);
  const std::string kind = model_->config().time.kind;
  if (kind == "memorizing") {
    expect_refused(with("level.1.memory.filled", 1000), "tensor 'level.1.memory.filled'");
    expect_refused(with("level.1.memory.filled", -1), "tensor 'level.1.memory.filled'");
  }
  // The number of keys matches the position.
  if (kind == "none") expect_refused(with("position", 1000), "level.0.keys: expected");
  if (kind == "memorizing") expect_refused(with("position", 2), "level.1.keys: expected");
  if (kind == "block-recurrent" || kind == "feedback") {
    expect_refused(with("position", window() + 2), "level.1.keys: expected");
    expect_refused(with("position", window()), "level.1.keys: expected");
  }
}

TEST_P(StateFiles, RowsAreAsManyAsAskedFor) {
  State state;
  read(tokens(2, 3), state);
  expect_refused(state, "expected 1 rows, as in the tokens, got 2");
  EXPECT_EQ(load(state, 2).rows(), 2);
}

// ---- mutations ----------------------------------------------------------------------------------

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

std::vector<Entry> entries_of(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<Entry> entries;
  for (const TensorEntry& e : file.entries()) {
    const uint8_t* bytes = file.bytes(e);
    entries.push_back({e.name, e.dtype, e.shape, {bytes, bytes + (e.end - e.begin)}});
  }
  return entries;
}

// One change to one tensor: its type, shape, name, bytes, or its presence.
void mutate(std::vector<Entry>& entries, CounterRandom& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random.below(n)); };
  if (entries.empty()) return;
  Entry& e = entries[below(entries.size())];
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                              DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};
  constexpr int64_t kExtents[] = {0, 1, 2, 3, 7, 8, 64, 1000};
  switch (below(8)) {
    case 0:
      e.dtype = kTypes[below(10)];
      break;
    case 1:
      if (!e.shape.empty()) e.shape[below(e.shape.size())] = kExtents[below(8)];
      break;
    case 2:
      e.shape.push_back(1);
      break;
    case 3:
      if (!e.shape.empty()) e.shape.pop_back();
      break;
    case 4:
      e.name = entries[below(entries.size())].name + "x";
      break;
    case 5:
      std::swap(e.shape, entries[below(entries.size())].shape);
      break;
    case 6:
      entries.erase(entries.begin() + static_cast<int64_t>(below(entries.size())));
      return;
    default:
      for (size_t i = 0; i < 9 && !e.bytes.empty(); ++i) {
        e.bytes[below(e.bytes.size())] = static_cast<uint8_t>(below(256));
      }
  }
  int64_t size = dtype_size(e.dtype);
  for (const int64_t extent : e.shape) size *= extent;
  e.bytes.resize(static_cast<size_t>(size), static_cast<uint8_t>(below(3) * 127));
}

void write_entries(const std::string& path, const std::vector<Entry>& entries) {
  std::vector<TensorRef> refs;
  for (const Entry& e : entries) refs.push_back({e.name, e.dtype, e.shape, e.bytes.data()});
  write_safetensors(path, refs, {{"format", "rondo-state-1"}, {"fingerprint", kOwner}});
}

TEST_P(StateFiles, MutatedOnesAreRefusedOrContinued) {
  CounterRandom random(3, "mutations");
  int64_t refused = 0;
  for (int64_t i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    document(1 + i % (3 * window())).save(file_.path(), kOwner);
    std::vector<Entry> entries = entries_of(file_.path());
    for (uint64_t n = 1 + random.below(2); n > 0; --n) mutate(entries, random);
    write_entries(file_.path(), entries);
    try {
      Generator writer(compiled_, model_->load_state(file_.path(), kOwner, 1));
      SamplerOptions options;
      options.repetition_penalty = 1.3;
      Sampler sampler(options);
      for (const int64_t token : writer.recent()) sampler.remember(token);
      for (int64_t k = 0; k < 3; ++k) writer.write(sampler, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input) << error.what();
      EXPECT_EQ(error.message().rfind(file_.path() + ": ", 0), 0U) << error.what();
      ++refused;
    }
  }
  EXPECT_GE(refused, 60);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StateFiles,
                         ::testing::Values("none", "window", "xl", "block-recurrent", "feedback",
                                           "memorizing"),
                         [](const auto& given) { return test_name(given.param); });

}  // namespace
}  // namespace rondo::test
