message(FATAL_ERROR
  "The end-to-end tests need a Python with torch, numpy, pytest and jsonschema, and none is configured. "
  "Run scripts/setup.sh, or configure with -DCUDA_AGENT_PYTHON=/path/to/python.")
