#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "build/extension.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> usual_places() {
  // What the user names is taken or refused, never silently replaced.
  if (auto const named = util::get_env("CUDA_AGENT_CACHE"); named && !named->empty()) return {fs::absolute(*named)};
  std::vector<fs::path> places;
  if (auto const base = util::get_env("XDG_CACHE_HOME"); base && fs::path(*base).is_absolute()) {
    places.push_back(fs::path(*base) / "cuda-agent");
  }
  if (auto const home = util::get_env("HOME"); home && fs::path(*home).is_absolute()) {
    places.push_back(fs::path(*home) / ".cache" / "cuda-agent");
  }
  return places;
}

bool is_usable(const fs::path& place) {
  return static_cast<bool>(util::make_folders(place)) && ::access(place.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Result<Cache> open_cache(const fs::path& fallback) {
  auto places = usual_places();
  bool const named = !util::get_env("CUDA_AGENT_CACHE").value_or("").empty();
  if (!named && !fallback.empty()) places.push_back(fallback);
  for (auto const& place : places) {
    if (is_usable(place)) return Cache{place};
  }
  return fail(Outcome::environment_error,
              fmt::format("no cache folder can be written{}", places.empty() ? "" : ": " + places.front().string()),
              {"Set CUDA_AGENT_CACHE to a folder that can be written."});
}

}  // namespace cuda_agent::build
