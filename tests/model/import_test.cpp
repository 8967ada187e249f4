// Importing other programs' weights: all or none, with every mismatch named.
#include "rondo/model/import.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

// The weights of a reference file as the authors' program would write them, which tests may damage.
struct ForeignFile {
  ForeignFile(const std::string& name, const std::string& from)
      : program(from), config(read_model_config(ConfigTable::from_file(fixture(name + ".toml")))) {
    const Reference reference(name);
    for (const char* prefix : {"p/", "b/", "const/"}) {
      for (const auto& [tensor_name, tensor] : reference.below(prefix)) {
        tensors[tensor_name] = tensor;
      }
    }
  }

  void import_into(Network& network) const {
    const TemporaryFile file(".safetensors");
    save_tensors(file.path(), tensors);
    import_weights(network, SafetensorsFile::open(file.path()), *make_layout(program, config),
                   /*list_all=*/true);
  }

  std::string program;
  ModelConfig config;
  NamedTensors tensors;
};

// Importing `file` fails with a message that contains all of `parts`, and leaves the network
// unchanged.
void expect_refused(const ForeignFile& file, const std::vector<std::string>& parts) {
  const TinyModel m(file.config);
  const std::string before = fingerprint(m.config, *m.network);
  const Error error = error_of([&] { file.import_into(*m.network); });
  EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::bad_input));
  for (const std::string& part : parts) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "expected: " << part << "\ngot: " << error.what();
  }
  EXPECT_EQ(fingerprint(m.config, *m.network), before) << "nothing has changed";
}

TEST(Import, OfTheRightFileSucceeds) {
  const ForeignFile file("sret_mini", "sret");
  const TinyModel m(file.config);
  const std::string before = fingerprint(m.config, *m.network);
  file.import_into(*m.network);
  EXPECT_NE(fingerprint(m.config, *m.network), before);
}

TEST(Import, NamesEveryMissingTensor) {
  ForeignFile file("ringformer_vision", "ringformer");
  file.tensors.erase("head.weight");
  file.tensors.erase("transformer.encoder.ATTN_lev_embed_Q_01");
  expect_refused(file, {"missing: head.weight (for head.weight [10, 48])",
                        "missing: transformer.encoder.ATTN_lev_embed_Q_01 (for "
                        "stack.signal.0.query.up",
                        "stack.signal.2.query.up"});
}

TEST(Import, NamesEveryTensorWithoutAPlace) {
  ForeignFile file("brt_lstm_dual", "meliad");
  file.tensors["decoder/transformer9/tbase/ffn/hidden0/kernel"] = at::zeros({2});
  file.tensors["optimizer/step"] = at::zeros({1});
  expect_refused(file, {"2 tensors do not match", "unmapped: optimizer/step",
                        "unmapped: decoder/transformer9/tbase/ffn/hidden0/kernel"});
}

TEST(Import, NamesEveryTensorOfAnotherShape) {
  ForeignFile file("ringformer_translation", "ringformer");
  file.tensors["fc.bias"] = at::zeros({40});
  expect_refused(file, {"fc.bias (for head.bias): expected shape [41], got [40]"});
  ForeignFile joint("sret_mini", "sret");
  joint.tensors["transformers.0.blocks.0.attn.qkv.weight"] = at::zeros({47, 16});
  expect_refused(joint, {"transformers.0.blocks.0.attn.qkv.weight"});
}

TEST(Import, SharedTensorsMustAgree) {
  ForeignFile file("sret_mini", "sret");
  // Blocks stand at even places, projections at odd ones: place 2 is the second loop of place 0.
  const std::string first = "transformers.0.blocks.0.mlp.fc1.weight";
  const std::string again = "transformers.0.blocks.2.mlp.fc1.weight";
  ASSERT_EQ(file.tensors.count(first), 1U);
  file.tensors[again] = file.tensors.at(first).clone();
  const TinyModel m(file.config);
  file.import_into(*m.network);  // an equal copy does no harm
  file.tensors.at(again)[0][0] += 1.0;
  expect_refused(file, {again + ": differs from " + first});
}

TEST(Import, OfAnotherProgramsFileNamesBothSides) {
  ForeignFile file("ringformer_vision", "ringformer");
  file.tensors = ForeignFile("sret_mini", "sret").tensors;
  expect_refused(file, {"missing: transformer.encoder.encoder_norm.weight",
                        "unmapped: patch_embed.conv1.weight", "head.weight (for head.weight)"});
}

TEST(Import, ProgramsThatHaveNoSuchModelSaySo) {
  const auto layout = [](const std::string& program, const std::string& model) {
    return [=] { make_layout(program, find_model(model).config()); };
  };
  expect_error(ExitCode::usage, "unknown program 'tensorflow'", layout("tensorflow", "sret/t"));
  expect_error(ExitCode::bad_input, "import from sret", layout("sret", "sret/deit-t"));
  expect_error(ExitCode::bad_input, "import from meliad", layout("meliad", "rondo/ring-brt"));
  expect_error(ExitCode::bad_input, "import from meliad", layout("meliad", "sret/t"));
  expect_error(ExitCode::bad_input, "import from deit", layout("deit", "ringformer/image-small"));
  expect_error(ExitCode::bad_input, "import from ringformer", layout("ringformer", "brt/xl-512"));
  expect_error(ExitCode::bad_input, "import from ringformer",
               layout("ringformer", "ringformer/mt-ablation-full-rank"));
}

// ---- every importable model, in both directions ----------------------------------------------

// The contents of the other program's file for `network`: our tensors arranged as in `layout`.
NamedTensors export_weights(const Network& network, const Layout& layout) {
  NamedTensors foreign;
  std::map<std::string, std::map<int64_t, Tensor>> rows, thirds;
  for (const auto& [name, tensor] : named_tensors(network)) {
    const Source source = layout.source(name);
    EXPECT_FALSE(source.names.empty()) << name << " has no place there";
    Tensor t = tensor.detach();
    if (source.transpose) t = t.t();
    if (source.row >= 0) {
      rows[source.names.front()][source.row] = t;
    } else if (source.third >= 0) {
      thirds[source.names.front()][source.third] = t;
    } else {
      const auto pieces = t.dim() == 0 ? std::vector<Tensor>{t}
                                       : t.chunk(static_cast<int64_t>(source.names.size()), 0);
      for (size_t i = 0; i < source.names.size(); ++i) foreign[source.names[i]] = pieces[i];
    }
  }
  const auto values = [](const std::map<int64_t, Tensor>& numbered) {
    std::vector<Tensor> all;
    for (const auto& [number, tensor] : numbered) all.push_back(tensor);
    return all;
  };
  for (const auto& [name, numbered] : rows) foreign[name] = at::stack(values(numbered));
  for (const auto& [name, numbered] : thirds) foreign[name] = at::cat(values(numbered));
  return foreign;
}

std::string program_of(const std::string& model) {
  if (model.rfind("brt/", 0) == 0) return "meliad";
  if (model.rfind("ringformer/", 0) == 0) return "ringformer";
  return model.find("deit") != std::string::npos ? "deit" : "sret";
}

class ImportableModel : public ::testing::TestWithParam<const char*> {};

TEST_P(ImportableModel, ComesBackFromTheOtherProgramsNames) {
  const at::NoGradGuard no_grad;
  const ModelConfig config = shrink(find_model(GetParam()).config());
  const TinyModel saved(config, 1), loaded(config, 2);
  const auto layout = make_layout(program_of(GetParam()), config);
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), export_weights(*saved.network, *layout));
  import_weights(*loaded.network, SafetensorsFile::open(file.path()), *layout);
  EXPECT_EQ(fingerprint(config, *loaded.network), fingerprint(config, *saved.network));
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ImportableModel,
    ::testing::Values(
        "ringformer/mt-base", "ringformer/mt-base-vanilla", "ringformer/mt-base-one-wide",
        "ringformer/mt-base-universal", "ringformer/mt-ablation-no-attention-signal",
        "ringformer/mt-ablation-no-ffn-signal", "ringformer/mt-ablation-before-attention",
        "ringformer/mt-ablation-inter-ffn", "ringformer/image-small", "ringformer/image-small-vit",
        "ringformer/image-small-uit", "ringformer/image-small-owf", "brt/xl-512", "brt/slide-12l",
        "brt/rec-fixed-dual", "brt/rec-fixed-single", "brt/rec-fixed-skip", "brt/rec-lstm-dual",
        "brt/rec-lstm-single", "brt/rec-lstm-skip", "brt/feedback-fixed-skip",
        "brt/feedback-lstm-single", "brt/memorizing-32k", "brt/rec-fixed-skip-apart", "sret/t",
        "sret/tl-global", "sret/s", "sret/pit-t", "sret/ladder-nll", "sret/ladder-stem",
        "sret/deit-t", "sret/deit-t-loop2", "sret/deit-t-24l"),
    NameOfModel());

TEST(ImportDeit, KnowsTheNamesOfItsProgram) {
  const ModelConfig config = shrink(find_model("sret/deit-t").config());
  const TinyModel m(config);
  const NamedTensors foreign = export_weights(*m.network, *make_layout("deit", config));
  std::map<std::string, Shape> want = {{"cls_token", {1, 1, 12}},
                                       {"pos_embed", {1, 17, 12}},
                                       {"patch_embed.proj.weight", {12, 3, 4, 4}},
                                       {"patch_embed.proj.bias", {12}},
                                       {"norm.weight", {12}},
                                       {"norm.bias", {12}},
                                       {"head.weight", {7, 12}},
                                       {"head.bias", {7}}};
  for (int64_t block = 0; block < 12; ++block) {
    const std::string at = "blocks." + std::to_string(block) + ".";
    for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) {
      want[at + norm] = {12};
    }
    want[at + "attn.qkv.weight"] = {36, 12};
    want[at + "attn.qkv.bias"] = {36};
    want[at + "attn.proj.weight"] = {12, 12};
    want[at + "attn.proj.bias"] = {12};
    want[at + "mlp.fc1.weight"] = {20, 12};
    want[at + "mlp.fc1.bias"] = {20};
    want[at + "mlp.fc2.weight"] = {12, 20};
    want[at + "mlp.fc2.bias"] = {12};
  }
  std::map<std::string, Shape> got;
  for (const auto& [name, tensor] : foreign) got[name] = tensor.sizes().vec();
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace rondo::test
