// A table of named entries: how variants (depth schemes, kinds of time) are found by the name that
// a configuration gives. Rondo's own are listed where the table is made; a program that uses the
// library adds its own with a Registration.
//
// Reading is safe from any thread; adding and removing is not, and belongs where a program starts.
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
  // `key`: of the configuration, for messages.
  Registry(std::string key, std::list<Entry> entries)
      : key_(std::move(key)), entries_(std::move(entries)) {}

  // Error{bad_input} that lists the names if there is none of this one.
  const Entry& find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    throw Error(ExitCode::bad_input, key_ + ": unknown name '" + name + "'",
                "choose one of " + join(names(), ", "));
  }
  // In the order in which they were added.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

  // Error{failure} if the name is taken.
  void add(Entry entry) {
    const std::vector<std::string> taken = names();
    if (std::find(taken.begin(), taken.end(), entry.name) != taken.end()) {
      throw Error(ExitCode::failure, key_ + ": the name '" + entry.name + "' is taken",
                  "give it another name");
    }
    entries_.push_back(std::move(entry));
  }
  void remove(const std::string& name) {
    entries_.remove_if([&](const Entry& entry) { return entry.name == name; });
  }

 private:
  std::string key_;
  std::list<Entry> entries_;  // references to entries stay good when others come and go
};

// An entry of a registry for as long as this object lives.
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
