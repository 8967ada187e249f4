// A table of named entries, used to look up variants (depth schemes, kinds of time) by the name in
// a configuration. Built-in entries are listed where the table is created; programs that use the
// library add their own with a Registration.
//
// Lookups are thread-safe; adding and removing are not, and belong at program start.
#pragma once

#include <algorithm>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {

// Entry: a struct with a std::string `name`.
template <class Entry>
class Registry {
 public:
  // `key`: the configuration key, for messages.
  Registry(std::string key, std::list<Entry> entries)
      : key_(std::move(key)), entries_(std::move(entries)) {}

  // Throws Error{bad_input} listing all names if `name` is unknown.
  const Entry& find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    throw Error(ExitCode::bad_input, key_ + ": unknown name '" + name + "'",
                "choose one of " + join(names(), ", "));
  }
  // In insertion order.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

  // Throws Error{failure} if the name is taken.
  void add(Entry entry) {
    const std::vector<std::string> taken = names();
    if (std::find(taken.begin(), taken.end(), entry.name) != taken.end()) {
      throw Error(ExitCode::failure, key_ + ": the name '" + entry.name + "' is taken",
                  "choose another name");
    }
    entries_.push_back(std::move(entry));
  }
  void remove(const std::string& name) {
    entries_.remove_if([&](const Entry& entry) { return entry.name == name; });
  }

 private:
  std::string key_;
  std::list<Entry> entries_;  // a list keeps references to entries stable
};

// RAII registration: the entry exists for the lifetime of this object.
template <class Entry>
class Registration {
 public:
  Registration(Registry<Entry>& registry, Entry entry) : registry_(registry), name_(entry.name) {
    registry_.add(std::move(entry));
  }
  ~Registration() { registry_.remove(name_); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Registry<Entry>& registry_;
  std::string name_;
};

}  // namespace rondo
