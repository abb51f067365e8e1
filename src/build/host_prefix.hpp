// The headers at the beginning of what cudafe++ writes for the host compiler, precompiled.
//
// Of the 43,000 lines that the host compiler gets for a kernel of the example, 85 are the kernel's. The others are
// CUDA's and the C++ library's headers, rewritten by cudafe++; they are the same at every edit.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "build/build_room.hpp"
#include "build/flags.hpp"

namespace cuda_agent::build {

struct Cache;

struct HostText {
  std::string prefix;  ///< headers by absolute paths only: none of the candidate's own
  std::string rest;    ///< what is left, so that prefix and rest mean what the text meant
};
/// Nothing when the headers are too few to be worth it, or when the prefix would read files itself.
std::optional<HostText> split_host_text(const std::string& text);

/// A folder of the cache with the prefix, and the same precompiled once that was worth it. Found by the whole text and
/// the whole command: what one candidate's compiler made of a text is used for the same text alone.
class HostPrefix {
 public:
  /// `command` is that of the host compiler, with `input` and `object` among its words.
  HostPrefix(const Cache& cache, const std::string& prefix, const std::string& compiler_identity, Flags command,
             std::string input, std::string object);

  bool is_ready() const;
  /// The command with the prefix included before the input.
  Flags with_prefix(const BuildRoom& room) const;
  BuildRoom::Extra place() const { return {m_folder, "/cuda-agent/prefix"}; }

  /// Writes the prefix down, and leaves no more than a few of its kind in the cache; the command precompiles it.
  /// Nothing when that was tried a short time ago, or when the cache cannot be written.
  std::optional<exec::Command> prepare(const BuildRoom& room, const std::string& prefix);
  /// Takes what the command made into the cache.
  void publish() const;

 private:
  std::filesystem::path m_folder;
  Flags m_command;
  std::string m_input;
  std::string m_object;
  std::optional<util::TemporaryFolder> m_output;
};

}  // namespace cuda_agent::build
