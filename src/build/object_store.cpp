#include "build/object_store.hpp"

#include <cerrno>
#include <set>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include "build/record_json.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/json.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t largest_manifest = 64U << 20U;
constexpr std::size_t largest_object = std::size_t{2} << 30U;
constexpr std::size_t most_entries = 16;

using Dependencies = std::vector<std::pair<std::string, std::string>>;  // path, state

std::string object_key(const std::string& key, const Dependencies& dependencies) {
  util::Sha256 hash;
  hash.update(key);
  for (auto const& [path, state] : dependencies) hash.update("\n" + path + "\n" + state);
  return hash.hex();
}

// None when a file has changed.
std::optional<std::string> match_entry(const json& entry, const std::string& key, FileStates& files) {
  Dependencies dependencies;
  for (auto const& dependency : entry.at("files")) {
    auto path = dependency.at(0).get<std::string>();
    auto state = dependency.at(1).get<std::string>();
    if (files.of(path) != state) return std::nullopt;
    dependencies.emplace_back(std::move(path), std::move(state));
  }
  return object_key(key, dependencies);
}

json read_manifest(const fs::path& path) {
  auto const text = util::read_file(path, largest_manifest);
  if (!text) return json::array();
  auto manifest = util::parse_json(*text, {largest_manifest, 8});
  return manifest && manifest->is_array() ? *manifest : json::array();
}

std::optional<StoredObject> load(const fs::path& file, const fs::path& record_file) {
  auto const text = util::read_file(record_file, largest_manifest);
  if (!text) return std::nullopt;
  auto const parsed = util::parse_json(*text, {largest_manifest, 16});
  if (!parsed) return std::nullopt;
  StoredObject object{file, record_from_json(*parsed)};
  auto const hash = util::sha256_of_file(file);
  if (!hash || *hash != object.record.sha256) return std::nullopt;
  return object;
}

}  // namespace

// Not with std::filesystem::copy_file: on a full disk it says "Input/output error".
Result<void> copy_into_place(const fs::path& from, const fs::path& to) {
  if (auto made = util::make_folders(to.parent_path()); !made) return made;
  auto const content = util::read_file(from, largest_object);
  if (!content) return fail(content.error());
  return util::write_file(to, *content);
}

const std::string& FileStates::of(const std::string& path) {
  auto const [it, is_new] = m_known.try_emplace(path);
  if (!is_new) return it->second;
  fs::path const file(path);
  if (file.is_relative()) {
    if (auto hash = util::sha256_of_file(m_root / file)) it->second = *hash;
    return it->second;
  }
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0) {
    it->second = fmt::format("{}:{}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return it->second;
}

fs::path ObjectStore::place(const std::string& kind, const std::string& key, const std::string& suffix) const {
  return m_root / kind / key.substr(0, 2) / (key + suffix);
}

std::optional<StoredObject> ObjectStore::find(const std::string& key, FileStates& files) const {
  try {
    for (auto const& entry : read_manifest(place("manifests", key, ".json"))) {
      auto const object = match_entry(entry, key, files);
      if (!object) continue;
      if (auto found = load(place("objects", *object, ".o"), place("objects", *object, ".json"))) return found;
    }
  } catch (const json::exception&) {
    // A manifest of another shape is as good as none; it is replaced by the next `put`.
  }
  return std::nullopt;
}

Result<StoredObject> ObjectStore::put(const std::string& key, const std::vector<std::string>& dependencies,
                                      FileStates& files, const fs::path& object, ObjectRecord record) const {
  Dependencies states;
  std::set<std::string> seen;
  json listed = json::array();
  for (auto const& dependency : dependencies) {
    std::string path = fs::path(dependency).lexically_normal().string();
    if (!seen.insert(path).second) continue;
    std::string const state = files.of(path);
    listed.push_back({path, state});
    states.emplace_back(std::move(path), state);
  }
  auto const hash = util::sha256_of_file(object);
  if (!hash) return fail(hash.error());
  record.sha256 = *hash;
  std::string const name = object_key(key, states);
  fs::path const file = place("objects", name, ".o");
  if (auto copied = copy_into_place(object, file); !copied) return fail(copied.error());
  if (auto written = util::write_file(place("objects", name, ".json"), to_json(record).dump()); !written) {
    return fail(written.error());
  }
  // The manifest comes last: what it names is complete. Two writers at once may lose an entry, which costs a compile.
  json manifest = json::array({{{"files", std::move(listed)}}});
  for (auto& entry : read_manifest(place("manifests", key, ".json"))) {
    if (manifest.size() < most_entries && entry != manifest.front()) manifest.push_back(std::move(entry));
  }
  fs::path const manifest_file = place("manifests", key, ".json");
  if (auto made = util::make_folders(manifest_file.parent_path()); !made) return fail(made.error());
  if (auto written = util::write_file(manifest_file, manifest.dump()); !written) return fail(written.error());
  return StoredObject{file, std::move(record)};
}

}  // namespace cuda_agent::build
