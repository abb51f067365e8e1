"""The commands of the published workspace, as thin calls of cuda-agent."""
