"""Studies behind a default: scripts, each run by itself."""
