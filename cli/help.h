#pragma once

// How the help of a command looks.

#include <string>

#include "CLI/CLI.hpp"

namespace reprise::cli {

// Usage, description, flags in groups, examples; wrapped for a terminal of 100 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace reprise::cli
