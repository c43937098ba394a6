"""Bundles, which the export hands over to the runtime.

Here is also where they are stored, and the facts about known models.
"""
