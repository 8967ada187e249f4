// A model with weights from the papers' authors' own program, imported through the command line:
// tests/fixtures/NAME.{toml,safetensors}.
#pragma once

#include "tests/cli/arrays.h"
#include "tests/cli/process.h"

namespace rondo::testing {

constexpr double kLogitsTolerance = 2e-6;
constexpr double kGradientTolerance = 1e-5;

inline std::string fixture(const std::string& file) { return RONDO_FIXTURES "/" + file; }

class Authors {
 public:
  Authors(std::string name, std::string program)
      : name_(std::move(name)),
        program_(std::move(program)),
        reference_(read_arrays(fixture(name_ + ".safetensors"))) {
    import(weights(), model());
  }

  const Arrays& reference() const { return reference_; }
  const Array& operator[](const std::string& key) const { return reference_.at(key); }
  std::string config() const { return fixture(name_ + ".toml"); }
  const std::string& program() const { return program_; }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string model() const { return file("model.safetensors"); }

  // The authors' weights under their own names, as their program would have saved them.
  Arrays weights() const { return with_buffers("p/"); }

  // `arrays` as a file in the authors' format, imported into `output`.
  Result import(const Arrays& arrays, const std::string& output) const {
    const std::string input = file("theirs.safetensors");
    write_arrays(input, arrays);
    return rondo_ok({"import", "--from", program_, input, "--config", config(), "-o", output});
  }

  // Runs the model and returns the tensors that it wrote.
  Arrays forward(const Arrays& inputs, const Arguments& more = {}) const {
    write_arrays(file("inputs.safetensors"), inputs);
    Arguments arguments = {"forward",  model(),
                           "--input",  file("inputs.safetensors"),
                           "--output", file("outputs.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = rondo_ok(arguments);
    EXPECT_EQ(result.out, "");
    return result.code == 0 ? read_arrays(file("outputs.safetensors")) : Arrays();
  }

  // Every gradient.* of `outputs`, times `scale`, equals the authors' below `prefix`. Gradients
  // that are tiny compared with the largest (sums that cancel) are compared relative to a share of
  // it.
  void expect_gradients(const Arrays& outputs, const std::string& prefix,
                        double scale = 1.0) const {
    const double vanishing = 2e-2;
    // Importing gradients as if they were weights arranges them like our parameters.
    import(with_buffers(prefix), file("gradients.safetensors"));
    const Arrays expected = read_arrays(file("gradients.safetensors"));
    const Arrays gradients = below(outputs, "gradient.");
    EXPECT_FALSE(gradients.empty());
    double most = 0;
    for (const auto& [name, array] : gradients) most = std::max(most, largest(expected.at(name)));
    for (const auto& [name, array] : gradients) {
      const Array& want = expected.at(name);
      const double unit = std::max(largest(want), vanishing * most);
      // A single number is a sum that mostly cancels; the authors' own rounding is most of 1e-5.
      const double room = want.size() == 1 ? 2.0 : 1.0;
      EXPECT_LE(max_difference(array, want, scale) / unit, room * kGradientTolerance) << name;
    }
  }

 private:
  Arrays with_buffers(const std::string& prefix) const {
    Arrays arrays = below(reference_, prefix);
    for (const auto& [name, array] : below(reference_, "b/")) arrays[name] = array;
    return arrays;
  }

  std::string name_;
  std::string program_;
  Arrays reference_;
  TempDir folder_;
};

}  // namespace rondo::testing
