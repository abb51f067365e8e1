message(FATAL_ERROR
  "The end-to-end tests need a Python with torch, and one with pytest and jsonschema; none is configured. "
  "Run scripts/test.sh, or configure with -DCUDA_AGENT_PYTHON=... and -DCUDA_AGENT_TEST_PYTHON=...")
