// The headers that every binding includes, compiled once: a binding then takes four seconds instead of fourteen.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "build/build_room.hpp"
#include "build/extension.hpp"
#include "build/flags.hpp"
#include "build/jobs.hpp"

namespace cuda_agent::build {

/// A folder of the cache with `bindings.h`, used by `-include`; once `bindings.h.gch` lies beside it the compiler
/// takes that instead. The same text is included in either case, so an object does not depend on which was used.
class PrecompiledHeader {
 public:
  /// Writes the header if it is not there yet. Errors: environment_error (the cache cannot be written).
  static Result<PrecompiledHeader> open(const Cache& cache, Target target, const Flags& binding_flags,
                                        const Toolchain& toolchain, const Interpreter& interpreter);

  /// Whether a binding with this text includes what the header holds anyway.
  static bool fits(const std::string& source_text);

  const std::string& key() const { return m_key; }
  bool is_ready() const;
  BuildRoom::Extra place() const { return {m_folder, "/cuda-agent/bindings"}; }
  Flags include_flags(const BuildRoom& room) const;

  /// The job that makes it and moves the result into the cache; `room` and this object must outlive it.
  /// Failure of the job is no error: bindings compile without it, only slower. Errors: environment_error.
  Result<Job> job(const BuildRoom& room, const Toolchain& toolchain, const Flags& binding_flags);

 private:
  void publish() const;

  std::filesystem::path m_folder;
  std::string m_key;
  std::filesystem::path m_output;
  std::optional<util::TemporaryFolder> m_temporary;
};

}  // namespace cuda_agent::build
