#include "cli/workspace_files.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_most_bytes = std::size_t{4} << 20;

bool is_executable(const fs::path& file) {
  std::error_code error;
  return (fs::status(file, error).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

Result<void> add_file(NewFiles& files, const fs::path& source, const std::string& relative) {
  auto content = util::read_file(source, k_most_bytes);
  if (!content) return fail(content.error());
  files[relative] = {std::move(*content), false, is_executable(source)};
  return {};
}

/// The installation's own files: links in it are ours, and followed.
Result<void> add_folder(NewFiles& files, const fs::path& source, const std::string& relative) {
  std::error_code error;
  for (fs::directory_iterator entry(source, error), end; !error && entry != end; entry.increment(error)) {
    auto const name = entry->path().filename().string();
    if (name == "__pycache__" || name.starts_with('.')) continue;
    auto const target = relative.empty() ? name : relative + "/" + name;
    auto added =
        entry->is_directory() ? add_folder(files, entry->path(), target) : add_file(files, entry->path(), target);
    if (!added) return added;
  }
  if (error) {
    return fail(Outcome::environment_error,
                fmt::format("cannot read {} of the installation: {}", source.string(), error.message()),
                {"install cuda-agent again"});
  }
  return {};
}

bool is_there(const NewFile& file, const fs::path& path) {
  std::error_code error;
  if (file.link) return fs::read_symlink(path, error) == fs::path(file.content);
  if (fs::is_symlink(path, error)) return false;
  auto const content = util::read_file(path, k_most_bytes);
  return content && *content == file.content;
}

tl::unexpected<Error> cannot(std::string_view verb, const fs::path& path, const std::string& why) {
  return fail(Outcome::environment_error,
              fmt::format("cannot {} {}: {}", verb, util::escape_untrusted(path.string()), why));
}

Result<void> write_link(const NewFile& file, const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (!error) fs::create_symlink(file.content, path, error);
  if (error) return cannot("make the link", path, error.message());
  return {};
}

Result<void> write_one(const NewFile& file, const fs::path& path) {
  if (auto made = util::make_folders(path.parent_path()); !made) return made;
  if (is_there(file, path)) return {};
  if (file.link) return write_link(file, path);
  if (auto written = util::write_file(path, file.content); !written) return written;
  if (file.executable && ::chmod(path.c_str(), 0755) != 0) return cannot("make executable", path, std::strerror(errno));
  return {};
}

}  // namespace

Result<NewFiles> common_files(const Installation& installation) {
  NewFiles files;
  auto const& places = installation.judge;
  auto added = add_file(files, places.templates / "SKILL.md", "SKILL.md");
  if (added) added = add_folder(files, places.templates / "utils", "utils");
  if (added) added = add_file(files, places.templates / "gitignore", ".gitignore");
  if (added) added = add_file(files, places.support / "binding.cpp", "binding.cpp");
  if (added) added = add_file(files, places.support / "binding_registry.h", "binding_registry.h");
  if (!added) return fail(added.error());
  for (auto const* const folder : {".agents", ".claude"}) {
    files[fmt::format("{}/skills/cuda-agent/SKILL.md", folder)] = {"../../../SKILL.md", true, false};
  }
  return files;
}

Result<NewFiles> example_files(const Installation& installation) {
  NewFiles files;
  auto added = add_file(files, installation.example / "model.py", "model.py");
  if (added) added = add_file(files, installation.example / "model_new.py", "model_new.py");
  if (added) added = add_folder(files, installation.example / "kernels", "kernels");
  if (!added) return fail(added.error());
  return files;
}

std::vector<std::string> conflicts(const NewFiles& files, const fs::path& folder) {
  std::vector<std::string> names;
  for (auto const& [name, file] : files) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder / name, error)) && !is_there(file, folder / name)) names.push_back(name);
  }
  return names;
}

Result<void> write_files(const NewFiles& files, const fs::path& folder) {
  for (auto const& [name, file] : files) {
    if (auto written = write_one(file, folder / name); !written) return written;
  }
  return {};
}

}  // namespace cuda_agent::cli
