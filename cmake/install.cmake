# bin/cuda-agent, and beside it what it needs at run time. The binary finds these folders from its own place, so the
# tree can be moved. Symbolic links of the repository are resolved here.
set(support_files agent_workdir/binding.cpp agent_workdir/binding_registry.h)

install(TARGETS cuda-agent RUNTIME DESTINATION bin)
install(FILES ${support_files} DESTINATION share/cuda-agent/support)
install(
  DIRECTORY src/worker/
  DESTINATION share/cuda-agent/worker
  PATTERN CMakeLists.txt EXCLUDE
  PATTERN __pycache__ EXCLUDE)
install(FILES src/policy/policy.json DESTINATION share/cuda-agent/policy)
install(
  DIRECTORY src/policy/rules
  DESTINATION share/cuda-agent/policy
  PATTERN __pycache__ EXCLUDE)
install(FILES SKILL.md templates/gitignore DESTINATION share/cuda-agent/templates)
install(
  DIRECTORY agent_workdir/utils
  DESTINATION share/cuda-agent/templates
  USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE)
install(
  DIRECTORY agent_workdir/
  DESTINATION share/cuda-agent/example
  USE_SOURCE_PERMISSIONS
  PATTERN .cuda-agent EXCLUDE
  PATTERN cuda_extension.so EXCLUDE
  PATTERN __pycache__ EXCLUDE)
install(
  DIRECTORY tests/exploits tests/honest
  DESTINATION share/cuda-agent/selftest
  PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE DESTINATION share/doc/cuda-agent)

# Built by scripts/setup.sh for its interpreter; for any other one the binary builds its module on first use.
install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/worker-modules/ DESTINATION lib/cuda-agent/worker-modules OPTIONAL)
