"""What the export hands over: bundles, where they are and what is known of models before they are exported."""
