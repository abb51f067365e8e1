#include "build/build_room.hpp"

#include <algorithm>

#include <unistd.h>

#include "build/tool_environment.hpp"
#include "exec/sandbox.hpp"
#include "util/files.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_memory = 16ULL << 30U;
constexpr std::uint64_t largest_file = 4ULL << 30U;
constexpr std::size_t largest_copied = 64U << 20U;  // more than all of a snapshot
const fs::path inside_source = "/cuda-agent/source";
const fs::path inside_output = "/cuda-agent/out";

// Less than all of the machine's memory: a template that explodes must not take the judge down.
std::uint64_t memory_limit() {
  auto const pages = ::sysconf(_SC_PHYS_PAGES);
  auto const page_size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return most_memory;
  return std::min(most_memory, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size) / 4 * 3);
}

// What every sandbox shows anyway.
bool is_system_path(const fs::path& path) {
  std::string const text = path.string();
  return text == "/usr" || text == "/" || text.rfind("/usr/", 0) == 0 || text.rfind("/opt/", 0) == 0;
}

void add_visible(std::vector<fs::path>& visible, const fs::path& folder) {
  if (folder.empty() || is_system_path(folder)) return;
  if (std::find(visible.begin(), visible.end(), folder) == visible.end()) visible.push_back(folder);
}

// A compiler outside the system's folders needs what lies beside its bin folder.
fs::path prefix_of(const fs::path& executable) {
  std::error_code error;
  fs::path const real = fs::canonical(executable, error);
  return (error ? executable : real).parent_path().parent_path();
}

Result<void> copy_file_to(const fs::path& from, const fs::path& to) {
  // std::filesystem::copy_file would say "Input/output error" of a full disk.
  if (auto made = util::make_folders(to.parent_path()); !made) return made;
  auto const content = util::read_file(from, largest_copied);
  if (!content) return fail(content.error());
  return util::write_file(to, *content);
}

Result<void> copy_kernels(const fs::path& snapshot, const fs::path& source) {
  std::error_code error;
  fs::create_directories(source / "kernels", error);
  std::error_code walk;
  for (fs::recursive_directory_iterator it(snapshot / "kernels", walk), end; !walk && it != end; it.increment(walk)) {
    if (!fs::is_regular_file(it->symlink_status())) continue;
    if (auto copied = copy_file_to(it->path(), source / it->path().lexically_relative(snapshot)); !copied)
      return copied;
  }
  return {};
}

}  // namespace

Result<BuildRoom> BuildRoom::make(const fs::path& parent, const fs::path& snapshot,
                                  const std::vector<fs::path>& support, const Toolchain& toolchain,
                                  const Interpreter& interpreter) {
  if (auto made = util::make_folders(parent); !made) return fail(made.error());
  auto folder = util::TemporaryFolder::make(fs::absolute(parent), ".build-");
  if (!folder) return fail(folder.error());
  BuildRoom room;
  room.m_folder = std::move(*folder);
  room.m_sandboxed = exec::probe_sandbox().bubblewrap;
  if (auto copied = copy_kernels(snapshot, room.source()); !copied) return fail(copied.error());
  for (auto const& file : support) {
    if (auto copied = copy_file_to(file, room.source() / file.filename()); !copied) return fail(copied.error());
  }
  room.m_tools.push_back(toolchain.host.executable);
  add_visible(room.m_visible, prefix_of(toolchain.host.executable));
  if (toolchain.nvcc) {
    room.m_tools.push_back(toolchain.nvcc->executable);
    add_visible(room.m_visible, toolchain.cuda_home);
    add_visible(room.m_visible, prefix_of(toolchain.nvcc->executable));
  }
  for (auto const& include : interpreter.include_dirs) add_visible(room.m_visible, include);
  for (auto const& library : interpreter.library_dirs) add_visible(room.m_visible, library);
  return room;
}

fs::path BuildRoom::seen_source() const { return m_sandboxed ? inside_source : source(); }

Result<fs::path> BuildRoom::make_output(const std::string& name) const {
  fs::path folder = m_folder.path() / "out" / name;
  if (auto made = util::make_folders(folder); !made) return fail(made.error());
  return folder;
}

BuildRoom::Extra BuildRoom::output_place(const fs::path& output) { return {output, inside_output}; }

fs::path BuildRoom::seen(const Extra& extra, const fs::path& file) const {
  return m_sandboxed ? extra.inside / file : extra.folder / file;
}

exec::Command BuildRoom::command(std::vector<std::string> argv, const fs::path& output,
                                 const std::vector<Extra>& extras) const {
  exec::Command command;
  command.argv = std::move(argv);
  command.env = tool_environment(m_tools, m_sandboxed ? inside_output : output);
  command.limits.address_space = memory_limit();
  command.limits.file_size = largest_file;
  command.cwd = seen_source();
  if (!m_sandboxed) {
    command.no_capabilities = true;
    if (exec::probe_sandbox().landlock > 0) {
      exec::Confinement& confinement = command.confinement.emplace();
      confinement.read = m_visible;
      confinement.read.push_back(source());
      for (auto const& extra : extras) confinement.read.push_back(extra.folder);
      confinement.write.push_back(output);
    }
    return command;
  }
  exec::SandboxPlan plan;
  plan.binds.push_back({source(), inside_source, false, false});
  plan.binds.push_back({output, inside_output, true, false});
  for (auto const& extra : extras) plan.binds.push_back({extra.folder, extra.inside, false, false});
  for (auto const& folder : m_visible) plan.binds.push_back({folder, {}, false, true});
  command.sandbox = std::move(plan);
  return command;
}

}  // namespace cuda_agent::build
