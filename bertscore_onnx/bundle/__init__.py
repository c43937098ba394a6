"""Bundles, which the export hands over to the runtime; where they are stored; and the facts about
known models.
"""
