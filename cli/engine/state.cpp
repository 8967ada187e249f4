// rondo state: processes a document into a state file, describes or copies a state file.
#include "rondo/recurrence/state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/text.h"
#include "rondo/infer/generator.h"
#include "rondo/infer/load.h"

namespace rondo::cli {

void run_state_read(const StateReadOptions& options) {
  start_engine(options.compute);
  const Verify verify = verify_as(options.load);
  const TrainedLanguageModel trained = load_language_model(options.run, options.tokenizer, verify);
  State before;
  if (!options.state.empty()) {
    before = trained.model->load_state(options.state, trained.fingerprint(), 1, verify);
  }
  Generator document(
      std::make_shared<CompiledLanguageModel>(trained.model, kernels::PackedFormat::fp32), before);
  read_with_progress(document, trained.tokenizer->encode(read_document(options.document)));
  const State after = document.state();
  after.save(options.output, trained.fingerprint());
  fmt::print("{}: after {}, {}\n", options.output, counted(document.position(), "token"),
             human_bytes(after.bytes()));
}

void run_state_info(const StateInfoOptions& options) {
  start_engine();
  std::string owner;
  const State state = State::load_any(options.state, owner, verify_as(options.load));
  const Tensor position = state.get("position");
  const int64_t tokens = position.defined() ? position[0].item<int64_t>() : 0;
  if (options.json) {
    nlohmann::json tensors = nlohmann::json::object();
    for (const auto& [name, tensor] : state.tensors()) tensors[name] = tensor.sizes().vec();
    const nlohmann::json out = {{"model", owner},
                                {"rows", state.rows()},
                                {"tokens", tokens},
                                {"bytes", state.bytes()},
                                {"tensors", tensors}};
    fmt::print("{}\n", out.dump(2));
    return;
  }
  fmt::print("model   {}\nrows    {}\ntokens  {}\nsize    {}\n", owner, state.rows(),
             with_commas(tokens), human_bytes(state.bytes()));
  for (const auto& [name, tensor] : state.tensors()) {
    fmt::print("  {:<24} [{}]\n", name, fmt::join(tensor.sizes().vec(), ", "));
  }
}

void run_state_fork(const StateForkOptions& options) {
  start_engine();
  std::string owner;
  State::load_any(options.state, owner, verify_as(options.load)).save(options.output, owner);
  fmt::print("{}\n", options.output);
}

}  // namespace rondo::cli
