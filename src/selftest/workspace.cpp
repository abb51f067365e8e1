#include "selftest/workspace.hpp"

#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> cannot_make(const fs::path& path, const std::error_code& error) {
  return fail(Outcome::environment_error, fmt::format("cannot make {} for the selftest: {}",
                                                      util::escape_untrusted(path.string()), error.message()));
}

/// The copy can be changed by its owner: an installed tree may be read-only.
Result<void> copy_case_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, fs::perm_options::add, error);
  return error ? Result<void>(cannot_make(to, error)) : Result<void>();
}

/// All files below `from`, over what is there; what is about the case and not of it is left out.
Result<void> copy_case_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::recursive_directory_iterator entry(from, error);
  for (fs::recursive_directory_iterator const end; !error && entry != end; entry.increment(error)) {
    auto const name = entry->path().filename();
    auto const target = to / entry->path().lexically_relative(from);
    if (entry->is_directory()) {
      if (name == "__pycache__") {
        entry.disable_recursion_pending();
      } else if (auto made = util::make_folders(target); !made) {
        return made;
      }
    } else if (name != "case.json") {
      if (auto copied = copy_case_file(entry->path(), target); !copied) return copied;
    }
  }
  return error ? Result<void>(cannot_make(to, error)) : Result<void>();
}

bool brings_bindings(const Case& one) {
  std::error_code error;
  for (fs::directory_iterator entry(one.folder / "kernels", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().ends_with("_binding.cpp")) return true;
  }
  return false;
}

Result<void> copy_task(const fs::path& task, const fs::path& into, bool with_kernels) {
  if (auto copied = copy_case_files(task, into); !copied || with_kernels) return copied;
  std::error_code error;
  fs::remove_all(into / "kernels", error);
  if (error) return cannot_make(into, error);
  return util::make_folders(into / "kernels");
}

}  // namespace

Result<void> make_workspace(const Case& one, const fs::path& tasks, const fs::path& into) {
  auto const own_bindings = brings_bindings(one);
  if (auto made = util::make_folders(into / "kernels"); !made) return made;
  if (!one.task.empty()) {
    if (auto copied = copy_task(tasks / one.task, into, !own_bindings); !copied) return copied;
  }
  if (!own_bindings) {
    auto const* const common = "case_binding.cpp";
    if (auto copied = copy_case_file(tasks / common, into / "kernels" / common); !copied) return copied;
  }
  if (auto copied = copy_case_files(one.folder, into); !copied) return copied;
  for (auto const& [link, target] : one.links) {
    std::error_code error;
    fs::remove(into / link, error);
    if (!error) fs::create_symlink(target, into / link, error);
    if (error) return cannot_make(into / link, error);
  }
  return {};
}

}  // namespace cuda_agent::selftest
