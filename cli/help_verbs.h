// Help in other forms than --help: rondo help, completion of shells, man pages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rondo::cli {

// Last: they speak of all verbs.
void add_help_verbs(CLI::App& app);

// A script for `shell` ("bash", "zsh", "fish"). Error{usage} for another.
std::string completion_script(const std::string& shell);

// Writes rondo.1 and one page for each verb into `folder`, which is made.
void write_man_pages(const std::string& folder);

}  // namespace rondo::cli
