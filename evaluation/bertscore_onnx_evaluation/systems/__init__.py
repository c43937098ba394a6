"""Which system is better: `compare`, and the paired tests beneath it."""
