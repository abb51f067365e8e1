// Where a session is found: a socket in a folder of the user's own, named after everything that a session depends on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "util/fd.hpp"

namespace cuda_agent::session {

struct Place {
  std::filesystem::path folder;  ///< of the user's sessions, 0700
  std::string key;               ///< 16 hex digits

  std::filesystem::path socket() const { return folder / (key + ".socket"); }
  std::filesystem::path lock() const { return folder / (key + ".lock"); }
  std::filesystem::path log() const { return folder / (key + ".log"); }
  std::filesystem::path workers() const { return folder / (key + ".workers"); }
};

/// Of the session for this program, user and environment (PATH, CUDA_*, CXX, what finds Python and the caches). Makes
/// the folder. Errors: environment_error, when it cannot be made or is not the user's alone.
Result<Place> own_place();
/// All places of this user with a socket, whatever they depend on.
std::vector<Place> all_places();

/// A connection to whoever listens there, of the same user. Errors: environment_error.
Result<util::Fd> connect_to(const Place& place);
/// A listening socket; one that nobody listens on any more is replaced. Errors: environment_error.
Result<util::Fd> listen_at(const Place& place);
/// Whether the process at the other end is of this user.
bool is_own_user(int connection);

}  // namespace cuda_agent::session
