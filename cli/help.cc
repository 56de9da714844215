#include "cli/help.h"

#include "cli/table.h"
#include "fmt/format.h"

namespace reprise::cli {
namespace {

constexpr std::size_t kNameWidth = 24;
constexpr std::size_t kWidth = 100;

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = is_positional ? option->get_name(true) : option->get_name(false, true);
  const std::string type = option->get_type_name();
  if (is_positional) name = type;
  if (!is_positional && !type.empty()) name += fmt::format(" {}", type);
  const std::string text = option->get_description() + (option->get_required() ? " (needed)" : "");
  return fmt::format("  {}\n", hanging(name, text, kNameWidth, kWidth - 2, 2));
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string usage = fmt::format("Usage: {}", name);
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string type = option->get_type_name();
    usage += fmt::format(fmt::runtime(option->get_required() ? " {}" : " [{}]"), type);
  }
  std::string text = usage + " [FLAGS]\n\n" + app->get_description() + "\n";
  text += make_positionals(app);
  // The base class parts groups by two empty lines; one is enough.
  std::string groups = make_groups(app, mode);
  for (std::size_t at = 0; (at = groups.find("\n\n\n", at)) != std::string::npos;) {
    groups.erase(at, 1);
  }
  return text + groups + make_footer(app);
}

}  // namespace reprise::cli
