#include "build/host_prefix.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "build/extension.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr const char* prefix_header = "prefix.h";
constexpr const char* precompiled_prefix = "prefix.h.gch";
constexpr std::size_t smallest_prefix = 200'000;  // bytes; reading them takes about 40 ms
constexpr std::size_t most_prefixes = 8;          // of 20 to 100 MB each
constexpr std::chrono::minutes between_tries{10};

// # 12 "kernels/axpby.cu" 2
bool is_marker(std::string_view line) {
  return line.size() > 2 && line[0] == '#' && line[1] == ' ' && line[2] >= '0' && line[2] <= '9';
}

bool is_marker_of_own_file(std::string_view line) {
  if (!is_marker(line)) return false;
  auto const quote = line.find('"');
  return quote != std::string_view::npos && quote + 1 < line.size() && line[quote + 1] != '/' && line[quote + 1] != '<';
}

// g++ does not keep them in a precompiled header.
bool is_diagnostic_pragma(std::string_view line) { return line.rfind("#pragma GCC diagnostic", 0) == 0; }

// cudafe++ writes one include into the text: a header of the toolkit, which belongs to the key. Any other file could
// change without the text.
bool reads_another_file(std::string_view line) {
  return !is_marker(line) && line.find("include") != std::string_view::npos &&
         line != "#include \"crt/host_runtime.h\"";
}

fs::file_time_type last_use(const fs::path& folder) {
  std::error_code error;
  auto const when = fs::last_write_time(folder / precompiled_prefix, error);
  return error ? fs::last_write_time(folder, error) : when;
}

void remove_oldest(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (auto const& entry : fs::directory_iterator(folder, error)) found.emplace_back(last_use(entry.path()), entry);
  std::sort(found.begin(), found.end(), std::greater<>());
  for (std::size_t i = most_prefixes; i < found.size(); ++i) fs::remove_all(found[i].second, error);
}

// Somebody else is at it, or it cannot be precompiled.
bool was_tried(const fs::path& folder) {
  std::error_code error;
  auto const when = fs::last_write_time(folder / prefix_header, error);
  return !error && fs::file_time_type::clock::now() - when < between_tries;
}

void replace_word(Flags& words, const std::string& from, const std::string& to) {
  std::replace(words.begin(), words.end(), from, to);
}

}  // namespace

std::optional<HostText> split_host_text(const std::string& text) {
  HostText split;
  std::string pragmas;
  std::size_t const first = text.find('\n');  // # 1 "kernels/axpby.cu": files of any name share a prefix
  if (first == std::string::npos || !is_marker_of_own_file(std::string_view(text).substr(0, first)))
    return std::nullopt;
  std::size_t start = first + 1;
  for (std::size_t end = 0; start < text.size(); start = end + 1) {
    end = std::min(text.find('\n', start), text.size() - 1);
    std::string_view const line(text.data() + start, end - start);
    if (is_marker_of_own_file(line)) break;
    if (line.empty() || line[0] != '#') continue;
    if (reads_another_file(line)) return std::nullopt;
    if (is_diagnostic_pragma(line)) pragmas += std::string(line) + "\n";
  }
  if (start >= text.size() || start - first < smallest_prefix) return std::nullopt;
  split.prefix = text.substr(first + 1, start - first - 1);
  split.rest = pragmas + text.substr(start);
  return split;
}

HostPrefix::HostPrefix(const Cache& cache, const std::string& prefix, const std::string& compiler_identity,
                       Flags command, std::string input, std::string object)
    : m_command(std::move(command)), m_input(std::move(input)), m_object(std::move(object)) {
  Flags named = m_command;
  replace_word(named, m_input, "input");
  replace_word(named, m_object, "object");
  m_folder = cache.root / "prefixes" /
             util::sha256_hex(fmt::format("1\n{}\n{}\n{}", compiler_identity, util::join(named, "\n"), prefix));
}

bool HostPrefix::is_ready() const {
  std::error_code error;
  return fs::exists(m_folder / precompiled_prefix, error);
}

Flags HostPrefix::with_prefix(const BuildRoom& room) const {
  // The oldest are removed: this one was used just now.
  std::error_code error;
  fs::last_write_time(m_folder / precompiled_prefix, fs::file_time_type::clock::now(), error);
  Flags words = m_command;
  words.insert(words.begin() + 1, {"-include", room.seen(place(), prefix_header).string()});
  return words;
}

std::optional<exec::Command> HostPrefix::prepare(const BuildRoom& room, const std::string& prefix) {
  if (was_tried(m_folder)) return std::nullopt;
  if (!util::make_folders(m_folder) || !util::write_file(m_folder / prefix_header, prefix)) return std::nullopt;
  auto temporary = util::TemporaryFolder::make(m_folder, ".new-");
  if (!temporary) return std::nullopt;
  m_output = std::move(*temporary);
  remove_oldest(m_folder.parent_path());
  Flags words = m_command;
  std::erase(words, "-c");
  replace_word(words, "c++", "c++-header");
  replace_word(words, m_input, room.seen(place(), prefix_header).string());
  replace_word(words, m_object, room.seen(BuildRoom::output_place(m_output->path()), precompiled_prefix).string());
  return room.command(std::move(words), m_output->path(), {place()});
}

void HostPrefix::publish() const {
  std::error_code error;
  fs::rename(m_output->path() / precompiled_prefix, m_folder / precompiled_prefix, error);
}

}  // namespace cuda_agent::build
