"""The commands that score whole collections of files."""
