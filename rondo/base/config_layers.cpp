// ConfigTable: merging one table into another, with source locations preserved.
#include <fmt/core.h>

#include <algorithm>

#include "rondo/base/config.h"
#include "rondo/base/config_node.h"
#include "rondo/base/error.h"

namespace rondo {
namespace {

using Source = std::shared_ptr<const std::string>;

// Sets the source of `node` and its descendants to `source` where none is set yet.
void stamp(ConfigNode& node, const Source& source) {
  if (node.source == nullptr) node.source = source;
  for (ConfigNode& child : node.children) stamp(child, node.source);
}

void merge_node(ConfigNode& into, const ConfigNode& over, const Source& source) {
  for (const ConfigNode& child : over.children) {
    ConfigNode* ours = into.child(child.key);
    const Source from = child.source != nullptr ? child.source : source;
    if (ours != nullptr && ours->kind == ConfigNode::Kind::table && child.kind == ours->kind) {
      merge_node(*ours, child, from);
      continue;
    }
    if (ours == nullptr) ours = &into.children.emplace_back();
    *ours = child;
    stamp(*ours, from);
  }
}

}  // namespace

void ConfigTable::merge(const ConfigTable& over) {
  if (source_name_.empty()) source_name_ = over.source_name_;
  merge_node(*root_, *over.root_, std::make_shared<const std::string>(over.source_name_));
}

void ConfigTable::erase(std::string_view key) {
  auto& children = root_->children;
  children.erase(std::remove_if(children.begin(), children.end(),
                                [&](const ConfigNode& child) { return child.key == key; }),
                 children.end());
}

std::optional<double> ConfigTable::get_number(std::string_view dotted_key) const {
  const ConfigNode* node = find(dotted_key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == ConfigNode::Kind::whole) return static_cast<double>(node->whole);
  if (node->kind == ConfigNode::Kind::number) return node->number;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected a number, got {}", where(dotted_key), show_node(*node)));
}

std::string ConfigTable::source_of(std::string_view dotted_key) const {
  const ConfigNode* node = find(dotted_key);
  if (node == nullptr) return "";
  if (node->line == 0) return "--set";
  return fmt::format("{}:{}", node->source != nullptr ? *node->source : source_name_, node->line);
}

}  // namespace rondo
