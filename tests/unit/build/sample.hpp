// A small workspace, and an interpreter that needs no torch: libraries of the right names with nothing in them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "util/files.hpp"

namespace cuda_agent::build::test {

/// What a tool once said, from the folder captured/.
std::string captured(const std::string& name);

/// Sets a variable for the life of the object, or unsets it.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* m_name;
  std::optional<std::string> m_before;
};

class Sample {
 public:
  Sample();

  std::filesystem::path root() const { return m_folder.path(); }
  std::filesystem::path workspace() const { return root() / "workspace"; }
  void write(const std::string& path, std::string_view text) const;
  void remove(const std::string& path) const;
  ExtensionRequest request(Target target) const;
  ExtensionResult build(Target target) const;
  ExtensionResult build(const ExtensionRequest& request) const;

  Cache cache;
  Toolchain toolchain;
  Interpreter interpreter;

 private:
  util::TemporaryFolder m_folder;
};

/// Compiles C++ text to a shared object or an object file ("-shared" or "-c").
void compile(const std::string& text, const std::filesystem::path& output, const std::string& kind,
             const std::vector<std::string>& more = {});

/// The report's entry for a source; fails the test when there is none.
BuiltObject entry(const ExtensionResult& result, const std::string& source);

}  // namespace cuda_agent::build::test
