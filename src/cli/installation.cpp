#include "cli/installation.hpp"

#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "util/files.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> broken(std::string what) {
  return fail(Outcome::environment_error, fmt::format("the installation of cuda-agent is incomplete: {}", what),
              {"install it again: cmake --install BUILD_FOLDER --prefix FOLDER",
               "or run the binary from the tree in which it was built"});
}

Result<Installation> from_layout_file(const fs::path& file) {
  auto const text = util::read_file(file, 1 << 16);
  if (!text) return broken(text.error().message);
  auto const layout = util::parse_json(*text);
  if (!layout || !layout->is_object()) return broken(fmt::format("{} is not a JSON object", file.string()));
  auto const place = [&](const char* key) { return fs::path(layout->value(key, std::string())); };
  Installation found;
  found.judge = {place("support"), place("worker"), place("worker_modules"), place("policy"), place("templates")};
  found.example = place("example");
  found.selftest = place("selftest");
  return found;
}

Installation from_prefix(const fs::path& prefix) {
  auto const share = prefix / "share" / "cuda-agent";
  Installation found;
  found.judge = {share / "support", share / "worker", prefix / "lib" / "cuda-agent" / "worker-modules",
                 share / "policy", share / "templates"};
  found.example = share / "example";
  found.selftest = share / "selftest";
  return found;
}

}  // namespace

Result<Installation> find_installation(const fs::path& executable) {
  if (executable.empty()) return broken("the program cannot find its own file (/proc is not mounted)");
  std::error_code error;
  auto const folder = executable.parent_path();
  auto const layout = folder / "cuda-agent.layout.json";
  auto found = fs::exists(layout, error) ? from_layout_file(layout) : from_prefix(folder.parent_path());
  if (!found) return found;
  // Prebuilt worker modules may be absent: they are then built on first use. So may the cases of the selftest.
  auto const& places = found->judge;
  for (auto const& place : {places.support, places.worker_sources, places.templates, found->example, places.policy}) {
    if (!fs::is_directory(place, error)) {
      return broken(fmt::format("the folder {} is missing", util::escape_untrusted(place.string())));
    }
  }
  return found;
}

Result<Installation> find_installation() { return find_installation(util::own_executable()); }

}  // namespace cuda_agent::cli
