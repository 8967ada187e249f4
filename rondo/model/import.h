// Importing weights of other programs. Each program has one file that maps our tensors to its names
// and layouts; everything else is common.
#pragma once

#include "rondo/config/depth_plan.h"
#include "rondo/model/network.h"

namespace rondo {

// Where to find one of our tensors in another program's file.
struct Source {
  std::vector<std::string> names;  // several: concatenated along the first dimension
  bool transpose = false;          // a [in, out] kernel for our [out, in] weight
  int64_t row = -1;                // this row of a tensor stacked over levels
  int64_t third = -1;              // 0, 1, 2: this third of a fused query-key-value weight
};

// A tensor of the other program that is not one of our weights.
struct Extra {
  enum class Kind {
    table,     // a fixed table that Rondo computes: ignored
    alias,     // the tensor `of` under a second name: must be equal to it
    stranger,  // part of an unsupported network; `of` describes which
  };
  std::string name;
  Kind kind = Kind::table;
  std::string of = {};
};

// One program's layout for one model.
class Layout {
 public:
  virtual ~Layout() = default;
  // `names` is empty if the program has no such tensor.
  virtual Source source(const std::string& our_name) const = 0;
  virtual std::vector<Extra> extras() const { return {}; }
};

// program: "ringformer", "sret", "meliad", "deit" or "timm-vit". Throws Error{usage} for any other,
// Error{bad_input} if the program has no model of this configuration.
std::unique_ptr<Layout> make_layout(const std::string& program, const ModelConfig& config);

// Fills `network` from `file`. Throws Error{bad_input} listing missing, unknown and misshapen
// tensors (the first five unless `list_all`); the network is then unchanged.
void import_weights(Network& network, const SafetensorsFile& file, const Layout& layout,
                    bool list_all = false);

// "stack.norm.3.weight" → {"stack", "norm", "3", "weight"}; `at` past the end gives "".
class NameParts {
 public:
  explicit NameParts(const std::string& name);
  const std::string& operator[](size_t at) const;
  int64_t number(size_t at) const;  // -1 if it is not a number
  std::string last() const { return parts_.back(); }

 private:
  std::vector<std::string> parts_;
};

// The first level of `plan` that uses norm `norm`, and for which sub-layer.
struct NormOwner {
  enum class Role { mixing, cross, feed_forward };
  int64_t level = kNone;
  Role role = Role::mixing;
};
NormOwner norm_owner(const DepthPlan& plan, int64_t norm);

// The layouts, one file each.
std::unique_ptr<Layout> ringformer_layout(const ModelConfig& config);
std::unique_ptr<Layout> sret_layout(const ModelConfig& config);
std::unique_ptr<Layout> deit_layout(const ModelConfig& config);
std::unique_ptr<Layout> timm_vit_layout(const ModelConfig& config);
std::unique_ptr<Layout> meliad_layout(const ModelConfig& config);

}  // namespace rondo
