"""Bundles mutated at random, whose digests are right all the same: what can be made of a bundle that nobody checked."""
