"""The stages of scoring in their order, in bounded memory."""
