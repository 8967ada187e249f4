// Importing weights of published image networks with their class names; averaging and using them.
#include "tests/cli/authors.h"
#include "tests/cli/pictures.h"

namespace rondo::testing {
namespace {

constexpr int64_t kWidth = 12;

// A vision transformer of two blocks as timm names it; 8 px, patches of 4, 7 classes.
Arrays timm_state(bool class_token) {
  const int64_t d = kWidth;
  Arrays theirs = {{"patch_embed.proj.weight", ramp({d, 3, 4, 4})},
                   {"patch_embed.proj.bias", ramp({d})},
                   {"pos_embed", ramp({1, class_token ? 5 : 4, d})},
                   {"norm.weight", ramp({d})},
                   {"norm.bias", ramp({d})},
                   {"head.weight", ramp({7, d})},
                   {"head.bias", ramp({7})}};
  if (class_token) {
    theirs["cls_token"] = ramp({1, 1, d});
  }
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
  return theirs;
}

class ImportImages : public ::testing::Test {
 protected:
  ImportImages() { spill(folder_.file("names"), "a\tapple\nb\nc\nd\ne\nf\ng\tgrape, the\n"); }

  Result import(const Arrays& arrays, const std::string& output, const Arguments& more = {}) const {
    write_arrays(folder_.file("in.safetensors"), arrays);
    Arguments words = {"import",   "--from",      "timm-vit", folder_.file("in.safetensors"),
                       "--config", "sret/deit-t", "-o",       folder_.file(output)};
    for (const char* set : {"image=8", "patch=4", "classes=7", "width=12", "hidden=24", "heads=3",
                            "depth.levels=2"}) {
      words.insert(words.end(), {"--set", std::string("model.") + set});
    }
    words.insert(words.end(), more.begin(), more.end());
    return rondo(words);
  }
  std::string classes_of(const std::string& model) const {
    const auto metadata = SafetensorsFile::open(folder_.file(model)).metadata();
    const auto found = metadata.find("rondo.classes");
    return found == metadata.end() ? "none" : found->second;
  }
  bool made(const std::string& model) const { return std::filesystem::exists(folder_.file(model)); }
  TempDir folder_;
};

TEST_F(ImportImages, TimmsVisionTransformer) {
  const Result token = import(timm_state(true), "token.safetensors");
  EXPECT_EQ(token.code, 0) << token.err;
  EXPECT_TRUE(contains(token.out, "32 tensors of")) << token.out;
  const Result mean = import(timm_state(false), "mean.safetensors", {"--set", "model.pool=mean"});
  EXPECT_EQ(mean.code, 0) << mean.err;
  EXPECT_EQ(classes_of("mean.safetensors"), "none");
  EXPECT_NE(import(timm_state(false), "no.safetensors").code, 0) << "a class token is missing";
}

// Files whose network computes something else than ours are rejected, never imported silently.
TEST_F(ImportImages, RefusesNetworksThatComputeSomethingElse) {
  Arrays distilled = timm_state(true);
  distilled["dist_token"] = ramp({1, 1, kWidth});
  distilled["head_dist.weight"] = ramp({7, kWidth});
  distilled["head_dist.bias"] = ramp({7});
  expect_refusal(import(distilled, "x.safetensors"), ExitCode::bad_input,
                 "dist_token: part of a distilled network with two heads, which is not supported");
  Arrays late = timm_state(false);
  for (const char* leaf : {"weight", "bias"}) {
    late[std::string("fc_norm.") + leaf] = late[std::string("norm.") + leaf];
    late.erase(std::string("norm.") + leaf);
  }
  expect_refusal(import(late, "x.safetensors", {"--set", "model.pool=mean"}), ExitCode::bad_input,
                 "fc_norm.weight: a norm after the mean over tokens instead of before it, which is "
                 "not supported");
  Arrays scaled = timm_state(true);
  scaled["blocks.1.ls2.gamma"] = ramp({kWidth});
  scaled["reg_token"] = ramp({1, 4, kWidth});
  const Result both = import(scaled, "x.safetensors");
  expect_refusal(both, ExitCode::bad_input, "2 tensors do not match the model");
  EXPECT_TRUE(contains(both.err, "blocks.1.ls2.gamma: a LayerScale of a residual branch, which"));
  EXPECT_TRUE(contains(both.err, "reg_token: part of a network with register tokens, which"));
  EXPECT_FALSE(made("x.safetensors"));
}

TEST_F(ImportImages, KeepsTheNamesOfTheClasses) {
  const Result result =
      import(timm_state(true), "model.safetensors", {"--classes", folder_.file("names")});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(classes_of("model.safetensors"),
            "a\tapple\nb\tb\nc\tc\nd\td\ne\te\nf\tf\ng\tgrape, the\n");
  spill(folder_.file("photo.png"), encode_png(Pictures::picture(3, 1)));
  const std::string said = rondo_ok({"classify", folder_.file("model.safetensors"),
                                     folder_.file("photo.png"), "--top", "7"})
                               .out;
  EXPECT_TRUE(contains(said, "\tapple ")) << said;
  EXPECT_TRUE(contains(said, "\tgrape, the ")) << said;
  const std::string model = folder_.file("model.safetensors");
  rondo_ok({"average", model, model, "-o", folder_.file("mean.safetensors")});
  EXPECT_EQ(classes_of("mean.safetensors"), classes_of("model.safetensors"));
}

TEST_F(ImportImages, RefusesNamesThatDoNotFit) {
  spill(folder_.file("six"), "a\nb\nc\nd\ne\nf\n");
  expect_refusal(import(timm_state(true), "x.safetensors", {"--classes", folder_.file("six")}),
                 ExitCode::bad_input, "six: expected 7 classes, as in the network, got 6");
  expect_refusal(import(timm_state(true), "x.safetensors", {"--classes", folder_.file("none")}),
                 ExitCode::io, "none");
  EXPECT_FALSE(made("x.safetensors"));
  const Authors language("brt_slide", "meliad");
  write_arrays(folder_.file("in.safetensors"), language.weights());
  expect_refusal(
      rondo({"import", "--from", "meliad", folder_.file("in.safetensors"), "--config",
             language.config(), "-o", folder_.file("x"), "--classes", folder_.file("six")}),
      ExitCode::usage, "--classes does not apply to a model of kind language-model");
}

TEST(AverageOfImages, KeepsTheNamesOfARun) {
  const Pictures pictures;
  rondo_ok(pictures.command("run", {"--set", "train.steps=4", "--set", "train.save_every=2"}));
  const std::string mean = pictures.file("mean.safetensors");
  rondo_ok({"average", pictures.file("run"), "-o", mean});
  EXPECT_EQ(SafetensorsFile::open(mean).metadata().at("rondo.classes"),
            slurp(pictures.file("classes.tsv")));
  const std::string said =
      rondo_ok({"classify", mean, pictures.file("test/c0/0.png"), "--top", "6"}).out;
  EXPECT_TRUE(contains(said, "\tshade 5 ")) << said;
}

}  // namespace
}  // namespace rondo::testing
