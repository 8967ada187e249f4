// The common part of importing: finding, reshaping and checking tensors, and reporting problems.
#include "rondo/model/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

struct Program {
  const char* name;
  std::unique_ptr<Layout> (*layout)(const ModelConfig&);
};

constexpr Program kPrograms[] = {
    {"ringformer", ringformer_layout}, {"sret", sret_layout},
    {"meliad", meliad_layout},         {"deit", deit_layout},
    {"timm-vit", timm_vit_layout},
};

// The tensor described by a Source; undefined if one of its names is missing.
Tensor assemble(const SafetensorsFile& file, const Source& source) {
  std::vector<Tensor> parts;
  for (const std::string& name : source.names) {
    const TensorEntry* entry = file.find(name);
    if (entry == nullptr) return {};
    parts.push_back(tensor_view(file, *entry));
  }
  Tensor t = parts.size() == 1 ? parts.front() : at::cat(parts, 0);
  if (source.row >= 0) {
    if (t.dim() < 1 || source.row >= t.size(0)) return {};
    t = t.select(0, source.row);
  }
  if (source.third >= 0) {
    if (t.dim() < 1 || t.size(0) % 3 != 0) return {};
    t = t.chunk(3, 0)[static_cast<size_t>(source.third)];
  }
  return source.transpose && t.dim() == 2 ? t.t() : t;
}

// Compares the file with the layout; reports one line per difference.
class Matching {
 public:
  Matching(const NamedTensors& ours, const SafetensorsFile& file, const Layout& layout)
      : file_(file) {
    for (const auto& [name, tensor] : ours) match(name, tensor, layout.source(name));
    for (const Extra& extra : layout.extras()) check(extra);
    for (const TensorEntry& entry : file.entries()) {
      if (used_.count(entry.name) == 0) problems_.push_back("unmapped: " + entry.name);
    }
  }
  const std::vector<std::string>& problems() const { return problems_; }
  const std::map<std::string, Tensor>& found() const { return found_; }

 private:
  void match(const std::string& name, const Tensor& ours, const Source& source) {
    used_.insert(source.names.begin(), source.names.end());
    const std::string theirs = fmt::format("{}", fmt::join(source.names, " + "));
    const Tensor t = source.names.empty() ? Tensor() : assemble(file_, source);
    if (!t.defined()) {
      problems_.push_back(fmt::format("missing: {} (for {} {})",
                                      theirs.empty() ? "no such tensor" : theirs, name,
                                      ours.sizes().vec()));
    } else if (t.sizes() != ours.sizes()) {
      problems_.push_back(fmt::format("{} (for {}): expected shape {}, got {}", theirs, name,
                                      ours.sizes().vec(), t.sizes().vec()));
    } else if (const std::string wrong = non_finite_text(t.to(ours.scalar_type()));
               !wrong.empty()) {
      problems_.push_back(fmt::format("{} (for {}): {}", theirs, name, wrong));
    } else {
      found_[name] = t;
    }
  }

  void check(const Extra& extra) {
    const TensorEntry* entry = file_.find(extra.name);
    if (entry == nullptr) return;
    used_.insert(extra.name);
    if (extra.kind == Extra::Kind::table) return;
    if (extra.kind == Extra::Kind::stranger) {
      problems_.push_back(fmt::format("{}: {}, which is not supported", extra.name, extra.of));
      return;
    }
    const TensorEntry* first = file_.find(extra.of);
    if (first != nullptr && !tensor_view(file_, *entry).equal(tensor_view(file_, *first))) {
      problems_.push_back(
          fmt::format("{}: differs from {}, but the two are shared", extra.name, extra.of));
    }
  }

  const SafetensorsFile& file_;
  std::set<std::string> used_;
  std::vector<std::string> problems_;
  std::map<std::string, Tensor> found_;
};

}  // namespace

std::unique_ptr<Layout> make_layout(const std::string& program, const ModelConfig& config) {
  std::vector<std::string> names;
  for (const Program& p : kPrograms) {
    if (program == p.name) return p.layout(config);
    names.emplace_back(p.name);
  }
  throw Error(ExitCode::usage, fmt::format("--from: unknown program '{}'", program),
              fmt::format("choose one of {}", fmt::join(names, ", ")));
}

void import_weights(Network& network, const SafetensorsFile& file, const Layout& layout,
                    bool list_all) {
  const NamedTensors ours = named_tensors(network);
  const Matching matching(ours, file, layout);
  if (!matching.problems().empty()) {
    constexpr size_t kListed = 5;
    std::vector<std::string> listed = matching.problems();
    const size_t all = listed.size();
    if (!list_all && all > kListed) {
      listed.resize(kListed);
      listed.push_back(fmt::format("and {} more (--all lists them)", all - kListed));
    }
    throw Error(ExitCode::bad_input,
                fmt::format("{}: {} not match the model:\n    {}", file.path(),
                            counted(static_cast<int64_t>(all), "tensor does", "tensors do"),
                            fmt::join(listed, "\n    ")),
                "check --from and --config; every tensor in the file must map to a weight");
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : matching.found()) {
    Tensor target = ours.at(name);
    target.copy_(tensor);
  }
}

NameParts::NameParts(const std::string& name) : parts_(split(name, '.')) {}

const std::string& NameParts::operator[](size_t at) const {
  static const std::string none;
  return at < parts_.size() ? parts_[at] : none;
}

int64_t NameParts::number(size_t at) const {
  const std::string& text = (*this)[at];
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoll(text) : -1;
}

NormOwner norm_owner(const DepthPlan& plan, int64_t norm) {
  for (int64_t i = 0; i < plan.size(); ++i) {
    const Level& level = plan.levels[static_cast<size_t>(i)];
    if (level.mixing_norm == norm) return {i, NormOwner::Role::mixing};
    if (level.cross_norm == norm) return {i, NormOwner::Role::cross};
    if (level.feed_forward_norm == norm) return {i, NormOwner::Role::feed_forward};
  }
  return {};
}

}  // namespace rondo
