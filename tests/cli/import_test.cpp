// rondo import: either the authors' weights become a model file, or every name that does not match
// is listed and nothing is written.
#include "tests/cli/authors.h"

namespace rondo::testing {
namespace {

struct Program {
  const char* fixture;
  const char* name;
};

class ImportOf : public ::testing::TestWithParam<Program> {};

TEST_P(ImportOf, WritesAModelFile) {
  const Authors authors(GetParam().fixture, GetParam().name);
  const Arrays weights = authors.weights();
  const Result result = authors.import(weights, authors.file("again.safetensors"));
  EXPECT_TRUE(contains(result.out, std::to_string(weights.size()) + " tensors")) << result.out;
  EXPECT_TRUE(contains(result.out, std::string("imported from ") + GetParam().name)) << result.out;
  // The same weights give the same file, which contains its configuration.
  EXPECT_EQ(slurp(authors.file("again.safetensors")), slurp(authors.model()));
  EXPECT_EQ(rondo_ok({"info", authors.model(), "--toml"}).out,
            rondo_ok({"info", authors.config(), "--toml"}).out);
}

INSTANTIATE_TEST_SUITE_P(Authors, ImportOf,
                         ::testing::Values(Program{"ringformer_vision", "ringformer"},
                                           Program{"ringformer_translation", "ringformer"},
                                           Program{"sret_mini", "sret"},
                                           Program{"brt_slide", "meliad"},
                                           Program{"brt_fixed_skip", "meliad"},
                                           Program{"brt_lstm_dual", "meliad"}),
                         [](const auto& given) { return given.param.fixture; });

class Import : public ::testing::Test {
 protected:
  // Imports `arrays`; the model file may only be created on success.
  Result import(const Arrays& arrays, const std::string& program, const std::string& config,
                const Arguments& more = {}) {
    write_arrays(folder_.file("in.safetensors"), arrays);
    Arguments arguments = {"import",   "--from", program, folder_.file("in.safetensors"),
                           "--config", config,   "-o",    folder_.file("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Result result = rondo(arguments);
    EXPECT_EQ(exists_output(), result.code == 0);
    EXPECT_EQ(folder_.count(), result.code == 0 ? 2 : 1) << "leftovers";
    return result;
  }
  bool exists_output() const { return std::filesystem::exists(folder_.file("out.safetensors")); }
  Arrays output() const { return read_arrays(folder_.file("out.safetensors")); }

  static Arrays authors_weights(const std::string& name) {
    const Arrays reference = read_arrays(fixture(name + ".safetensors"));
    Arrays weights = below(reference, "p/");
    for (const auto& [key, array] : below(reference, "b/")) weights[key] = array;
    return weights;
  }

  TempDir folder_;
};

TEST_F(Import, FixedTablesOfTheirsAreIgnored) {
  for (const char* name : {"ringformer_vision", "ringformer_translation"}) {
    Arrays weights = authors_weights(name);
    const Arrays reference = read_arrays(fixture(std::string(name) + ".safetensors"));
    for (const auto& [key, array] : below(reference, "const/")) weights[key] = array;
    const Result result = import(weights, "ringformer", fixture(std::string(name) + ".toml"));
    EXPECT_EQ(result.code, 0) << result.err;
    std::filesystem::remove(folder_.file("out.safetensors"));
  }
}

// A published SReT checkpoint lists a block's weights once per loop: blocks.{4k} and blocks.{4k+2}.
TEST_F(Import, RepeatedNamesOfSharedBlocksMustAgree) {
  Arrays weights = authors_weights("sret_mini");
  Arrays repeated;
  for (const auto& [name, array] : weights) {
    if (name.rfind("transformers.0.blocks.0.", 0) == 0) {
      repeated["transformers.0.blocks.2." + name.substr(24)] = array;
    }
  }
  ASSERT_GE(repeated.size(), 12u);
  weights.insert(repeated.begin(), repeated.end());
  EXPECT_EQ(import(weights, "sret", fixture("sret_mini.toml")).code, 0);
  std::filesystem::remove(folder_.file("out.safetensors"));

  weights["transformers.0.blocks.2.mlp.fc1.bias"].bytes[0] ^= 1;
  expect_refusal(
      import(weights, "sret", fixture("sret_mini.toml")), ExitCode::bad_input,
      "transformers.0.blocks.2.mlp.fc1.bias: differs from transformers.0.blocks.0.mlp.fc1.bias");
}

TEST_F(Import, AnotherModelsFileListsEveryName) {
  const Arrays weights = authors_weights("brt_slide");
  const std::string config = fixture("ringformer_vision.toml");
  const Result few = import(weights, "ringformer", config);
  expect_refusal(few, ExitCode::bad_input, "more (--all lists them)");
  EXPECT_EQ(lines_of(few.err).size(), 1 + 5 + 1 + 1U) << few.err;
  const Result result = import(weights, "ringformer", config, {"--all"});
  expect_refusal(result, ExitCode::bad_input, "do not match the model");
  for (const auto& [name, array] : weights) {
    EXPECT_TRUE(contains(result.err, "unmapped: " + name + "\n")) << name;
  }
  EXPECT_TRUE(contains(result.err, "missing: head.weight (for head.weight [10, 48])"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "check --from and --config"));
}

TEST_F(Import, OneTensorTooFewTooManyOrMisshapenIsNamed) {
  const std::string config = fixture("ringformer_vision.toml");
  const Arrays right = authors_weights("ringformer_vision");
  Arrays few = right;
  few.erase("transformer.encoder.layers.0.attn.query.weight");
  expect_refusal(import(few, "ringformer", config), ExitCode::bad_input,
                 "1 tensor does not match the model:\n    missing: "
                 "transformer.encoder.layers.0.attn.query.weight");
  Arrays many = right;
  many["optimizer.step"] = floats({1}, {1});
  expect_refusal(import(many, "ringformer", config), ExitCode::bad_input,
                 "unmapped: optimizer.step");
  Arrays other = right;
  other["head.bias"] = ramp({9});
  expect_refusal(import(other, "ringformer", config), ExitCode::bad_input,
                 "head.bias (for head.bias): expected shape [10], got [9]");
}

TEST_F(Import, ProgramsAndConfigurationsThatDoNotGoTogether) {
  const Arrays weights = authors_weights("brt_slide");
  expect_refusal(import(weights, "tensor2tensor", fixture("brt_slide.toml")), ExitCode::usage,
                 "choose one of ringformer, sret, meliad, deit");
  expect_refusal(import(weights, "sret", fixture("brt_slide.toml")), ExitCode::bad_input,
                 "import from sret: expected a pyramid");
  expect_refusal(import(weights, "meliad", "sret/t"), ExitCode::bad_input, "import from meliad");
  expect_refusal(import(weights, "deit", "sret/t"), ExitCode::bad_input, "import from deit");
  expect_refusal(import(weights, "ringformer", "brt/xl-512"), ExitCode::bad_input,
                 "import from ringformer");
  expect_refusal(import(weights, "meliad", "brt/xl-521"), ExitCode::usage,
                 "did you mean 'brt/xl-512'?");
}

// DeiT keeps query, key and value as one weight.
TEST_F(Import, DeitsJointProjectionIsTakenApart) {
  const int64_t d = 12;
  Arrays theirs = {{"patch_embed.proj.weight", ramp({d, 3, 4, 4})},
                   {"patch_embed.proj.bias", ramp({d})},
                   {"pos_embed", ramp({1, 5, d})},
                   {"cls_token", ramp({1, 1, d})},
                   {"norm.weight", ramp({d})},
                   {"norm.bias", ramp({d})},
                   {"head.weight", ramp({7, d})},
                   {"head.bias", ramp({7})}};
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    theirs[block + "attn.qkv.weight"] = ramp({3 * d, d});
    theirs[block + "attn.qkv.bias"] = ramp({3 * d});
    theirs[block + "attn.proj.weight"] = ramp({d, d});
    theirs[block + "attn.proj.bias"] = ramp({d});
    theirs[block + "mlp.fc1.weight"] = ramp({24, d});
    theirs[block + "mlp.fc1.bias"] = ramp({24});
    theirs[block + "mlp.fc2.weight"] = ramp({d, 24});
    theirs[block + "mlp.fc2.bias"] = ramp({d});
    for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) {
      theirs[block + norm] = ramp({d});
    }
  }
  Arguments sizes;
  for (const char* set :
       {"image=8", "patch=4", "classes=7", "width=12", "hidden=24", "heads=3", "depth.levels=2"}) {
    sizes.insert(sizes.end(), {"--set", std::string("model.") + set});
  }
  const Result result = import(theirs, "deit", "sret/deit-t", sizes);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<double> joint = theirs["blocks.1.attn.qkv.bias"].numbers();
  const std::vector<double> values = output().at("stack.mixing.1.projections.value.bias").numbers();
  EXPECT_EQ(values, std::vector<double>(joint.begin() + 2 * d, joint.end()));
}

TEST_F(Import, FilesThatCannotBeReadOrWritten) {
  const std::string config = fixture("ringformer_vision.toml");
  const auto import_file = [&](const std::string& input, const std::string& output) {
    return rondo({"import", "--from", "ringformer", input, "--config", config, "-o", output});
  };
  const std::string good = folder_.file("good.safetensors");
  write_arrays(good, authors_weights("ringformer_vision"));
  expect_refusal(import_file("nowhere.safetensors", folder_.file("o")), ExitCode::io,
                 "nowhere.safetensors: cannot open");
  expect_refusal(import_file(good, folder_.file("no/such/folder/o")), ExitCode::io,
                 "no/such/folder/o");
  const std::string whole = slurp(good);
  for (const size_t kept : {size_t{0}, size_t{7}, size_t{100}, whole.size() - 1}) {
    spill(folder_.file("cut.safetensors"), whole.substr(0, kept));
    expect_refusal(import_file(folder_.file("cut.safetensors"), folder_.file("o")),
                   ExitCode::bad_input, "cut.safetensors");
  }
  EXPECT_EQ(folder_.count(), 2);
}

}  // namespace
}  // namespace rondo::testing
