#include "judge/interpreter_places.hpp"

#include <string>

namespace cuda_agent::judge {
namespace fs = std::filesystem;
namespace {

bool has_space(const fs::path& path) { return path.string().find_first_of(" \t\n") != std::string::npos; }

}  // namespace

InterpreterPlaces::InterpreterPlaces(const build::Interpreter& interpreter) {
  add(interpreter.base_prefix);
  add(interpreter.prefix);
  add(interpreter.torch_dir);
  for (fs::path const& path : interpreter.library_dirs) add(path);
  for (fs::path const& path : interpreter.search_path) {
    if (path.is_absolute()) add(path);
  }
}

void InterpreterPlaces::bind(exec::SandboxPlan& plan) const {
  for (auto const& [outside, inside] : m_places) {
    plan.binds.push_back({outside, {}, false, true});
    if (inside != outside) plan.binds.push_back({outside, inside, false, true});
  }
}

std::vector<fs::path> InterpreterPlaces::outside() const {
  std::vector<fs::path> paths;
  for (auto const& [outside, inside] : m_places) paths.push_back(outside);
  return paths;
}

fs::path InterpreterPlaces::inside(const fs::path& path) const {
  for (auto const& [outside, inside] : m_places) {
    auto const rest = path.lexically_relative(outside);
    if (outside != inside && !rest.empty() && *rest.begin() != "..") return (inside / rest).lexically_normal();
  }
  return path;
}

void InterpreterPlaces::add(const fs::path& path) {
  if (path.empty() || path == "/") return;
  fs::path place = inside(path);
  if (place != path) return;  // lies in one that is there
  if (has_space(path)) place = fs::path("/interpreter") / std::to_string(m_places.size());
  m_places.emplace_back(path, place);
}

}  // namespace cuda_agent::judge
