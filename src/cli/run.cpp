#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "cli/app.hpp"
#include "cli/cli.hpp"
#include "cli/console.hpp"
#include "cli/outcome.hpp"
#include "util/interrupt.hpp"

namespace cuda_agent::cli {

namespace {

bool asks(const std::vector<std::string>& arguments, const std::string& word, const std::string& shorter) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& argument) { return argument == word || argument == shorter; });
}

/// spdlog's own default writes to standard output, which belongs to results.
void log_to_standard_error(const std::vector<std::string>& arguments) {
  auto const logger = std::make_shared<spdlog::logger>("cuda-agent", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("cuda-agent: %l: %v");
  logger->set_level(asks(arguments, "--verbose", "-v") ? spdlog::level::debug : spdlog::level::warn);
  spdlog::set_default_logger(logger);
}

int run_checked(const std::vector<std::string>& arguments, Console& console) {
  auto const command = arguments.empty() ? std::string() : arguments.front();
  Error error(Outcome::internal_error, "",
              {"this is a bug in cuda-agent: please report it, with this message and the command that you gave"});
  try {
    log_to_standard_error(arguments);
    return run_line(arguments, console);
  } catch (const std::bad_alloc&) {
    error.message = "out of memory";
    error.hints = {"free some memory and run the command again; if there was enough, please report this"};
  } catch (const std::exception& exception) {
    error.message = std::string("unexpected error: ") + exception.what();
  }
  return print_failure(console, command, error, asks(arguments, "--json", "--json"));
}

}  // namespace

int run(int argc, char** argv) {
  try {
    open_standard_descriptors();
    util::install_interrupt_handlers();
    std::vector<std::string> const arguments(argv + std::min(argc, 1), argv + argc);
    auto console = real_console();
    console.arguments = arguments;
    return run_checked(arguments, console);
  } catch (...) {  // not even the failure could be reported
    return exit_code(Outcome::internal_error);
  }
}

}  // namespace cuda_agent::cli
