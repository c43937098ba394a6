"""The options of the commands: several values of one, their names in messages, completion, and examples."""
