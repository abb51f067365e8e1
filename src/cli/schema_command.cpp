#include <string>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"
#include "report/schema.hpp"

namespace cuda_agent::cli {

void setup_schema(CLI::App& app, Action& action) {
  auto* const command = add_command(app, "schema", "Print the JSON Schema of the verdict");
  command->callback([&action] {
    action = [](Console& console) { return print_result(console, std::string(report::verdict_schema())); };
  });
}

}  // namespace cuda_agent::cli
