// Help beyond --help: rondo help, shell completion, man pages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rondo::cli {

// Call after all other verbs were added, since these list them.
void add_help_verbs(CLI::App& app);

// A completion script for `shell` ("bash", "zsh", "fish"). Error{usage} for any other.
std::string completion_script(const std::string& shell);

// Writes rondo.1 and one page per verb into `folder`, which is created.
void write_man_pages(const std::string& folder);

}  // namespace rondo::cli
