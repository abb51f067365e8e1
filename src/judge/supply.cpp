#include "judge/supply.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include "device/cuda/cuda_backend.hpp"
#include "util/files.hpp"

namespace cuda_agent::judge {

std::string key_of(const WorkerSetup& setup) {
  auto key = fmt::format("{} {} {} {} {} {} {} {} {}", setup.role == Role::reference ? "reference" : "candidate",
                         setup.interpreter->executable.string(), setup.interpreter->torch_version,
                         setup.module_folder.string(), setup.cache.string(), setup.device, setup.threads, setup.tf32,
                         setup.compiler);
  // Folders are bound by what they are, not by their names: one that was removed and made again is another.
  for (auto const& folder : {setup.module_folder, setup.cache}) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0) key += fmt::format(" {}:{}", status.st_dev, status.st_ino);
  }
  for (auto const& path : setup.interpreter->search_path) key += " " + path.string();
  for (auto const& [name, value] : setup.needs.environment) key += fmt::format(" {}={}", name, value);
  for (auto const& node : setup.needs.device_nodes) key += " " + node.string();
  return key;
}

Result<std::unique_ptr<Worker>> FreshSupply::worker(const WorkerSetup& setup) {
  WorkerSetup own = setup;
  own.folder = m_scratch / (setup.role == Role::reference ? "task" : "candidate");
  if (auto made = util::make_folders(own.folder); !made) return fail(made.error());
  return Worker::start(own);
}

Result<std::shared_ptr<device::Backend>> FreshSupply::gpu(const std::string& name) {
  auto backend = device::make_cuda_backend(name);
  if (!backend) return fail(backend.error());
  return std::shared_ptr<device::Backend>(std::move(*backend));
}

}  // namespace cuda_agent::judge
